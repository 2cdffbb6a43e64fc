/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Divide time among loops. Three sources contribute:
 *
 *      measured   the program took the time of a nest as a whole; nests that its calls ran have
 *                 their own, which the runtime has subtracted
 *      samples    CPU time in the lines of each loop
 *      counts     instructions of each loop
 *
 * A measured nest of one loop has the measured time. In a nest of several loops, loops with enough
 * samples get their share of the time by samples. The other loops divide the remaining time by counted
 * instructions; if the nest has too few samples, all its loops do.
 *
 * A nest without calls spends its time in its own lines, so its samples only divide the measured
 * time. If it calls functions whose time was not measured, the samples in its lines give the time of
 * its loops. The remainder is the time of the calls, which belongs to no loop, only to the nest as a
 * whole.
 *
 * Measured time is wall time, and that of samples CPU time. If threads waited, on a busy machine or for
 * data, a nest without calls gets the time of its samples if that is clearly less than its measured
 * time, so that one table compares one clock. Samples in functions that a nest calls are not the
 * nest's, so a nest with calls keeps its wall time; a note says so.
 *
 * A copy that a loop makes has a row as if it were a loop inside. Its work is the modelled accesses. If
 * no sample in copies has a known caller, a nest with copies is treated like one with calls: the time
 * of its copies stays unknown.
 *
 * So the own times of loops never add up to more than the time of their nest, and those of nests
 * not to more than the time of the program.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/query/loops/roofline_private.h"

/* The standard error of a time of fewer samples would be above a third. */
#define SAMPLES_MIN 10
#define CPU_NOTED 0.9       /* threads that had less than this of a CPU waited */
#define CPU_SAMPLES_MIN 100 /* samples needed for an error of a tenth in their time */
/* Standard errors of the samples' time by which a nest's measured time must exceed it. */
#define WAITING_ERRORS 3

double roofline_cpu_share(const struct roofline *r)
{
	double cpu = r->groups.span_ns > 0 ? r->facts.samples.taken.ns / r->groups.span_ns : 1;
	return r->facts.samples.taken.n < CPU_SAMPLES_MIN || cpu >= CPU_NOTED ? 1 : cpu;
}

uint32_t roofline_loop_around(const struct roofline *r, uint32_t group)
{
	if (r->q.by != ROOFLINE_LOOP)
		return 0;
	uint32_t parent = loop_facts_owner(&r->facts, r->facts.sites.site[group].parent);
	bool is_loop = parent != 0 && parent <= group &&
		       r->facts.sites.site[parent - 1].kind == LOOP_SITE_LOOP;
	return is_loop ? parent : 0;
}

static bool is_loop(const struct roofline *r, uint32_t group)
{
	return roofline_is_loop(r, group);
}

/* The function that a loop is in, index + 1; 0: none. */
static uint32_t function_of(const struct roofline *r, uint32_t group)
{
	uint32_t i = group + 1;
	while (i != 0 && r->facts.sites.site[i - 1].kind != LOOP_SITE_FUNCTION)
		i = r->facts.sites.site[i - 1].parent;
	return i;
}

static const struct roof_time unknown = {.clock = ROOF_NO_CLOCK, .ns = -1};

static struct roof_time sampled(const struct roof_sums *s)
{
	return s->samples > 0 ? (struct roof_time){.clock = ROOF_SAMPLED, .ns = s->sampled_ns}
			      : unknown;
}

/* --- loops ------------------------------------------------------------------------------------ */

/* A measured nest: sums over its loops. For a function only ns, over its nests. */
struct nest {
	double ns; /* measured */
	double sampled_ns, few_ns;
	double work, few_work; /* few: nests of loops with too few samples */
	double calls;
	double own_ns; /* own time as given to its loops */
	uint64_t samples;
	uint32_t n_loops; /* and copies */
	uint32_t n_copies;
	bool has_lines;
	double waiting_error; /* relative, of ns, if that is CPU time by samples; 0: wall time */
};

struct nests {
	struct nest *nest; /* by group of the measured loop */
	uint32_t *of;      /* by group: that loop's group + 1; 0: not measured */
	double sample_ns;  /* mean CPU time of a sample; 0: samples do not reach loops */
};

static bool has_few(const struct roof_sums *s)
{
	return s->samples < SAMPLES_MIN;
}

static bool has_lines(const struct fact_site *site)
{
	return site->line != 0 && !(site->flags & MPERF_SCOPE_NO_LINES);
}

/* The mean CPU time of samples that hit loops; 0: none hit any, so the program may have no lines. */
static double mean_sample_ns(const struct roofline *r)
{
	double ns = 0;
	uint64_t samples = 0;
	for (uint32_t i = 0; i < r->groups.n; i++) {
		ns += is_loop(r, i) ? r->groups.self[i].sampled_ns : 0;
		samples += is_loop(r, i) ? r->groups.self[i].samples : 0;
	}
	return samples > 0 ? ns / (double)samples : 0;
}

static double work_of(const struct roofline *r, uint32_t group)
{
	const double *v = r->groups.self[group].value;
	return roofline_is_copy(r, group) ? v[LOOP_LOADS] + v[LOOP_STORES] : v[LOOP_INSTRUCTIONS];
}

/* Is it a copy that samples cannot reach, since they do not know their callers? */
static bool is_unplaced(const struct roofline *r, uint32_t group)
{
	return roofline_is_copy(r, group) && !r->facts.samples.callers;
}

static bool has_unplaced(const struct roofline *r, const struct nest *nest)
{
	return nest->n_copies > 0 && !r->facts.samples.callers;
}

/* Loops are behind those around them. */
static void sum_nests(const struct roofline *r, struct nests *n)
{
	for (uint32_t i = 0; i < r->groups.n; i++) {
		const struct roof_sums *s = &r->groups.self[i];
		uint32_t around = roofline_loop_around(r, i);
		if (!is_loop(r, i))
			continue;
		n->of[i] = s->value[LOOP_TIME_NS] > 0 ? i + 1 : around ? n->of[around - 1] : 0;
		if (n->of[i] == 0)
			continue;
		struct nest *nest = &n->nest[n->of[i] - 1];
		double work = work_of(r, i);
		if (n->of[i] == i + 1) {
			nest->ns = s->value[LOOP_TIME_NS];
			nest->has_lines = has_lines(&r->facts.sites.site[i]);
		}
		nest->sampled_ns += s->sampled_ns;
		nest->few_ns += has_few(s) ? s->sampled_ns : 0;
		nest->samples += s->samples;
		nest->work += work;
		nest->few_work += has_few(s) && !is_unplaced(r, i) ? work : 0;
		nest->n_copies += roofline_is_copy(r, i);
		nest->calls += s->value[LOOP_CALLS] + s->value[LOOP_EXTERNAL_CALLS];
		nest->n_loops++;
	}
}

/* The function whose samples contain all CPU time of a nest; 0: not known. The code of an inlined nest
 * is in another function. */
static uint32_t function_of_nest(const struct roofline *r, uint32_t group, const struct nests *n)
{
	const char *inlined_at = text_of(&r->facts.texts, r->facts.sites.site[group].inlined_at);
	const struct nest *nest = &n->nest[group];
	bool is_own = n->of[group] == group + 1 && nest->calls <= 0 && !has_unplaced(r, nest);
	return is_own && !(inlined_at && *inlined_at) ? function_of(r, group) : 0;
}

/* Use CPU time instead of wall time if the wall time of a function's nests clearly exceeds the
 * function's time by samples. */
static void leave_out_waiting(struct roofline *r, struct nests *n)
{
	if (roofline_cpu_share(r) >= 1)
		return;
	for (uint32_t i = 0; i < r->groups.n; i++) {
		uint32_t function = function_of_nest(r, i, n);
		if (function)
			n->nest[function - 1].ns += n->nest[i].ns;
	}
	for (uint32_t i = 0; i < r->groups.n; i++) {
		struct nest *nest = &n->nest[i];
		uint32_t function = function_of_nest(r, i, n);
		if (function == 0 || r->groups.total[function - 1].samples < SAMPLES_MIN)
			continue;
		const struct roof_sums *s = &r->groups.total[function - 1];
		double error = 1 / sqrt((double)s->samples), wall_ns = n->nest[function - 1].ns;
		if (wall_ns <= s->sampled_ns * (1 + WAITING_ERRORS * error))
			continue;
		r->times.waited_ns += nest->ns * (1 - s->sampled_ns / wall_ns);
		nest->ns *= s->sampled_ns / wall_ns;
		nest->waiting_error = error;
	}
}

/* A share, by work; if there is no work, the nest's own loop gets all. */
static struct roof_time share_of(double ns, double part, double whole, bool is_outermost)
{
	double share = whole > 0 ? part / whole : is_outermost;
	return (struct roof_time){.clock = ROOF_SHARED, .ns = share * ns};
}

/* The relative standard error of a part p of n samples, at least one sample. */
static double error_of_part(double p, double n)
{
	return fmax(sqrt((1 - p) / (n * p)), 1 / n);
}

/* Do samples show how long the nest's loops ran? Also yes if few hit them although the nest was
 * measured for so long that many should have: then the loops hardly ran. */
static bool is_sampled(const struct roofline *r, const struct nest *nest, double sample_ns)
{
	return nest->samples >= SAMPLES_MIN ||
	       ((nest->calls > 0 || has_unplaced(r, nest)) && nest->has_lines && sample_ns > 0 &&
		       nest->ns >= SAMPLES_MIN * sample_ns);
}

static struct roof_time own_time(
	const struct roofline *r, uint32_t group, const struct nest *nest, bool is_sampled)
{
	const struct roof_sums *s = &r->groups.self[group];
	double work = work_of(r, group);
	bool is_outermost = s->value[LOOP_TIME_NS] > 0;
	bool calls = nest->calls > 0 || has_unplaced(r, nest);
	if (nest->n_loops == 1 && nest->waiting_error > 0)
		return (struct roof_time){
			.clock = ROOF_SAMPLED, .ns = nest->ns, .error = nest->waiting_error};
	if (nest->n_loops == 1 && !(calls && is_sampled))
		return (struct roof_time){.clock = ROOF_MEASURED, .ns = nest->ns};
	if (!is_sampled)
		return share_of(nest->ns, work, nest->work, is_outermost);
	if (is_unplaced(r, group))
		return unknown;
	double scale = nest->sampled_ns > 0 ? nest->ns / nest->sampled_ns : 1;
	if (calls)
		scale = fmin(scale, 1);
	if (has_few(s) && nest->n_loops > 1)
		return share_of(scale * nest->few_ns, work, nest->few_work, is_outermost);
	double part = s->sampled_ns / nest->sampled_ns;
	return (struct roof_time){.clock = ROOF_SAMPLED,
		.ns = scale * s->sampled_ns,
		.error = calls ? 0
			       : hypot(nest->waiting_error,
					 error_of_part(part, (double)nest->samples))};
}

static void own_times(struct roofline *r, const struct nests *n)
{
	for (uint32_t i = 0; i < r->groups.n; i++) {
		const struct roof_sums *s = &r->groups.self[i];
		struct roof_time *time = &r->times.self[i];
		*time = unknown;
		if (!is_loop(r, i))
			continue;
		if (n->of[i] == 0) {
			*time = sampled(s);
			if (s->samples == 0 && n->sample_ns > 0 && !is_unplaced(r, i))
				time->ns = 0; /* samples reach loops, and none hit this one */
			continue;
		}
		struct nest *nest = &n->nest[n->of[i] - 1];
		*time = own_time(r, i, nest, is_sampled(r, nest, n->sample_ns));
		nest->own_ns += fmax(time->ns, 0);
	}
}

static enum roof_clock total_clock(
	const struct roofline *r, uint32_t group, const struct nests *n, double ns)
{
	if (n->of[group] == group + 1)
		return n->nest[group].waiting_error > 0 ? ROOF_SAMPLED : ROOF_MEASURED;
	if (ns <= 0)
		return ROOF_NO_CLOCK;
	if (!has_few(&r->groups.total[group]) || n->of[group] == 0)
		return r->groups.total[group].samples > 0 ? ROOF_SAMPLED : ROOF_MEASURED;
	return ROOF_SHARED;
}

/* Own times and times with the loops inside; of a measured nest, also the time that belongs to no
 * loop. */
static void total_times(struct roofline *r, const struct nests *n)
{
	for (uint32_t i = r->groups.n; i > 0; i--) {
		struct roof_time *total = &r->times.total[i - 1];
		const struct nest *nest = &n->nest[i - 1];
		uint32_t around = roofline_loop_around(r, i - 1);
		if (!is_loop(r, i - 1)) {
			*total = unknown;
			continue;
		}
		total->ns += fmax(r->times.self[i - 1].ns, 0) + fmax(nest->ns - nest->own_ns, 0);
		if (around)
			r->times.total[around - 1].ns += total->ns;
		total->clock = total_clock(r, i - 1, n, total->ns);
	}
}

static int times_of_loops(struct roofline *r)
{
	struct nests n = {
		.nest = calloc((size_t)r->groups.n + 1, sizeof(*n.nest)),
		.of = calloc((size_t)r->groups.n + 1, sizeof(*n.of)),
	};
	if (n.nest && n.of) {
		n.sample_ns = mean_sample_ns(r);
		sum_nests(r, &n);
		leave_out_waiting(r, &n);
		own_times(r, &n);
		total_times(r, &n);
	}
	bool done = n.nest && n.of;
	free(n.nest);
	free(n.of);
	return done ? 0 : -ENOMEM;
}

/* --- functions, regions, threads -------------------------------------------------------------- */

/* Did an outermost loop run for a time that was not measured? */
static bool ran_untimed(const struct roofline *r, uint32_t group)
{
	uint32_t parent = loop_facts_owner(&r->facts, r->facts.sites.site[group].parent);
	const double *own = r->groups.self[group].value, *total = r->groups.total[group].value;
	bool is_outermost = parent == 0 || !is_loop(r, parent - 1);
	return is_outermost && own[LOOP_TIME_NS] <= 0 &&
	       (total[LOOP_INSTRUCTIONS] > 0 || own[LOOP_ENTRIES] > 0 || own[LOOP_ITERATIONS] > 0);
}

/* The time of a function with its loops is that of its samples. If these are few, it is the
 * measured time of its nests, provided that all nests were measured, that it is more than the
 * samples say, and that threads did not wait. */
static void times_of_functions(struct roofline *r)
{
	for (uint32_t i = 0; i < r->groups.n; i++) {
		uint32_t function = is_loop(r, i) ? function_of(r, i) : 0;
		if (function == 0)
			continue;
		r->times.total[function - 1].ns += r->groups.self[i].value[LOOP_TIME_NS];
		if (ran_untimed(r, i))
			r->times.total[function - 1].ns = -INFINITY;
	}
	for (uint32_t i = 0; i < r->groups.n; i++) {
		struct roof_time *total = &r->times.total[i];
		total->clock = ROOF_MEASURED;
		if (total->ns <= 0 || !has_few(&r->groups.total[i]) ||
			total->ns < r->groups.total[i].sampled_ns || roofline_cpu_share(r) < 1)
			*total = sampled(&r->groups.total[i]);
		r->times.self[i] = sampled(&r->groups.self[i]);
		if (r->groups.self[i].samples == 0 && r->facts.samples.taken.ns > 0)
			r->times.self[i].ns = 0;
	}
}

static void times_of_regions(struct roofline *r)
{
	for (uint32_t i = 0; i < r->groups.n; i++) {
		const double *own = r->groups.self[i].value;
		r->times.self[i] = unknown;
		r->times.total[i] = own[LOOP_ENTRIES] > 0
					    ? (struct roof_time){.clock = ROOF_MEASURED,
						      .ns = own[LOOP_TIME_NS]}
					    : unknown;
	}
}

static void times_of_threads(struct roofline *r)
{
	for (uint32_t i = 0; i < r->groups.n; i++) {
		double span_ns = r->groups.self[i].value[LOOP_SPAN_NS];
		r->times.self[i] = sampled(&r->groups.self[i]);
		r->times.total[i] = span_ns > 0
					    ? (struct roof_time){.clock = ROOF_SPAN, .ns = span_ns}
					    : sampled(&r->groups.total[i]);
	}
}

/* ---------------------------------------------------------------------------------------------- */

/* The CPU time of samples, else the time for which the program counted; at least the sum of the
 * rows, for both have errors. A function's time has that of its loops. */
static double whole_of_sites(const struct roofline *r)
{
	const struct roof_time *time = r->q.by == ROOFLINE_LOOP ? r->times.self : r->times.total;
	double sum_ns = 0;
	for (uint32_t i = 0; i < r->groups.n; i++)
		if (r->q.by == ROOFLINE_LOOP || r->facts.sites.site[i].kind == LOOP_SITE_FUNCTION)
			sum_ns += fmax(time[i].ns, 0);
	return fmax(r->facts.samples.taken.ns > 0 ? r->facts.samples.taken.ns : r->groups.span_ns,
		sum_ns);
}

int roofline_times(struct roofline *r)
{
	const size_t n = (size_t)r->groups.n + 1;
	int outcome = 0;
	r->times.self = calloc(n, sizeof(*r->times.self));
	r->times.total = calloc(n, sizeof(*r->times.total));
	if (!r->times.self || !r->times.total)
		return -ENOMEM;
	switch (r->q.by) {
	case ROOFLINE_LOOP:
		outcome = times_of_loops(r);
		r->times.whole_ns = whole_of_sites(r);
		break;
	case ROOFLINE_FUNCTION:
		times_of_functions(r);
		r->times.whole_ns = whole_of_sites(r);
		break;
	case ROOFLINE_REGION:
		times_of_regions(r);
		r->times.whole_ns = r->groups.span_ns;
		break;
	default:
		times_of_threads(r);
		r->times.whole_ns =
			r->groups.span_ns > 0 ? r->groups.span_ns : r->facts.samples.taken.ns;
		break;
	}
	return outcome;
}

void roof_times_clear(struct roof_times *t)
{
	free(t->self);
	free(t->total);
}
