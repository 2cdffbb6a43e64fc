/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Causes of our processes' CPU time, tick by tick, and the work that is put off for each. Time of the parser for
 * users' programs does not lower the rate, but it puts naming off. */

#include "daemon/budget/overhead_private.h"

#include <string.h>

#define PPM 1e6
/* Part of the time for arguments that is left when only drains look at execs. */
#define DRAINS_PART 0.25

static uint64_t grown(uint64_t now, uint64_t *seen)
{
	uint64_t more = less(now, *seen);
	*seen = now;
	return more;
}

void overhead_begin_causes(struct overhead *h, const struct walk *w)
{
	memcpy(h->cpu_ns, w->cpu_ns, sizeof(h->cpu_ns));
	h->n_sample_records = w->n_sample_records;
	h->users_naming_seen_ns = users_naming_ns_of(w);
	h->writing_seen_ns = h->writing_ns;
}

/* Divide the time of that tick. What is left of all is the rest: turns of the loop, and looks at ourselves. */
void overhead_take_causes(
	struct overhead *h, const struct walk *w, struct overhead_own *own, uint64_t namer_ns)
{
	uint64_t *ns = own->cause_ns, all_ns = own->own_ns + own->clients_ns, known_ns = 0;
	own->users_naming_ns = grown(users_naming_ns_of(w), &h->users_naming_seen_ns);
	ns[CAUSE_SAMPLES] = grown(w->cpu_ns[WALK_SAMPLES], &h->cpu_ns[WALK_SAMPLES]);
	ns[CAUSE_SIDEBAND] = grown(w->cpu_ns[WALK_SIDEBAND], &h->cpu_ns[WALK_SIDEBAND]);
	ns[CAUSE_ARGUMENTS] = grown(w->cpu_ns[WALK_EXECS], &h->cpu_ns[WALK_EXECS]);
	ns[CAUSE_NAMING] = namer_ns + grown(w->cpu_ns[WALK_NAMING], &h->cpu_ns[WALK_NAMING]);
	ns[CAUSE_WAITING] = grown(w->cpu_ns[WALK_OFFCPU], &h->cpu_ns[WALK_OFFCPU]);
	ns[CAUSE_WRITING] = grown(h->writing_ns, &h->writing_seen_ns);
	ns[CAUSE_CLIENTS] = less(own->clients_ns, own->users_naming_ns);
	for (int cause = 0; cause < CAUSE_REST; cause++)
		known_ns += ns[cause];
	ns[CAUSE_REST] = less(all_ns, known_ns);
}

void overhead_add_own(struct overhead_own *sum, const struct overhead_own *own)
{
	sum->time_ns += own->time_ns;
	sum->own_ns += own->own_ns;
	sum->clients_ns += own->clients_ns;
	sum->others_ns += own->others_ns;
	sum->users_naming_ns += own->users_naming_ns;
	for (int cause = 0; cause < N_CAUSES; cause++)
		sum->cause_ns[cause] += own->cause_ns[cause];
}

unsigned overhead_counted(const struct overhead *h, struct overhead_own *ret_sum)
{
	unsigned n = 0;
	*ret_sum = (struct overhead_own){0};
	for (unsigned i = 0; i < OVERHEAD_OWN_TICKS; i++) {
		if (!h->own[i].counts)
			continue;
		overhead_add_own(ret_sum, &h->own[i]);
		n++;
	}
	return n;
}

double overhead_own_of_budget(const struct overhead *h)
{
	struct overhead_own sum;
	return overhead_counted(h, &sum) >= OVERHEAD_OWN_TICKS_MIN
		       ? (double)sum.own_ns / (double)sum.time_ns
		       : 0;
}

double overhead_naming_share(const struct overhead *h)
{
	int n = h->walk ? n_open(h, h->walk->sampler) : 1;
	return h->o.conf->overhead_ppm / PPM * n / MEASURES_NAMES_PART;
}

/* Part of `now` that is left if it becomes `then`. */
static double kept(double then, double now)
{
	return then < now ? then / now : 1;
}

static double looks_interval_ns(const struct walk *w)
{
	return (double)walk_offcpu(w, NULL).interval_ns;
}

/* Let measures decide, by the cost of l with naming for users. A change is judged by what comes after it. */
bool overhead_measure(struct overhead *h, const struct governor_load *l, uint64_t now_ns)
{
	struct overhead_own sum;
	struct measures_load m = {
		.budget = l->budget,
		.cost = governor_predict(l, h->governor.step, h->governor.step),
		.may_return = h->governor.step == STEP_ALL,
	};
	if (overhead_counted(h, &sum) < OVERHEAD_OWN_TICKS_MIN && l->budget > 0)
		return false;
	double time_ns = (double)(sum.time_ns ? sum.time_ns : 1) * l->n_harts;
	m.cost += (double)sum.users_naming_ns / time_ns;
	for (int cause = 0; cause < N_CAUSES; cause++)
		m.spent[cause] = (double)sum.cause_ns[cause] / time_ns;
	m.keeps[MEASURE_NAMES] = kept(l->budget / MEASURES_NAMES_PART, m.spent[CAUSE_NAMING]);
	m.keeps[MEASURE_FLUSHES] = kept((double)h->o.conf->flush_ns, (double)MEASURES_FLUSH_NS);
	m.keeps[MEASURE_ARGUMENTS] = walk_is_woken_by_execs(h->walk) ? DRAINS_PART : 1;
	m.keeps[MEASURE_LOOKS] = kept(looks_interval_ns(h->walk), (double)OFFCPU_SELDOM_NS);
	return measures_tick(&h->measures, &m, now_ns);
}
