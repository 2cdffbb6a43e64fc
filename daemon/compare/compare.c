/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The choice of tested functions must not depend on the side of a run, or the test would apply to
 * functions that were chosen for their difference. So they are chosen by their mean over both
 * sides.
 */
#include "daemon/compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/compare/compare_private.h"

/* Error probability of each of the questions; 0.05 in total. */
#define ALPHA_TOTAL 0.01
#define ALPHA_HOT 0.0175
#define ALPHA_OTHER 0.0175

struct comparison *comparison_free(struct comparison *c)
{
	if (c)
		free(c->function);
	free(c);
	return NULL;
}

static void tested_clear(struct tested *t)
{
	free(t->function);
	free(t->samples);
	free(t->share);
	free(t->is_stable);
	free(t->y);
	free(t->sum);
	free(t->shift);
	free(t->squares);
	free(t->variance);
}

static int check(const struct compare_runs *runs, const struct compare_options *o, size_t *n_side)
{
	if (runs->n_runs > COMPARE_RUNS_MAX)
		return -E2BIG;
	if (!(o->margin >= 0) || !(o->allowance >= 0) || !(o->effect > o->allowance) ||
		o->looks < 1 || o->looks > COMPARE_LOOKS_MAX)
		return -EINVAL;
	for (size_t r = 0; r < runs->n_runs; r++) {
		if (!(runs->total[r] > 0))
			return -EINVAL;
		n_side[runs->candidate[r]]++;
	}
	return n_side[0] > 0 && n_side[1] > 0 ? 0 : -EINVAL;
}

/* Means of both sides go to function->samples, those of the baseline to its share. */
static void take_means(const struct compare_runs *runs, const size_t *n_side, struct comparison *c)
{
	double baseline = 0;

	for (size_t i = 0; i < runs->n_functions; i++) {
		double sum[2] = {0};
		for (size_t r = 0; r < runs->n_runs; r++)
			sum[runs->candidate[r]] += runs->samples[i * runs->n_runs + r];
		c->function[i].samples = (sum[0] + sum[1]) / (double)runs->n_runs;
		c->function[i].share = sum[0] / (double)n_side[0];
		c->function[i].is_tested = c->function[i].samples >= COMPARE_SAMPLES_MIN;
		c->n_tested += c->function[i].is_tested;
		baseline += c->function[i].share;
	}
	for (size_t i = 0; i < runs->n_functions && baseline > 0; i++)
		c->function[i].share /= baseline;
	c->baseline = baseline;
}

/* Share of the baseline that a change applies to. If the baseline lacks the function, it is the
 * share of the samples that are added. */
static double part_of(const struct comparison *c, const struct compare_function *f, double added)
{
	return c->baseline > 0 ? fmax(f->share, added / c->baseline) : f->share;
}

static int take_tested(const struct compare_runs *runs, const size_t *n_side,
	const struct comparison *c, struct tested *t)
{
	const size_t n = c->n_tested + 1; /* no tested function is not a failure */

	if (c->n_tested * runs->n_runs > COMPARE_CELLS_MAX)
		return -E2BIG;
	t->runs = runs;
	t->n_runs = runs->n_runs;
	t->n_side[0] = n_side[0];
	t->n_side[1] = n_side[1];
	t->function = calloc(n, sizeof(*t->function));
	t->samples = calloc(n, sizeof(*t->samples));
	t->share = calloc(n, sizeof(*t->share));
	t->is_stable = calloc(n, sizeof(*t->is_stable));
	t->y = calloc(n * runs->n_runs, sizeof(*t->y));
	t->sum = calloc(runs->n_runs, sizeof(*t->sum));
	t->shift = calloc(n, sizeof(*t->shift));
	t->squares = calloc(n, sizeof(*t->squares));
	t->variance = calloc(n, sizeof(*t->variance));
	if (!t->function || !t->samples || !t->share || !t->is_stable || !t->y || !t->sum ||
		!t->shift || !t->squares || !t->variance)
		return -ENOMEM;
	for (size_t i = 0; i < runs->n_functions; i++) {
		if (!c->function[i].is_tested)
			continue;
		t->function[t->n] = i;
		t->samples[t->n] = c->function[i].samples;
		t->share[t->n++] = c->function[i].share;
	}
	return 0;
}

/* Absolute shift of the function's samples, and its error. It is not relative to other functions: a
 * function that stays the same while all others become faster does not grow. */
struct alone {
	double shift, error;
};

static struct alone alone_of(const struct tested *t, size_t i)
{
	const double *samples = t->runs->samples + t->function[i] * t->n_runs;
	double sum[2] = {0}, squares[2] = {0};
	struct alone alone = {0, 0};

	for (size_t r = 0; r < t->n_runs; r++) {
		const double y = log((samples[r] + COMPARE_HALF) * run_weight(t->runs, r));
		sum[t->runs->candidate[r]] += y;
		squares[t->runs->candidate[r]] += y * y;
	}
	double within = 0, inverse = 0;
	for (int side = 0; side < 2; side++) {
		const double n = (double)t->n_side[side];
		alone.shift += (side ? sum[side] : -sum[side]) / n;
		within += squares[side] - sum[side] * sum[side] / n;
		inverse += 1 / n;
	}
	alone.error = sqrt(fmax(0, within) / (double)(t->n_runs - 2) * inverse);
	return alone;
}

/* Judge a row if the total fell: the row's divisor may have fallen too, so the row's own samples
 * must have grown. */
static void judge_where_total_fell(const struct tested *t, size_t i, struct compare_function *f)
{
	const struct alone alone = alone_of(t, i);
	struct compare_change by_itself;

	change_from(alone.shift, alone.error, (double)(t->n_runs - 2), &by_itself);
	f->is_slower = f->is_slower && by_itself.low > 0;
	f->adds_most = fmin(f->adds_most, f->share * by_itself.above);
}

static void judge_function(const struct tested *t, size_t i, const struct permutations *s,
	const struct compare_options *o, struct comparison *c)
{
	struct compare_function *f = &c->function[t->function[i]];
	const bool hot = tested_is_hot(t, i);
	const double alpha = hot ? c->alpha_hot : c->alpha_other;
	const double error = error_of_shift(t, t->variance[i]);
	const double trend = variance_trend(t, t->samples[i]);

	change_from(t->shift[i], error, moderated_degrees(t), &f->own);
	f->own.p = tested_is_faster(t, i)
			   ? 1
			   : permutations_p(s, hot, (t->shift[i] - log1p(o->allowance)) / error);
	plan_from(o, permutations_quantile(s, hot, alpha), error, trend, &f->own);
	f->variance = t->variance[i];
	f->is_stable = t->is_stable[i];
	f->is_hot = hot;
	f->adds = part_of(c, f, COMPARE_HALF) * f->own.change;
	f->adds_most = part_of(c, f, COMPARE_HALF) * f->own.above;
	f->is_slower = f->own.p <= alpha && f->own.change >= o->margin;
	if (c->total.high < 0)
		judge_where_total_fell(t, i, f);
	c->n_stable += f->is_stable;
}

static int judge_functions(struct tested *t, const struct compare_options *o, struct comparison *c)
{
	_cleanup_(freep) struct permutations *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	int r = normalise(t);
	if (r == 0)
		r = permute(t, o->seed, s);
	for (size_t i = 0; r == 0 && i < t->n; i++)
		judge_function(t, i, s, o, c);
	return r;
}

/* Estimate the shift of a function that is not tested, from its absolute samples and their Poisson
 * error alone. */
static void estimate_by_sampling(const struct compare_runs *runs, size_t i, struct comparison *c)
{
	struct compare_function *f = &c->function[i];
	const double n[2] = {(double)c->n_baseline, (double)c->n_candidate};
	double sum[2] = {COMPARE_HALF, COMPARE_HALF}, time[2] = {0};

	for (size_t r = 0; r < runs->n_runs; r++) {
		const int side = runs->candidate[r];
		const double samples = runs->samples[i * runs->n_runs + r];
		sum[side] += samples;
		time[side] += (samples + COMPARE_HALF / n[side]) * run_weight(runs, r);
	}
	change_from(log(time[1] / n[1]) - log(time[0] / n[0]), sqrt(1 / sum[0] + 1 / sum[1]),
		INFINITY, &f->own);
	f->own.p = f->own.seen_from = f->own.runs_needed = NAN;
	f->adds = part_of(c, f, COMPARE_HALF / n[0]) * f->own.change;
}

/* Estimate all functions, but test none, if there are too few runs to see how runs differ. */
static void estimate_all(const struct compare_runs *runs, struct comparison *c)
{
	double mean[2] = {0};

	for (size_t r = 0; r < runs->n_runs; r++)
		mean[runs->candidate[r]] +=
			runs->total[r] /
			(double)(runs->candidate[r] ? c->n_candidate : c->n_baseline);
	c->total = (struct compare_change){mean[1] / mean[0] - 1, NAN, NAN, NAN, NAN, NAN, NAN};
	c->verdict = COMPARE_UNDECIDED;
	c->lacks = COMPARE_FEW_RUNS;
	c->n_tested = 0;
	for (size_t i = 0; i < runs->n_functions; i++) {
		c->function[i].is_tested = false;
		estimate_by_sampling(runs, i, c);
	}
}

struct run {
	int64_t begin_ns;
	bool candidate;
};

static int by_begin(const void *a, const void *b)
{
	const struct run *x = a, *y = b;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->candidate - y->candidate;
}

/* Did runs of both sides alternate at least half as often as they would by chance? If one side ran
 * after the other, a single change of the clock, a neighbour or the machine can explain the whole
 * difference. */
static int ran_in_turns(const struct compare_runs *runs, const size_t *n_side, bool *ret_in_turns)
{
	_cleanup_(freep) struct run *order = calloc(runs->n_runs, sizeof(*order));
	size_t changes = 0;
	if (!order)
		return -ENOMEM;
	for (size_t r = 0; r < runs->n_runs; r++)
		order[r] = (struct run){runs->begin_ns[r], runs->candidate[r]};
	qsort(order, runs->n_runs, sizeof(*order), by_begin);
	for (size_t r = 1; r < runs->n_runs; r++)
		changes += order[r].candidate != order[r - 1].candidate;
	*ret_in_turns = changes * runs->n_runs >= n_side[0] * n_side[1];
	return 0;
}

static void decide(const struct compare_options *o, bool in_turns, struct comparison *c)
{
	bool slower = c->total.p <= c->alpha_total && c->total.change >= o->margin;

	if (c->total.above > o->margin)
		c->lacks |= COMPARE_TOTAL_WIDE;
	for (size_t i = 0; i < c->n_functions; i++) {
		const struct compare_function *f = &c->function[i];
		slower |= f->is_slower;
		if (f->is_tested && f->adds_most > o->margin)
			c->lacks |= COMPARE_FUNCTIONS_WIDE;
	}
	c->verdict = slower ? COMPARE_SLOWER : c->lacks ? COMPARE_UNDECIDED : COMPARE_WITHIN;
	if (!in_turns)
		c->lacks |= COMPARE_NOT_IN_TURNS;
	if (!in_turns && !o->any_order)
		c->verdict = COMPARE_UNDECIDED;
}

int compare(const struct compare_runs *runs, const struct compare_options *options,
	struct comparison **ret_comparison)
{
	_cleanup_(tested_clear) struct tested t = {0};
	_cleanup_(comparison_freep) struct comparison *c = calloc(1, sizeof(*c));
	size_t n_side[2] = {0};
	bool in_turns = false;

	if (!c || !(c->function = calloc(runs->n_functions + 1, sizeof(*c->function))))
		return -ENOMEM;
	int r = check(runs, options, n_side);
	if (r < 0)
		return r;
	c->n_functions = runs->n_functions;
	c->n_baseline = n_side[0];
	c->n_candidate = n_side[1];
	c->alpha_total = ALPHA_TOTAL / options->looks;
	c->alpha_hot = ALPHA_HOT / options->looks;
	c->alpha_other = ALPHA_OTHER / options->looks;
	take_means(runs, n_side, c);
	if (n_side[0] < COMPARE_RUNS_MIN || n_side[1] < COMPARE_RUNS_MIN) {
		estimate_all(runs, c);
		*ret_comparison = TAKE_PTR(c);
		return 0;
	}
	if ((r = compare_totals(runs, options, c->alpha_total, &c->total, &c->common_spread)) < 0 ||
		(r = take_tested(runs, n_side, c, &t)) < 0 ||
		(r = judge_functions(&t, options, c)) < 0 ||
		(r = ran_in_turns(runs, n_side, &in_turns)) < 0)
		return r;
	for (size_t i = 0; i < runs->n_functions; i++)
		if (!c->function[i].is_tested)
			estimate_by_sampling(runs, i, c);
	decide(options, in_turns, c);
	*ret_comparison = TAKE_PTR(c);
	return 0;
}
