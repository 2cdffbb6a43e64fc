/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The interval comes from repeated fits to simulated samples of another run: each block's rate is varied
 * according to its number of samples and ESTIMATE_SPREAD, and the prior of each branch is varied too.
 * The middle 95 % of the results are the interval.
 */
#include "daemon/code/estimate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/chance.h"
#include "daemon/code/rounds.h"
#include "proto/base/memory.h"

#define REPEATS 200 /* the interval leaves out the five lowest and highest */
#define REPEATS_LEAST 40
/* Steps times nodes in all repeats of one loop: some 0.3 s. Larger loops are repeated less often. */
#define WORK_MAX 10000000u
/* The same of all loops of a file, some 8 s: from there on loops are repeated less often. */
#define WORK_OF_FILE_MAX 100000000u
#define STEPS_FIRST 300 /* further steps change the figures by less than 0.1 % */
#define STEPS_AGAIN 40  /* starting at the result of the first fit */

/* Upper bound of a loop's entries divided by its iterations, since not every iteration is the last
 * one. */
#define ENTRIES_MOST 0.9

/* Blocks that are weighted together: a loop's own, or a function's outside all loops. */
struct part {
	const struct estimate_question *q;
	const double *samples; /* by block of the graph */
	const uint32_t *block;
	uint32_t n;
	struct rounds *rounds; /* NULL: each block is weighted only by its samples */
	double entries;        /* entries of a loop divided by its iterations, from samples */
};

/* Scratch, per block of a part. */
struct work {
	struct tally *tally;
	struct heat *heat, *moved;
	double *times;
	double (*low)[REPEATS], (*high)[REPEATS]; /* by figure */
};

static int work_make(struct work *w, uint32_t n)
{
	w->tally = calloc((size_t)n + 1, sizeof(*w->tally));
	w->heat = calloc((size_t)n + 1, sizeof(*w->heat));
	w->moved = calloc((size_t)n + 1, sizeof(*w->moved));
	w->times = calloc((size_t)n + 1, sizeof(*w->times));
	w->low = calloc(N_FIGURES, sizeof(*w->low));
	w->high = calloc(N_FIGURES, sizeof(*w->high));
	return w->tally && w->heat && w->moved && w->times && w->low && w->high ? 0 : -ENOMEM;
}

static void work_clear(struct work *w)
{
	free(w->tally);
	free(w->heat);
	free(w->moved);
	free(w->times);
	free(w->low);
	free(w->high);
}

static void tally_block(const struct part *p, uint32_t b, struct tally *t)
{
	const struct block *block = &p->q->graph->block[b];
	for (uint32_t i = block->first; i < block->first + block->n; i++)
		tally_add_instruction(t, &p->q->instruction[i]);
}

/* A block without a sample may still have run: it counts as half of one. The variance of the logarithm
 * of a number of samples is one over that number. */
static struct heat heat_of(double samples, uint32_t n_instructions)
{
	double n = samples > 0 ? samples : 0.5;
	if (n_instructions == 0)
		return (struct heat){.weight = 0};
	return (struct heat){.log_rate = log(n / n_instructions),
		.weight = 1 / (ESTIMATE_SPREAD * ESTIMATE_SPREAD + 1 / n)};
}

static void weigh(const struct part *p, const struct heat *heat, uint32_t steps, double *ret_times)
{
	if (p->rounds)
		rounds_fit(p->rounds, heat, steps, ret_times);
	else
		for (uint32_t i = 0; i < p->n; i++)
			ret_times[i] = exp(heat[i].log_rate);
}

static void figures_by_times(const struct part *p, const struct work *w,
	struct code_estimate ret_figure[static N_FIGURES])
{
	struct tally all = {.n = 0};
	for (uint32_t i = 0; i < p->n; i++)
		tally_add(&all, &w->tally[i], w->times[i]);
	figures_of(&all, &p->q->vectors, ret_figure);
}

/* With fewer samples the interval is so wide that its ends need not be precise. */
#define SAMPLES_FEW 100

static uint32_t n_repeats(const struct part *p)
{
	double samples = 0;
	for (uint32_t i = 0; i < p->n; i++)
		samples += p->samples[p->block[i]];
	if (samples < SAMPLES_FEW || (p->q->work && *p->q->work > WORK_OF_FILE_MAX))
		return REPEATS_LEAST;

	uint32_t nodes = p->rounds ? rounds_nodes(p->rounds) : p->n;
	uint32_t n = WORK_MAX / STEPS_AGAIN / (nodes + 1);
	return n < REPEATS_LEAST ? REPEATS_LEAST : n > REPEATS ? REPEATS : n;
}

static void repeat(const struct part *p, struct work *w, uint32_t n)
{
	uint64_t state = CHANCE_START;
	struct code_estimate figure[N_FIGURES];
	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t i = 0; i < p->n; i++) {
			w->moved[i] = w->heat[i];
			if (w->heat[i].weight > 0)
				w->moved[i].log_rate +=
					chance_normal(&state) / sqrt(w->heat[i].weight);
		}
		if (p->rounds) {
			double off = sqrt(2) * ESTIMATE_SPREAD * chance_normal(&state);
			rounds_leave(p->rounds, fmin(p->entries * exp(off), ENTRIES_MOST));
			rounds_doubt(p->rounds, &state);
		}
		weigh(p, w->moved, STEPS_AGAIN, w->times);
		figures_by_times(p, w, figure);
		for (size_t f = 0; f < N_FIGURES; f++) {
			w->low[f][k] = figure[f].low;
			w->high[f][k] = figure[f].high;
		}
	}
}

static int compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Sort the finite ones among n numbers to the front. Returns their number. */
static uint32_t sort_numbers(double *of, uint32_t n)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < n; i++)
		if (isfinite(of[i]))
			of[kept++] = of[i];
	qsort(of, kept, sizeof(*of), compare_doubles);
	return kept;
}

static void widen(struct code_estimate *e, double *low, double *high, uint32_t n)
{
	uint32_t n_low = sort_numbers(low, n), n_high = sort_numbers(high, n);
	if (!isfinite(e->value) || n_low == 0 || n_high == 0)
		return;
	e->low = fmin(e->low, low[n_low / 40]);
	e->high = fmax(e->high, high[n_high - 1 - n_high / 40]);
}

/* known: all blocks run equally often. */
static int estimate(
	const struct part *p, bool known, struct code_estimate ret_figure[static N_FIGURES])
{
	_cleanup_(work_clear) struct work w = {.tally = NULL};
	int r = work_make(&w, p->n);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t b = p->block[i];
		tally_block(p, b, &w.tally[i]);
		w.heat[i] = heat_of(p->samples[b], p->q->graph->block[b].n);
		w.times[i] = 1;
	}
	if (p->rounds)
		rounds_leave(p->rounds, fmin(p->entries, ENTRIES_MOST));
	if (!known)
		weigh(p, w.heat, STEPS_FIRST, w.times);
	figures_by_times(p, &w, ret_figure);
	if (known)
		return 0;
	uint32_t n = n_repeats(p);
	repeat(p, &w, n);
	if (p->q->work && p->rounds)
		*p->q->work += (uint64_t)rounds_nodes(p->rounds) * (n * STEPS_AGAIN + STEPS_FIRST);
	for (size_t f = 0; f < N_FIGURES; f++)
		widen(&ret_figure[f], w.low[f], w.high[f], n);
	return 0;
}

static void take_figures(struct code_loop *l, const struct code_estimate figure[static N_FIGURES])
{
	l->bytes_loaded = figure[FIGURE_LOADED];
	l->bytes_stored = figure[FIGURE_STORED];
	memcpy(l->operations, &figure[FIGURE_OPERATIONS], sizeof(l->operations));
	memcpy(l->intensity, &figure[FIGURE_INTENSITY], sizeof(l->intensity));
}

/* --- parts of a function ------------------------------------------------------------------------- */

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
	l->n_blocks += b->n > 0 ? 1 : 0;
}

static bool is_in(const struct graph *g, uint32_t loop, uint32_t b)
{
	uint32_t at = g->block[b].loop;
	while (at != GRAPH_NONE && at != loop)
		at = g->loop[at].parent;
	return at == loop;
}

/* Entries divided by iterations, from samples per instruction: those in blocks that lead into the
 * loop, divided by those in blocks that run in each iteration. */
static double entries_of(const struct estimate_question *q, uint32_t loop, const double *samples)
{
	const struct graph *g = q->graph;
	double before = 0, each = 0, n_each = 0;
	for (uint32_t b = 0; b < g->n_blocks; b++) {
		const struct block *block = &g->block[b];
		if (block->loop == loop && block->each_round) {
			each += samples[b];
			n_each += block->n;
		}
		bool leads = block->next[0] == g->loop[loop].head ||
			     block->next[1] == g->loop[loop].head;
		if (leads && block->n > 0 && !is_in(g, loop, b))
			before += fmax(samples[b], 0.5) / block->n;
	}
	return each > 0 && n_each > 0 ? before / (each / n_each) : 0;
}

static int finish_loop(const struct estimate_question *q, uint32_t loop, const double *samples,
	struct code_loop *l)
{
	struct part p = {.q = q, .samples = samples};
	struct code_estimate figure[N_FIGURES];
	bool branches;
	int r = rounds_make(&p.rounds, q->graph, loop, &p.block, &p.n, &branches);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < p.n; i++)
		add_facts(l, q, &q->graph->block[p.block[i]]);
	p.entries = entries_of(q, loop, samples);
	r = estimate(&p, !branches, figure);
	rounds_free(p.rounds);
	if (r == 0)
		take_figures(l, figure);
	return r;
}

static int finish_rest(
	const struct estimate_question *q, const double *samples, struct code_loop *l)
{
	const struct graph *g = q->graph;
	struct code_estimate figure[N_FIGURES];
	_cleanup_(freep) uint32_t *block = calloc((size_t)g->n_blocks + 1, sizeof(*block));
	if (!block)
		return -ENOMEM;
	struct part p = {.q = q, .samples = samples, .block = block};
	for (uint32_t b = 0; b < g->n_blocks; b++)
		if (g->block[b].loop == GRAPH_NONE) {
			add_facts(l, q, &g->block[b]);
			block[p.n++] = b;
		}
	int r = estimate(&p, p.n == 1, figure);
	if (r == 0)
		take_figures(l, figure);
	return r;
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

/* Sums: a slot per loop, and one for code outside of loops. */
struct scratch {
	struct code_loop *loop;
	double *hottest_ns, *samples; /* samples: by block */
};

static int scratch_make(struct scratch *s, const struct graph *g)
{
	s->loop = calloc((size_t)g->n_loops + 1, sizeof(*s->loop));
	s->hottest_ns = calloc((size_t)g->n_loops + 1, sizeof(*s->hottest_ns));
	s->samples = calloc((size_t)g->n_blocks + 1, sizeof(*s->samples));
	return s->loop && s->hottest_ns && s->samples ? 0 : -ENOMEM;
}

static void scratch_clear(struct scratch *s)
{
	free(s->loop);
	free(s->hottest_ns);
	free(s->samples);
}

static void add_samples(const struct estimate_question *q, struct scratch *s)
{
	const struct graph *g = q->graph;
	for (uint32_t i = 0; i < q->n_samples; i++) {
		uint32_t n;
		if (!find(q, q->sample[i].offset, &n))
			continue; /* not at an instruction: data, or the sample is from another file
				   * */
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
		struct code_loop *l = &s.loop[slot];
		bool is_loop = slot < g->n_loops;
		if (l->samples == 0)
			continue;
		l->function = q->instruction[0].address;
		l->start = UINT64_MAX;
		l->depth = is_loop ? g->loop[slot].depth : 0;
		l->flags = g->indirect ? CODE_INDIRECT : 0;
		r = is_loop ? finish_loop(q, slot, s.samples, l) : finish_rest(q, s.samples, l);
		if (r < 0)
			return r;
		ret_loop[(*ret_n)++] = *l;
	}
	return 0;
}
