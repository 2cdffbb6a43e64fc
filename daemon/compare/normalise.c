/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A function is out of the stable set if it shifted against the weighted median of all by more than
 * chance and 2 % explain. What it is divided by then changes, so this is done until the set stays as
 * it is. The function itself is never in the sum that it is divided by.
 */
#include "daemon/compare/compare_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX 20
#define STABLE_ERRORS 3.0
#define STABLE_SHIFT 0.02
#define HALF 0.5 /* is added to counts, so that none has a logarithm */

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
		y[r] = log(samples[r] + HALF) - log(others + HALF);
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

/* The shift that half of all samples are below. room: t->n. */
static double median_shift(const struct tested *t, struct shift *room)
{
	double sum = 0, below = 0;

	for (size_t i = 0; i < t->n; i++) {
		room[i] = (struct shift){t->shift[i], t->samples[i]};
		sum += t->samples[i];
	}
	qsort(room, t->n, sizeof(*room), by_shift);
	for (size_t i = 0; i < t->n; i++) {
		below += room[i].weight;
		if (2 * below >= sum)
			return room[i].shift;
	}
	return 0;
}

int normalise(struct tested *t)
{
	_cleanup_(freep) struct shift *room = calloc(t->n + 1, sizeof(*room));
	if (!room)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++)
		t->is_stable[i] = true;

	bool changed = true;
	for (unsigned round = 0; changed && round < ROUNDS_MAX; round++) {
		sum_stable(t);
		for (size_t i = 0; i < t->n; i++)
			divide(t, i);
		moderate(t);
		const double median = median_shift(t, room);
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
	return 0;
}
