/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The squares around the mean of all runs are the same for any labels, so a permutation costs one
 * addition for each run of the candidate and function.
 *
 * Functions that became faster are left out, if their tier has others: permutations that are nearly the
 * opposite of the true labels would give them the largest t, and so hide functions that became
 * slower.
 */
#include "daemon/compare/compare_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/compare/distribution.h"

/* Pick as many runs as the candidate has to the front of order, each choice as likely as
 * another. */
static void pick_candidates(const struct tested *t, size_t *order, struct random_sequence *random)
{
	for (size_t i = 0; i < t->n_side[1]; i++) {
		const size_t other = i + random_below(random, t->n_runs - i);
		const size_t run = order[other];
		order[other] = order[i];
		order[i] = run;
	}
}

static double t_of(const struct tested *t, size_t i, double all, const size_t *order)
{
	const double *y = t->y + i * t->n_runs;
	double sum = 0;

	for (size_t k = 0; k < t->n_side[1]; k++)
		sum += y[order[k]];
	const double shift = sum / (double)t->n_side[1] - (all - sum) / (double)t->n_side[0];
	const double own = variance_within(t, t->squares[i], shift);
	return shift / error_of_shift(t, variance_moderated(t, t->samples[i], own));
}

static int rising(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int permute(const struct tested *t, uint64_t seed, struct permutations *ret_permutations)
{
	struct permutations *s = ret_permutations;
	_cleanup_(freep) size_t *order = calloc(t->n_runs + 1, sizeof(*order));
	_cleanup_(freep) double *all = calloc(t->n + 1, sizeof(*all));
	struct random_sequence random = {seed};
	size_t n[2] = {0};

	if (!order || !all)
		return -ENOMEM;
	for (size_t r = 0; r < t->n_runs; r++)
		order[r] = r;
	for (size_t i = 0; i < t->n; i++) {
		n[!tested_is_hot(t, i)] += !tested_is_faster(t, i);
		for (size_t r = 0; r < t->n_runs; r++)
			all[i] += t->y[i * t->n_runs + r];
	}
	for (size_t k = 0; k < COMPARE_PERMUTATIONS; k++) {
		pick_candidates(t, order, &random);
		s->largest[0][k] = s->largest[1][k] = -INFINITY;
		for (size_t i = 0; i < t->n; i++) {
			const bool other = !tested_is_hot(t, i);
			if (tested_is_faster(t, i) && n[other] > 0)
				continue;
			double *largest = &s->largest[other][k];
			*largest = fmax(*largest, t_of(t, i, all[i], order));
		}
	}
	for (int tier = 0; tier < 2; tier++)
		qsort(s->largest[tier], COMPARE_PERMUTATIONS, sizeof(double), rising);
	return 0;
}

/* The true labels count as one of the permutations, so p is never 0. */
double permutations_p(const struct permutations *s, bool hot, double t)
{
	size_t below = 0;

	while (below < COMPARE_PERMUTATIONS && s->largest[!hot][below] < t)
		below++;
	return (double)(COMPARE_PERMUTATIONS - below + 1) / (COMPARE_PERMUTATIONS + 1);
}

double permutations_quantile(const struct permutations *s, bool hot, double alpha)
{
	const size_t above = (size_t)(alpha * (COMPARE_PERMUTATIONS + 1));
	return s->largest[!hot][COMPARE_PERMUTATIONS - (above > 0 ? above : 1)];
}
