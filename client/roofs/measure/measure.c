/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The scopes of each kind of hart are one hart, its cluster, and all of the kind; then all harts, if there
 * are several kinds. Siblings of a core share what is measured, so only one of them runs. The one hart of a
 * kind is that with the highest number, since the first often serves interrupts.
 */
#include "client/roofs/measure/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "client/roofs/measure/scope.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define SCOPES_MAX (3 * ROOFS_KINDS_MAX + 1)
#define WEIGHT_HART 2 /* it has about twice as many roofs */
/* Beyond these the run is called disturbed. Others that use a twentieth of the machine also take that much of
 * shared caches, memory and clocks, which repeats do not show. An idle service takes a tenth of that. */
#define OTHERS_MAX 0.05 /* of the time of all harts */
#define TAKEN_MAX 0.1   /* of the repeats */

struct job_list {
	struct scope scope[SCOPES_MAX];
	size_t n;
};

static bool belongs(const struct machine *m, size_t hart, size_t kind, const cpu_set_t *cluster)
{
	const struct machine_hart *h = &m->hart[hart];
	return !h->sibling && (kind == m->n_kinds || h->kind == kind) &&
	       (!cluster || CPU_ISSET(h->number, cluster));
}

/* Find the numbers of harts of a kind (m->n_kinds: any), one for each core; only those in `cluster`, if given. */
static size_t pick(
	const struct machine *m, size_t kind, const cpu_set_t *cluster, uint32_t *ret_number)
{
	size_t n = 0;
	for (size_t i = 0; i < m->n_harts; i++)
		if (belongs(m, i, kind, cluster))
			ret_number[n++] = m->hart[i].number;
	return n;
}

static int add_scope(struct job_list *l, enum roof_scope scope, const char *kind,
	const uint32_t *number, size_t n)
{
	uint32_t *copy = calloc(n, sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, number, n * sizeof(*copy));
	l->scope[l->n++] =
		(struct scope){.scope = scope, .kind = kind, .number = copy, .n_harts = n};
	return 0;
}

static int list_scopes(const struct machine *m, struct job_list *l)
{
	_cleanup_(freep) uint32_t *number = calloc(m->n_harts, sizeof(*number));
	_cleanup_(freep) uint32_t *clustered = calloc(m->n_harts, sizeof(*clustered));
	cpu_set_t cluster;
	int r = number && clustered ? 0 : -ENOMEM;
	for (size_t k = 0; r == 0 && k < m->n_kinds; k++) {
		const char *id = m->kind[k].id;
		size_t n = pick(m, k, NULL, number), n_clustered = 0;
		if (n == 0)
			continue; /* all are siblings of another kind's */
		r = add_scope(l, ROOF_HART, id, &number[n - 1], 1);
		if (machine_cluster(number[n - 1], &cluster))
			n_clustered = pick(m, k, &cluster, clustered);
		if (r == 0 && n_clustered > 1 && n_clustered < n)
			r = add_scope(l, ROOF_CLUSTER, id, clustered, n_clustered);
		if (r == 0 && n > 1)
			r = add_scope(l, ROOF_KIND, id, number, n);
	}
	if (r == 0 && m->n_kinds > 1)
		r = add_scope(l, ROOF_MACHINE, "all", number, pick(m, m->n_kinds, NULL, number));
	return r;
}

/* The kernels that all harts of a scope can run: the worst verdict of its kinds. */
static int probe_kinds(const struct machine *m, struct probe **ret_probe)
{
	struct probe *all = calloc((m->n_kinds + 1) * n_kernels, sizeof(*all));
	if (!all)
		return -ENOMEM;
	struct probe *common = all + m->n_kinds * n_kernels;
	for (size_t i = 0; i < n_kernels; i++)
		common[i].verdict = PROBE_RIGHT;
	for (size_t k = 0; k < m->n_kinds; k++) {
		size_t i = 0;
		while (m->hart[i].kind != k)
			i++;
		int r = probe_kernels(m->hart[i].number, all + k * n_kernels);
		if (r < 0) {
			free(all);
			return r;
		}
		for (i = 0; i < n_kernels; i++)
			if (all[k * n_kernels + i].verdict < common[i].verdict)
				common[i] = all[k * n_kernels + i];
	}
	*ret_probe = all;
	return 0;
}

static size_t kind_index(const struct machine *m, const char *id)
{
	size_t k = 0;
	while (k < m->n_kinds && strcmp(m->kind[k].id, id) != 0)
		k++;
	return k; /* n_kinds for "all" */
}

static unsigned weight(const struct scope *s)
{
	return s->scope == ROOF_HART ? WEIGHT_HART : 1;
}

static int run_scopes(const struct machine *m, const struct measure_options *o, struct job_list *l,
	const struct probe *probe, uint64_t until_ns, struct tally *tally, struct roofs *roofs)
{
	unsigned left = 0, all, r = 0;
	for (size_t i = 0; i < l->n; i++)
		left += weight(&l->scope[i]);
	all = left;
	for (size_t i = 0; i < l->n && r == 0; i++) {
		struct scope *s = &l->scope[i];
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
		uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
		s->probe = probe + kind_index(m, s->kind) * n_kernels;
		s->from_ns = now_ns;
		s->until_ns = now_ns + left_ns * weight(s) / left;
		s->quick = o->quick;
		s->options = o;
		s->tally = tally;
		s->done_from = 1 - (double)left / all;
		left -= weight(s);
		s->done_to = 1 - (double)left / all;
		int error = scope_measure(s, roofs);
		if (error < 0)
			return error;
	}
	return 0;
}

/* The time that all harts together were busy, in seconds; negative: not known. Source:
 * Documentation/filesystems/proc.rst of Linux 6.12, 1.7. */
static double busy_s(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/stat", "re");
	unsigned long long user, nice, system, irq, softirq, stolen;
	if (!f || fscanf(f, "cpu %llu %llu %llu %*u %*u %llu %llu %llu", &user, &nice, &system,
			  &irq, &softirq, &stolen) != 6)
		return -1;
	return (double)(user + nice + system + irq + softirq + stolen) /
	       (double)sysconf(_SC_CLK_TCK);
}

static double own_s(void)
{
	struct rusage children;
	getrusage(RUSAGE_CHILDREN, &children);
	return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9 +
	       (double)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
	       (double)(children.ru_utime.tv_usec + children.ru_stime.tv_usec) / 1e6;
}

void measure_disturbed(
	const struct measure_load *l, const struct tally *t, char ret_text[static ROOF_NOTE_BYTES])
{
	const double others = l->took_s > 0 ? l->others_s / l->took_s : 0;
	const double taken = t->n_repeats > 0 ? (double)t->n_disturbed / (double)t->n_repeats : 0;
	*ret_text = '\0';
	if (others <= OTHERS_MAX * l->n_harts && taken <= TAKEN_MAX)
		return;
	snprintf(ret_text, ROOF_NOTE_BYTES,
		"other programs used %.2f of %.0f harts meanwhile, and %.0f %% of the repeats lost "
		"a "
		"hart to others",
		others > 0 ? others : 0, l->n_harts, 100 * taken);
}

static int describe(const struct machine *m, const struct measure_options *o, struct roofs *r)
{
	snprintf(r->machine, sizeof(r->machine), "%s", m->id);
	snprintf(r->kernel, sizeof(r->kernel), "%s", m->kernel);
#if defined(__x86_64__)
	snprintf(r->architecture, sizeof(r->architecture), "x86_64");
#elif defined(__aarch64__)
	snprintf(r->architecture, sizeof(r->architecture), "aarch64");
#else
	snprintf(r->architecture, sizeof(r->architecture), "riscv64");
#endif
	r->quick = o->quick;
	r->kinds = calloc(m->n_kinds, sizeof(*r->kinds));
	if (!r->kinds)
		return -ENOMEM;
	memcpy(r->kinds, m->kind, m->n_kinds * sizeof(*r->kinds));
	r->n_kinds = m->n_kinds;
	return 0;
}

int measure_roofs(const struct machine *m, const struct measure_options *o, struct roofs *ret_roofs)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
	const double busy = busy_s(), own = own_s();
	struct roofs roofs = {0};
	struct tally tally = {0};
	_cleanup_(freep) struct job_list *l = calloc(1, sizeof(*l));
	_cleanup_(freep) struct probe *probe = NULL;

	int r = l ? describe(m, o, &roofs) : -ENOMEM;
	if (r == 0)
		r = list_scopes(m, l);
	if (r == 0)
		r = probe_kinds(m, &probe);
	if (r == 0)
		r = run_scopes(m, o, l, probe, start_ns + o->budget_ns, &tally, &roofs);
	for (size_t i = 0; l && i < l->n; i++)
		free((void *)l->scope[i].number);
	if (r < 0) {
		roofs_clear(&roofs);
		return r;
	}
	roofs.measured_s = (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000000);
	roofs.took_s = (double)(clock_ns(CLOCK_MONOTONIC) - start_ns) / 1e9;
	struct measure_load load = {
		.n_harts = (double)sysconf(_SC_NPROCESSORS_ONLN), .took_s = roofs.took_s};
	if (busy >= 0)
		load.others_s = (busy_s() - busy) - (own_s() - own);
	measure_disturbed(&load, &tally, roofs.disturbed);
	*ret_roofs = roofs;
	return 0;
}
