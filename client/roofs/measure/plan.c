/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Nobody knows beforehand which of several kernels reaches a roof: X100 loads fastest at m1, X60 at
 * m8; AVX-512 may lower the clock. So each is tried twice for a moment, by turns, and the best is
 * measured. One hart has the roofs of all units; harts together those of the best and of scalars.
 */
#include "client/roofs/measure/plan.h"

#include <string.h>

#define TRIES 2
#define TRIES_SHARE 0.45 /* maximum share of the time for trying */
#define TRY_NS 2000000
#define KERNELS_MAX 256
#define RUN_NS 10000000
#define RUN_DRAM_NS 40000000
#define RUN_QUICK_NS 5000000
#define RUN_DRAM_QUICK_NS 15000000
#define WARM_NS 1500000
#define CLOCK_AND_REST_NS 700000 /* in a repeat: the clock's chain, waking threads, /proc/stat */

static bool is_scalar(const struct kernel *k)
{
	return strcmp(k->unit, "scalar") == 0;
}

static bool is_candidate(
	const struct scope *s, size_t i, enum roof_limit limit, const struct level *level)
{
	const struct kernel *k = &kernels[i];
	return k->limit == limit && s->probe[i].verdict == PROBE_RIGHT &&
	       (!k->nontemporal || strcmp(level->name, "DRAM") == 0);
}

/* Find the rates of kernels that have this limit, 0 for others. If no time is left to try them, take later ones
 * of the table for faster, since they are wider. */
static void try_kernels(struct crew *c, const struct scope *s, enum roof_limit limit,
	const struct level *level, double ret_rate[static KERNELS_MAX])
{
	memset(ret_rate, 0, KERNELS_MAX * sizeof(*ret_rate));
	for (size_t i = 0; i < TRIES * n_kernels; i++) {
		const size_t which = i % n_kernels;
		struct job job = {
			.kernel = &kernels[which],
			.bytes = level ? level->bytes : 0,
			.run_ns = TRY_NS,
			.warm_ns = TRY_NS / 2,
		};
		struct job_result result = {.rate = (double)which + 1};
		if (which >= KERNELS_MAX || !is_candidate(s, which, limit, level))
			continue;
		if (!scope_past(s, TRIES_SHARE))
			crew_run(c, &job, &result);
		if (result.rate > ret_rate[which])
			ret_rate[which] = result.rate;
	}
}

/* Is kernel i the fastest of those with the same precision, operation and, if asked, unit? Scalars
 * compete only with scalars. */
static bool is_best(const double *rate, size_t i, bool same_unit)
{
	const struct kernel *k = &kernels[i];
	for (size_t j = 0; j < n_kernels && j < KERNELS_MAX; j++) {
		const struct kernel *other = &kernels[j];
		if (rate[j] <= rate[i] || other->limit != k->limit ||
			strcmp(other->precision, k->precision) != 0 ||
			strcmp(other->operation, k->operation) != 0 ||
			is_scalar(other) != is_scalar(k))
			continue;
		if (!same_unit || strcmp(other->unit, k->unit) == 0)
			return false;
	}
	return true;
}

static struct planned *add(struct plan *p, const struct kernel *k, unsigned rank)
{
	if (p->n == PLAN_ROOFS_MAX) {
		p->n_left_out++;
		return NULL;
	}
	struct planned *roof = &p->roof[p->n++];
	*roof = (struct planned){.kernel = k, .rank = rank, .run_ns = RUN_NS, .warm_ns = WARM_NS};
	return roof;
}

void plan_compute(struct plan *p, struct crew *c, const struct scope *s)
{
	double rate[KERNELS_MAX];
	try_kernels(c, s, ROOF_COMPUTE, NULL, rate);
	for (size_t i = 0; i < n_kernels && i < KERNELS_MAX; i++) {
		const struct kernel *k = &kernels[i];
		if (rate[i] == 0 || !is_best(rate, i, true))
			continue;
		bool best = is_best(rate, i, false);
		bool wanted = strcmp(k->operation, "fma") == 0 ||
			      strcmp(k->operation, "mac") == 0 ||
			      (*k->precision == 'i' && strcmp(k->operation, "add") == 0);
		bool mix = strcmp(k->operation, "mul+add") == 0;
		unsigned rank = !best ? 4 : wanted ? 1 : mix ? 2 : 3;
		if ((!best && s->scope != ROOF_HART) || (s->quick && rank > 2))
			continue;
		struct planned *roof = add(p, k, rank);
		if (roof && s->quick)
			roof->run_ns = RUN_QUICK_NS;
	}
}

void plan_memory(struct plan *p, struct crew *c, const struct scope *s, const struct level *level)
{
	double rate[KERNELS_MAX];
	bool dram = strcmp(level->name, "DRAM") == 0;
	try_kernels(c, s, ROOF_MEMORY, level, rate);
	for (size_t i = 0; i < n_kernels && i < KERNELS_MAX; i++) {
		const struct kernel *k = &kernels[i];
		if (rate[i] == 0 || !is_best(rate, i, false))
			continue;
		bool wanted =
			strcmp(k->operation, "load") == 0 || strcmp(k->operation, "triad") == 0;
		unsigned rank = is_scalar(k) ? 4 : wanted ? 1 : 2;
		if ((is_scalar(k) && (s->scope != ROOF_HART || !wanted)) || (s->quick && rank > 2))
			continue;
		struct planned *roof = add(p, k, rank);
		if (!roof)
			continue;
		roof->level = level->name;
		roof->bytes = level->bytes;
		if (s->quick)
			roof->run_ns = dram ? RUN_DRAM_QUICK_NS : RUN_QUICK_NS;
		else if (dram)
			roof->run_ns = RUN_DRAM_NS;
		/* a whole pass brings the working set into the cache */
		uint64_t pass_ns =
			(uint64_t)(1.2e9 * (double)level->bytes * (double)s->n_harts / level->rate);
		if (!dram && pass_ns > roof->warm_ns)
			roof->warm_ns = pass_ns;
	}
}

static uint64_t round_ns(const struct plan *p, unsigned rank)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < p->n; i++)
		if (p->roof[i].rank <= rank)
			sum += p->roof[i].run_ns + p->roof[i].warm_ns + CLOCK_AND_REST_NS;
	return sum;
}

void plan_cut(struct plan *p, uint64_t left_ns)
{
	unsigned rank = 4;
	/* all of them REPEATS_WANTED times, or without the least wanted, but REPEATS_LEAST times */
	if (round_ns(p, rank) * REPEATS_WANTED > left_ns)
		while (rank > 1 && round_ns(p, rank) * REPEATS_LEAST > left_ns)
			rank--;
	size_t kept = 0;
	for (size_t i = 0; i < p->n; i++)
		if (p->roof[i].rank <= rank)
			p->roof[kept++] = p->roof[i];
	p->n_left_out += p->n - kept;
	p->n = kept;
}
