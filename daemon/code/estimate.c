/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/code/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/rounds.h"
#include "proto/memory.h"

#define REPEATS 200 /* with other samples, as chance and ESTIMATE_SPREAD have it */

/* Blocks that run equally often, with the sums over their instructions. */
struct group {
	double samples, n;
	double count[N_COUNTS];
};

/* The groups of one loop: the first is of what runs in each round. */
struct gathering {
	struct group *group;
	uint32_t n;
};

static double operations_of(const double count[static N_COUNTS], enum code_ops ops)
{
	switch (ops) {
	case CODE_OPS_INT:
		return count[COUNT_INT];
	case CODE_OPS_SP:
		return count[COUNT_FP32];
	case CODE_OPS_DP:
		return count[COUNT_FP64];
	case CODE_OPS_FP:
	default:
		return count[COUNT_FP16] + count[COUNT_FP32] + count[COUNT_FP64] +
		       count[COUNT_FP80];
	}
}

/* What is asked for of a group's count: operations, bytes, or 1 for each instruction. */
enum figure {
	FIGURE_LOADED,
	FIGURE_STORED,
	FIGURE_BYTES,
	FIGURE_INSTRUCTIONS,
	FIGURE_OPERATIONS, /* and behind it those of enum code_ops */
};

static double figure_of(const struct group *g, enum figure f)
{
	switch (f) {
	case FIGURE_LOADED:
		return g->count[COUNT_LOADED] / g->n;
	case FIGURE_STORED:
		return g->count[COUNT_STORED] / g->n;
	case FIGURE_BYTES:
		return (g->count[COUNT_LOADED] + g->count[COUNT_STORED]) / g->n;
	case FIGURE_INSTRUCTIONS:
		return 1;
	default:
		return operations_of(g->count, (enum code_ops)(f - FIGURE_OPERATIONS)) / g->n;
	}
}

/* The ratio of two figures over all groups, and its interval by the delta method. A group without a
 * sample may still have run: it counts as one in the interval. */
static struct code_estimate ratio(const struct gathering *all, enum figure over, enum figure under)
{
	double a = 0, b = 0, variance = 0;
	if (all->n == 1) { /* samples cancel, and must not leave a rounding behind */
		a = all->group[0].n * figure_of(&all->group[0], over);
		b = all->group[0].n * figure_of(&all->group[0], under);
		return b > 0 ? (struct code_estimate){a / b, a / b, a / b}
			     : (struct code_estimate){NAN, NAN, NAN};
	}
	for (uint32_t i = 0; i < all->n; i++) {
		a += all->group[i].samples * figure_of(&all->group[i], over);
		b += all->group[i].samples * figure_of(&all->group[i], under);
	}
	if (b <= 0)
		return (struct code_estimate){NAN, NAN, NAN};
	double value = a / b;
	for (uint32_t i = 0; i < all->n; i++) {
		const struct group *g = &all->group[i];
		double off = figure_of(g, over) - value * figure_of(g, under);
		double samples = g->samples > 0 ? g->samples : 1;
		double spread = ESTIMATE_SPREAD * samples;
		variance += off * off * (samples + spread * spread);
	}
	double half = ESTIMATE_INTERVAL * sqrt(variance) / b;
	return (struct code_estimate){value, half < value ? value - half : 0, value + half};
}

static void add_block(struct group *g, const struct estimate_question *q, const struct block *b)
{
	g->n += b->n;
	for (uint32_t i = b->first; i < b->first + b->n; i++)
		for (size_t k = 0; k < N_COUNTS; k++)
			g->count[k] += (double)q->instruction[i].count[k];
}

static void add_facts(struct code_loop *l, const struct estimate_question *q, const struct block *b)
{
	for (uint32_t i = b->first; i < b->first + b->n; i++) {
		const struct instruction *in = &q->instruction[i];
		l->flags |= (in->masked ? CODE_MASKED : 0u) | (in->scalable ? CODE_SCALABLE : 0u) |
			    (in->unknown ? CODE_INCOMPLETE : 0u) |
			    (in->flow == FLOW_CALL ? CODE_CALLS : 0u);
		l->start = in->address < l->start ? in->address : l->start;
		l->last = in->address > l->last ? in->address : l->last;
	}
	l->n_instructions += b->n;
	l->n_blocks++;
}

/* Gather the blocks of one loop; samples by block. */
static void gather(const struct estimate_question *q, uint32_t loop, const double *samples,
	struct gathering *all, struct code_loop *l)
{
	const struct graph *g = q->graph;
	all->group[0] = (struct group){.n = 0};
	all->n = 1;
	for (uint32_t b = 0; b < g->n_blocks; b++) {
		const struct block *block = &g->block[b];
		if (block->loop != loop)
			continue;
		bool each = loop != GRAPH_NONE && block->each_round;
		struct group *to = &all->group[each ? 0 : all->n++];
		if (!each)
			*to = (struct group){.n = 0};
		to->samples += samples[b];
		add_block(to, q, block);
		add_facts(l, q, block);
	}
	if (all->group[0].n == 0) /* there is none such */
		all->group[0] = all->group[--all->n];
}

static void finish(const struct gathering *all, struct code_loop *l)
{
	l->bytes_loaded = ratio(all, FIGURE_LOADED, FIGURE_INSTRUCTIONS);
	l->bytes_stored = ratio(all, FIGURE_STORED, FIGURE_INSTRUCTIONS);
	for (int ops = 0; ops < N_CODE_OPS; ops++) {
		enum figure f = (enum figure)(FIGURE_OPERATIONS + ops);
		l->operations[ops] = ratio(all, f, FIGURE_INSTRUCTIONS);
		l->intensity[ops] = ratio(all, f, FIGURE_BYTES);
	}
}

/* --- loops with branches ------------------------------------------------------------------------- */

static double share(double over, double under)
{
	return under > 0 ? over / under : NAN;
}

enum { N_FIGURES = 2 + 2 * N_CODE_OPS };

/* All figures of a loop whose blocks run that often: loaded, stored, operations and intensities. */
static void figures_of(const struct group *group, const double *times, uint32_t n,
	double ret_figure[static N_FIGURES])
{
	double n_run = 0, bytes, count[N_COUNTS] = {0};
	for (uint32_t i = 0; i < n; i++) {
		n_run += times[i] * group[i].n;
		for (size_t k = 0; k < N_COUNTS; k++)
			count[k] += times[i] * group[i].count[k];
	}
	bytes = count[COUNT_LOADED] + count[COUNT_STORED];
	ret_figure[0] = share(count[COUNT_LOADED], n_run);
	ret_figure[1] = share(count[COUNT_STORED], n_run);
	for (int ops = 0; ops < N_CODE_OPS; ops++) {
		double operations = operations_of(count, (enum code_ops)ops);
		ret_figure[2 + ops] = share(operations, n_run);
		ret_figure[2 + N_CODE_OPS + ops] = share(operations, bytes);
	}
}

/* The same numbers each time, so that an answer is. Source: Marsaglia, "Xorshift RNGs", 2003; the sum
 * of twelve has the normal distribution's mean, deviation and shape, to three deviations. */
static double normal(uint64_t *state)
{
	double sum = -6;
	for (int i = 0; i < 12; i++) {
		*state ^= *state << 13;
		*state ^= *state >> 7;
		*state ^= *state << 17;
		sum += (double)(*state >> 11) / 9007199254740992.0;
	}
	return sum;
}

/* The blocks of a loop without those of loops inside. */
struct loop_blocks {
	const uint32_t *block;
	uint32_t n;
};

/* Samples per instruction as another run might have had them. */
static void disturb(const struct graph *g, const struct loop_blocks *l, const double *samples,
	uint64_t *state, double *ret_heat)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const uint32_t b = l->block[i];
		double n = samples[b] > 0 ? samples[b] + sqrt(samples[b]) * normal(state)
					  : fabs(normal(state)) / 2;
		n *= exp(ESTIMATE_SPREAD * normal(state));
		ret_heat[b] = (n > 0 ? n : 0) / g->block[b].n;
	}
}

static int compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* The middle 95 % of the repeats that have a value, and the value. */
static struct code_estimate interval(double value, double *repeat)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < REPEATS; i++)
		if (isfinite(repeat[i]))
			repeat[n++] = repeat[i];
	if (!isfinite(value) || n == 0)
		return (struct code_estimate){NAN, NAN, NAN};
	qsort(repeat, n, sizeof(*repeat), compare_doubles);
	double low = repeat[n / 40], high = repeat[n - 1 - n / 40];
	return (struct code_estimate){
		value, low < value ? low : value, high > value ? high : value};
}

/* What runs in each round has one heat. */
static void even_out(const struct graph *g, const struct loop_blocks *l, double *heat)
{
	double samples = 0, n = 0;
	for (uint32_t i = 0; i < l->n; i++) {
		const struct block *b = &g->block[l->block[i]];
		if (b->each_round) {
			samples += heat[l->block[i]] * b->n;
			n += b->n;
		}
	}
	for (uint32_t i = 0; i < l->n; i++)
		if (g->block[l->block[i]].each_round)
			heat[l->block[i]] = samples / n;
}

struct repeats {
	struct group *group;
	double *times, *heat; /* heat: by block of the graph */
	double (*figure)[REPEATS];
};

static int repeats_make(struct repeats *r, const struct graph *g, uint32_t n)
{
	r->group = calloc((size_t)n + 1, sizeof(*r->group));
	r->times = calloc((size_t)n + 1, sizeof(*r->times));
	r->heat = calloc((size_t)g->n_blocks + 1, sizeof(*r->heat));
	r->figure = calloc(N_FIGURES, sizeof(*r->figure));
	return r->group && r->times && r->heat && r->figure ? 0 : -ENOMEM;
}

static void repeats_clear(struct repeats *r)
{
	free(r->group);
	free(r->times);
	free(r->heat);
	free(r->figure);
}

static void repeat(const struct graph *g, const double *samples, struct rounds *rounds,
	const struct loop_blocks *l, struct repeats *r)
{
	uint64_t state = 88172645463325252u;
	double figure[N_FIGURES];
	for (uint32_t k = 0; k < REPEATS; k++) {
		disturb(g, l, samples, &state, r->heat);
		even_out(g, l, r->heat);
		rounds_find(rounds, r->heat, r->times);
		figures_of(r->group, r->times, l->n, figure);
		for (size_t i = 0; i < N_FIGURES; i++)
			r->figure[i][k] = figure[i];
	}
}

/* Replace the estimates of a loop in which branches say what runs. 0, -ENOMEM. */
static int finish_branches(const struct estimate_question *q, uint32_t loop, const double *samples,
	struct code_loop *l)
{
	const struct graph *g = q->graph;
	_cleanup_(repeats_clear) struct repeats r = {.group = NULL};
	struct rounds *rounds;
	struct loop_blocks own;
	bool branches;
	double figure[N_FIGURES];
	int outcome = rounds_make(&rounds, g, loop, &own.block, &own.n, &branches);
	if (outcome < 0)
		return outcome;
	if (branches)
		outcome = repeats_make(&r, g, own.n);
	if (outcome == 0 && branches) {
		for (uint32_t i = 0; i < own.n; i++) {
			const uint32_t b = own.block[i];
			add_block(&r.group[i], q, &g->block[b]);
			r.heat[b] = samples[b] / g->block[b].n;
		}
		even_out(g, &own, r.heat);
		rounds_find(rounds, r.heat, r.times);
		figures_of(r.group, r.times, own.n, figure);
		repeat(g, samples, rounds, &own, &r);
		l->bytes_loaded = interval(figure[0], r.figure[0]);
		l->bytes_stored = interval(figure[1], r.figure[1]);
		for (int k = 0; k < N_CODE_OPS; k++) {
			l->operations[k] = interval(figure[2 + k], r.figure[2 + k]);
			l->intensity[k] =
				interval(figure[2 + N_CODE_OPS + k], r.figure[2 + N_CODE_OPS + k]);
		}
	}
	rounds_free(rounds);
	return outcome;
}

/* The n-th instruction contains the offset; false: none does. */
static bool find(const struct estimate_question *q, uint64_t offset, uint32_t *ret_n)
{
	uint32_t low = 0, high = q->n_instructions;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (q->instruction[middle].address <= offset)
			low = middle;
		else
			high = middle;
	}
	const struct instruction *i = &q->instruction[low];
	*ret_n = low;
	return q->n_instructions > 0 && offset >= i->address && offset - i->address < i->length;
}

static void add_sample(struct code_loop *l, const struct code_sample *s, double *hottest_ns)
{
	if (l->samples == 0 || s->ns > *hottest_ns) {
		*hottest_ns = s->ns;
		l->hottest = s->offset;
	}
	l->samples += s->samples;
	l->ns += s->ns;
	l->instructions =
		s->instructions < 0 || l->instructions < 0 ? -1 : l->instructions + s->instructions;
}

/* One slot per loop, and one for what is in none. */
struct scratch {
	struct code_loop *loop;
	double *hottest_ns, *samples;
	struct group *group;
};

static int scratch_make(struct scratch *s, const struct graph *g)
{
	s->loop = calloc((size_t)g->n_loops + 1, sizeof(*s->loop));
	s->hottest_ns = calloc((size_t)g->n_loops + 1, sizeof(*s->hottest_ns));
	s->samples = calloc((size_t)g->n_blocks + 1, sizeof(*s->samples));
	s->group = calloc((size_t)g->n_blocks + 2, sizeof(*s->group));
	return s->loop && s->hottest_ns && s->samples && s->group ? 0 : -ENOMEM;
}

static void scratch_clear(struct scratch *s)
{
	free(s->loop);
	free(s->hottest_ns);
	free(s->samples);
	free(s->group);
}

static void add_samples(const struct estimate_question *q, struct scratch *s)
{
	const struct graph *g = q->graph;
	for (uint32_t i = 0; i < q->n_samples; i++) {
		uint32_t n;
		if (!find(q, q->sample[i].offset, &n))
			continue; /* between instructions: data, or another file's */
		uint32_t b = graph_block_of(g, n), loop = g->block[b].loop;
		uint32_t slot = loop == GRAPH_NONE ? g->n_loops : loop;
		s->samples[b] += (double)q->sample[i].samples;
		add_sample(&s->loop[slot], &q->sample[i], &s->hottest_ns[slot]);
	}
}

int estimate_loops(const struct estimate_question *q, struct code_loop *ret_loop, uint32_t *ret_n)
{
	const struct graph *g = q->graph;
	_cleanup_(scratch_clear) struct scratch s = {.loop = NULL};
	int r = scratch_make(&s, g);
	*ret_n = 0;
	if (r < 0 || q->n_instructions == 0)
		return r;
	add_samples(q, &s);
	for (uint32_t slot = 0; slot <= g->n_loops; slot++) {
		struct gathering all = {s.group, 0};
		struct code_loop *l = &s.loop[slot];
		bool is_loop = slot < g->n_loops;
		if (l->samples == 0)
			continue;
		l->function = q->instruction[0].address;
		l->start = UINT64_MAX;
		l->depth = is_loop ? g->loop[slot].depth : 0;
		l->flags = g->indirect ? CODE_INDIRECT : 0;
		gather(q, is_loop ? slot : GRAPH_NONE, s.samples, &all, l);
		finish(&all, l);
		r = is_loop ? finish_branches(q, slot, s.samples, l) : 0;
		if (r < 0)
			return r;
		ret_loop[(*ret_n)++] = *l;
	}
	return 0;
}
