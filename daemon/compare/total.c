/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The total shows a change that all functions share, which tests of single functions cannot see. It
 * has the full noise of the machine: another tenant can make a single run 1.5 times as long. If k
 * runs of a side are far from its median, k runs are trimmed at both ends of both sides; if none is
 * far, none is trimmed, since trimming costs power.
 */
#include "daemon/compare/compare_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/compare/distribution.h"

/* Limit, in standard deviations from the median, estimated from the median deviation. Of normal
 * values, one in 16,000 is beyond it. */
#define FAR 4.0
#define DEVIATION 1.4826            /* standard deviation over median deviation, of normal values */
#define TRIMMED_MOST 4              /* at each end of a side, at most one run in this many */
#define POWER_80 0.8416212335729143 /* quantile of the normal distribution: four of five cases */

/* A side's trimmed mean, its squared error and degrees of freedom. */
struct side {
	double mean, error2, degrees;
	double variance; /* of all its runs */
};

static int rising(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double mean_of(const double *y, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += y[i];
	return sum / (double)n;
}

static double variance_of(const double *y, size_t n)
{
	const double mean = mean_of(y, n);
	double squares = 0;
	for (size_t i = 0; i < n; i++)
		squares += (y[i] - mean) * (y[i] - mean);
	return squares / (double)(n - 1);
}

/* y is sorted, and its ends replaced by the outermost that are kept (winsorised). */
static struct side side_of(double *y, size_t n, size_t trim)
{
	const size_t kept = n - 2 * trim;
	struct side side = {.degrees = (double)kept - 1};

	side.variance = variance_of(y, n);
	side.mean = mean_of(y + trim, kept);
	for (size_t i = 0; i < trim; i++) {
		y[i] = y[trim];
		y[n - 1 - i] = y[n - 1 - trim];
	}
	side.error2 = variance_of(y, n) * (double)(n - 1) / ((double)kept * ((double)kept - 1));
	return side;
}

static double median_of(const double *sorted, size_t n)
{
	return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* Choose the number of runs to trim. y: both sides, one behind the other, each sorted. room: for all. */
static size_t far_runs(const double *y, const size_t *n, double *room)
{
	size_t n_far[2] = {0}, k = 0;

	for (int side = 0; side < 2; side++) {
		const double *from = y + (side ? n[0] : 0), median = median_of(from, n[side]);
		for (size_t i = 0; i < n[side]; i++)
			room[k++] = fabs(from[i] - median);
	}
	qsort(room, k, sizeof(*room), rising);
	const double limit = FAR * DEVIATION * median_of(room, k);
	for (int side = 0; side < 2; side++) {
		const double *from = y + (side ? n[0] : 0), median = median_of(from, n[side]);
		for (size_t i = 0; i < n[side]; i++)
			n_far[side] += fabs(from[i] - median) > limit;
	}
	const size_t most = (n[0] < n[1] ? n[0] : n[1]) / TRIMMED_MOST;
	const size_t far = n_far[0] > n_far[1] ? n_far[0] : n_far[1];
	return far < most ? far : most;
}

void change_from(double shift, double error, double degrees, struct compare_change *ret_change)
{
	const double two_sided = student_quantile(0.025, degrees) * error;

	ret_change->change = expm1(shift);
	ret_change->low = expm1(shift - two_sided);
	ret_change->high = expm1(shift + two_sided);
	ret_change->above = expm1(shift + student_quantile(0.05, degrees) * error);
}

void plan_from(const struct compare_options *o, double critical, double error, double variance,
	struct compare_change *change)
{
	const double allowed = log1p(o->allowance), errors = critical + POWER_80;
	const double effect = fmax(1e-6, log1p(o->effect) - allowed);

	change->seen_from = fmax(o->margin, expm1(allowed + errors * error));
	change->runs_needed = ceil(2 * errors * errors * variance / (effect * effect));
}

int compare_totals(const struct compare_runs *runs, const struct compare_options *o, double alpha,
	struct compare_change *ret_change, double *ret_spread)
{
	_cleanup_(freep) double *y = calloc(2 * runs->n_runs, sizeof(*y));
	size_t n[2] = {0};
	if (!y)
		return -ENOMEM;
	for (size_t r = 0; r < runs->n_runs; r++)
		n[runs->candidate[r]]++;
	double *next[2] = {y, y + n[0]};
	for (size_t r = 0; r < runs->n_runs; r++)
		*next[runs->candidate[r]]++ = log(runs->total[r]);
	qsort(y, n[0], sizeof(*y), rising);
	qsort(y + n[0], n[1], sizeof(*y), rising);
	const size_t trim = far_runs(y, n, y + runs->n_runs);
	const struct side a = side_of(y, n[0], trim), b = side_of(y + n[0], n[1], trim);
	const double error2 = fmax(1e-20, a.error2 + b.error2), error = sqrt(error2);
	const double degrees =
		error2 * error2 /
		fmax(1e-40, a.error2 * a.error2 / a.degrees + b.error2 * b.error2 / b.degrees);
	const double shift = b.mean - a.mean;
	const double variance =
		(a.variance * (double)(n[0] - 1) + b.variance * (double)(n[1] - 1)) /
		(double)(n[0] + n[1] - 2);

	change_from(shift, error, degrees, ret_change);
	ret_change->p = student_above((shift - log1p(o->allowance)) / error, degrees);
	plan_from(o, student_quantile(alpha, degrees), error, variance, ret_change);
	*ret_spread = sqrt(variance);
	return 0;
}

int compare_value(const double *value, const bool *candidate, size_t n_runs,
	struct compare_change *ret_change)
{
	const struct compare_options options = COMPARE_OPTIONS_DEFAULT;
	_cleanup_(freep) double *total = calloc(n_runs + 1, sizeof(*total));
	_cleanup_(freep) bool *side = calloc(n_runs + 1, sizeof(*side));
	struct compare_runs runs = {.total = total, .candidate = side};
	struct compare_change c = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
	double log_sum[2] = {0}, spread;
	size_t n[2] = {0};
	int r = total && side ? 0 : -ENOMEM;

	for (size_t i = 0; i < n_runs && r == 0; i++) {
		if (!(value[i] > 0))
			continue;
		total[runs.n_runs] = value[i];
		side[runs.n_runs++] = candidate[i];
		log_sum[candidate[i]] += log(value[i]);
		n[candidate[i]]++;
	}
	if (r == 0 && n[0] > 1 && n[1] > 1)
		r = compare_totals(&runs, &options, 0.05, &c, &spread);
	else if (n[0] > 0 && n[1] > 0)
		c.change = expm1(log_sum[1] / (double)n[1] - log_sum[0] / (double)n[0]);
	c.p = c.seen_from = c.runs_needed = NAN;
	*ret_change = c;
	return r;
}
