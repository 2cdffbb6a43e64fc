/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A function leaves the stable set if it shifted against the weighted median of all by more than
 * chance and 2 % explain. That changes the sum that functions are divided by, so we repeat until
 * the set stays the same. A function itself is never in the sum that it is divided by.
 *
 * If half of a program grew, the median may be that of a function that grew, and functions that stayed the same then
 * seem to shrink. Alternating runs share clock and neighbours, so the stable set itself should not shift. If it shifts
 * by more than its runs scatter, we take the functions that did not shift by themselves, provided that they are a
 * third of those whose own shift is known well enough.
 */
#include "daemon/compare/compare_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 20
#define STABLE_ERRORS 3.0
#define STABLE_SHIFT 0.02
/* Limits of the stable set's own shift. With ten runs, chance alone exceeds four errors once in 250 comparisons, and a
 * clock or a neighbour can cause a shift below 5 %. A set that replaces it must be at least a third of the program,
 * which is also the largest weight of a function. */
#define SET_ERRORS 4.0
#define SET_SHIFT 0.05
#define SET_SHARE_MIN (1 / 3.0)

static const double *samples_of(const struct tested *t, size_t i)
{
	return t->runs->samples + t->function[i] * t->n_runs;
}

static void sum_stable(struct tested *t)
{
	memset(t->sum, 0, t->n_runs * sizeof(*t->sum));
	for (size_t i = 0; i < t->n; i++) {
		if (!t->is_stable[i])
			continue;
		const double *samples = samples_of(t, i);
		for (size_t r = 0; r < t->n_runs; r++)
			t->sum[r] += samples[r];
	}
}

static void divide(struct tested *t, size_t i)
{
	const double *samples = samples_of(t, i);
	double *y = t->y + i * t->n_runs;
	double sum[2] = {0}, mean = 0;

	for (size_t r = 0; r < t->n_runs; r++) {
		const double others = t->sum[r] - (t->is_stable[i] ? samples[r] : 0);
		y[r] = log(samples[r] + COMPARE_HALF) - log(others + COMPARE_HALF);
		sum[t->runs->candidate[r]] += y[r];
	}
	mean = (sum[0] + sum[1]) / (double)t->n_runs;
	t->squares[i] = 0;
	for (size_t r = 0; r < t->n_runs; r++)
		t->squares[i] += (y[r] - mean) * (y[r] - mean);
	t->shift[i] = sum[1] / (double)t->n_side[1] - sum[0] / (double)t->n_side[0];
}

struct shift {
	double shift, weight;
};

static int by_shift(const void *a, const void *b)
{
	const struct shift *x = a, *y = b;
	return (x->shift > y->shift) - (x->shift < y->shift);
}

/* The most that a function may weigh, so that none has more than a third of all weights. Otherwise a function with
 * more than half of the program's time would be the median itself, and all others would seem to shift in its place.
 * With two functions there is no way to know which of them shifted. */
static double weight_most(const struct tested *t)
{
	double largest[3] = {0}, sum = 0;

	for (size_t i = 0; i < t->n; i++) {
		double samples = t->samples[i];
		sum += samples;
		for (size_t k = 0; k < 3; k++) {
			const double smaller = fmin(largest[k], samples);
			largest[k] = fmax(largest[k], samples);
			samples = smaller;
		}
	}
	if (t->n < 3 || 3 * largest[0] <= sum)
		return largest[0];
	const double others = sum - largest[0];
	if (2 * largest[1] <= others)
		return others / 2;                    /* the largest is cut to a third */
	return fmax(largest[2], others - largest[1]); /* two or three weigh the same */
}

/* The median shift of a set (NULL: of all functions), weighted by samples up to weight_most. room: t->n. */
static double median_shift(const struct tested *t, const bool *in_set, struct shift *room)
{
	const double most = weight_most(t);
	double sum = 0, below = 0;
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (in_set && !in_set[i])
			continue;
		room[n] = (struct shift){t->shift[i], fmin(t->samples[i], most)};
		sum += room[n++].weight;
	}
	qsort(room, n, sizeof(*room), by_shift);
	for (size_t i = 0; i < n; i++) {
		below += room[i].weight;
		if (2 * below >= sum)
			return room[i].shift;
	}
	return 0;
}

/* Difference between the two sides' means of the runs' values, and its error. */
struct difference {
	double shift, error;
};

static struct difference difference_of(const struct tested *t, const double *y)
{
	double sum[2] = {0}, squares = 0;
	for (size_t r = 0; r < t->n_runs; r++)
		sum[t->runs->candidate[r]] += y[r];
	const double mean[2] = {sum[0] / (double)t->n_side[0], sum[1] / (double)t->n_side[1]};
	for (size_t r = 0; r < t->n_runs; r++) {
		const double off = y[r] - mean[t->runs->candidate[r]];
		squares += off * off;
	}
	return (struct difference){
		mean[1] - mean[0], error_of_shift(t, squares / (double)(t->n_runs - 2))};
}

/* The shift of a function's own samples, not relative to other functions. room: t->n_runs. */
static struct difference alone(const struct tested *t, size_t i, double *room)
{
	for (size_t r = 0; r < t->n_runs; r++)
		room[r] = log((samples_of(t, i)[r] + COMPARE_HALF) * run_weight(t->runs, r));
	return difference_of(t, room);
}

/* Difference between the sides in the logarithm of the stable set's sum. */
static struct difference set_difference(const struct tested *t, double *room)
{
	for (size_t r = 0; r < t->n_runs; r++)
		room[r] = log((t->sum[r] + COMPARE_HALF) * run_weight(t->runs, r));
	return difference_of(t, room);
}

static bool is_far(const struct difference *d)
{
	return fabs(d->shift) > fmax(SET_SHIFT, SET_ERRORS * d->error);
}

/* Repeat until the set stays the same. from: the functions whose median is the reference; NULL: all. */
static void find_stable(struct tested *t, const bool *from, struct shift *room)
{
	bool changed = true;
	for (unsigned round = 0; changed && round < ROUNDS_MAX; round++) {
		sum_stable(t);
		for (size_t i = 0; i < t->n; i++)
			divide(t, i);
		shrink_variances(t);
		const double median = median_shift(t, from, room);
		changed = false;
		/* in the last round the set stays what y was made with */
		for (size_t i = 0; i < t->n && round + 1 < ROUNDS_MAX; i++) {
			const double limit = fmax(
				STABLE_SHIFT, STABLE_ERRORS * error_of_shift(t, t->variance[i]));
			const bool is_stable = fabs(t->shift[i] - median) <= limit;
			changed |= is_stable != t->is_stable[i];
			t->is_stable[i] = is_stable;
		}
	}
}

static void start_from(struct tested *t, const bool *set)
{
	for (size_t i = 0; i < t->n; i++)
		t->is_stable[i] = !set || set[i];
}

/* Find the functions that did not shift by themselves. Returns their share of those whose own
 * shift is known well enough to be distinguished from the stable set's. room: t->n_runs. */
static double find_still(const struct tested *t, double set_shift, bool *still, double *room)
{
	const double most = weight_most(t);
	double part = 0, all = 0;
	for (size_t i = 0; i < t->n; i++) {
		const struct difference d = alone(t, i, room);
		const double limit = fmax(STABLE_SHIFT, STABLE_ERRORS * d.error);
		if (limit > fabs(set_shift) / 2)
			continue;
		still[i] = fabs(d.shift) <= limit;
		all += fmin(t->samples[i], most);
		part += still[i] ? fmin(t->samples[i], most) : 0;
	}
	return all > 0 ? part / all : 0;
}

int normalise(struct tested *t)
{
	_cleanup_(freep) struct shift *room = calloc(t->n + 1, sizeof(*room));
	_cleanup_(freep) double *y = calloc(t->n_runs + 1, sizeof(*y));
	_cleanup_(freep) bool *still = calloc(t->n + 1, sizeof(*still));
	if (!room || !y || !still)
		return -ENOMEM;
	start_from(t, NULL);
	find_stable(t, NULL, room);
	const struct difference set = set_difference(t, y);
	if (!is_far(&set) || find_still(t, set.shift, still, y) < SET_SHARE_MIN)
		return 0;
	start_from(t, still);
	find_stable(t, still, room);
	return 0;
}
