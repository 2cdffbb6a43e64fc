/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Internals of a comparison: the data that its steps share
 *
 * normalise.c finds the stable set and divides by it, shrinkage.c draws variances towards their trend, permutation.c
 * finds what chance alone gives, total.c tests the total.
 */

#include "daemon/compare/compare.h"

#define COMPARE_HALF 0.5 /* added to each count, so that its logarithm exists */

/* The functions that are tested, in the order of the input. */
struct tested {
	const struct compare_runs *runs;
	size_t n, n_runs;
	size_t n_side[2];     /* runs of baseline, candidate */
	size_t *function;     /* [n]: its index in the input */
	double *samples;      /* [n]: mean of a run */
	double *share;        /* [n]: of all functions' samples, baseline */
	bool *is_stable;      /* [n] */
	double *y;            /* [n * n_runs]: logarithm of samples over the stable set's */
	double *sum;          /* [n_runs]: samples of the stable set */
	double *shift;        /* [n]: mean of the candidate's y less the baseline's */
	double *squares;      /* [n]: squares around the mean of all runs */
	double *variance;     /* [n]: moderated */
	double prior_degrees; /* degrees of the moderation; INFINITY: only the trend counts */
	double trend_level, trend_slope; /* variance = level + slope / samples */
};

/* Weight of one sample of a run: the number of samples that it represents. */
static inline double run_weight(const struct compare_runs *runs, size_t run)
{
	return runs->weight ? runs->weight[run] : 1;
}

/* Fill y, shift, squares, is_stable, and by shrink_variances() the variances. If a function is the only one
 * in the stable set, it is not divided: its y is the logarithm of its samples. 0 or -ENOMEM. */
int normalise(struct tested *t);

/* Fill variance, prior_degrees and the trend from squares and shift. */
void shrink_variances(struct tested *t);

/* Degrees of freedom of a moderated variance. */
double moderated_degrees(const struct tested *t);

/* The variance of one function within its sides, before moderation. */
double variance_within(const struct tested *t, double squares, double shift);

/* Standard error of a shift with that variance. */
double error_of_shift(const struct tested *t, double variance);

/* The variance by the trend of a function with that mean of samples. */
double variance_trend(const struct tested *t, double samples);

/* The moderated variance of a function: own is its variance, samples its mean. */
double variance_moderated(const struct tested *t, double samples, double own);

/* For each permutation of the labels, the largest t of a tier, in rising order. */
struct permutations {
	double largest[2][COMPARE_PERMUTATIONS]; /* hot functions, others */
};
/* 0 or -ENOMEM. */
int permute(const struct tested *t, uint64_t seed, struct permutations *ret_permutations);

/* Probability that the largest t of the tier is by chance at least this value. */
double permutations_p(const struct permutations *s, bool hot, double t);

/* The t that is exceeded with probability alpha. */
double permutations_quantile(const struct permutations *s, bool hot, double alpha);

static inline bool tested_is_hot(const struct tested *t, size_t i)
{
	return t->share[i] >= COMPARE_HOT_SHARE;
}

/* Not in the stable set because it became faster: no test asks whether it is slower. */
static inline bool tested_is_faster(const struct tested *t, size_t i)
{
	return !t->is_stable[i] && t->shift[i] < 0;
}

/* Estimate, interval and bound of a shift of logarithms. */
void change_from(double shift, double error, double degrees, struct compare_change *ret_change);

/* Find the least change that could have been detected, and the number of runs that would suffice.
 * critical: the t that rejects; error: that of the shift; variance: that of one run. */
void plan_from(const struct compare_options *o, double critical, double error, double variance,
	struct compare_change *change);

/* The total, tested alone: change, interval, bound, p, and the spread of its logarithm. 0 or -ENOMEM. */
int compare_totals(const struct compare_runs *runs, const struct compare_options *o, double alpha,
	struct compare_change *ret_change, double *ret_spread);
