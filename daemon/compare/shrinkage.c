/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The variance of a logarithm of counts falls with the count: level + slope / samples, where slope is
 * the overdispersion of sampling and level the variance between runs. We fit that trend to all
 * functions. The less single functions scatter around it, the more weight the trend gets against a
 * function's own variance.
 */
#include "daemon/compare/compare_private.h"

#include <math.h>

#include "daemon/compare/distribution.h"

#define FIT_ROUNDS 20
#define TREND_FUNCTIONS_MIN 3
/* Largest variance that the fit uses, as a multiple of the trend, so that one function cannot
 * distort the fit. */
#define OUTLIER 5.0
#define VARIANCE_MIN 1e-10

static double degrees(const struct tested *t)
{
	return (double)t->n_runs - 2;
}

double variance_within(const struct tested *t, double squares, double shift)
{
	const double between =
		(double)t->n_side[0] * (double)t->n_side[1] / (double)t->n_runs * shift * shift;
	return fmax(VARIANCE_MIN, (squares - between) / degrees(t));
}

double error_of_shift(const struct tested *t, double variance)
{
	return sqrt(variance * (1 / (double)t->n_side[0] + 1 / (double)t->n_side[1]));
}

double variance_trend(const struct tested *t, double samples)
{
	return fmax(VARIANCE_MIN, t->trend_level + t->trend_slope / samples);
}

double variance_moderated(const struct tested *t, double samples, double own)
{
	if (t->prior_degrees == 0)
		return own;
	const double trend = variance_trend(t, samples);
	if (isinf(t->prior_degrees))
		return trend;
	return (t->prior_degrees * trend + degrees(t) * own) / (t->prior_degrees + degrees(t));
}

double moderated_degrees(const struct tested *t)
{
	return degrees(t) + t->prior_degrees;
}

/* Least squares, each divided by the square of the variance that the last round predicts, since the
 * error of a variance is proportional to it. */
static void fit_trend(struct tested *t)
{
	t->trend_level = 0;
	t->trend_slope = 1;
	for (unsigned round = 0; round < FIT_ROUNDS; round++) {
		double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
		for (size_t i = 0; i < t->n; i++) {
			const double x = 1 / t->samples[i],
				     expected = variance_trend(t, t->samples[i]);
			const double y = fmin(t->variance[i], OUTLIER * expected);
			const double weight = 1 / (expected * expected);
			w += weight;
			wx += weight * x;
			wxx += weight * x * x;
			wy += weight * y;
			wxy += weight * x * y;
		}
		const double determinant = w * wxx - wx * wx;
		if (determinant > 1e-9 * w * wxx) {
			t->trend_slope = (w * wxy - wx * wy) / determinant;
			t->trend_level = (wy - t->trend_slope * wx) / w;
		}
		/* functions of one size say nothing about the slope, and noise may make one negative */
		if (determinant <= 1e-9 * w * wxx || t->trend_level < 0) {
			t->trend_level = 0;
			t->trend_slope = wxy / wxx;
		} else if (t->trend_slope < 0) {
			t->trend_slope = 0;
			t->trend_level = wy / w;
		}
	}
}

/* Scatter of the logarithms of variances, beyond the part that their degrees of freedom explain.
 * Source: Smyth 2004, section 6.2. */
static void fit_prior(struct tested *t)
{
	const double half = degrees(t) / 2;
	double sum = 0, squares = 0;

	for (size_t i = 0; i < t->n; i++)
		sum += log(t->variance[i] / variance_trend(t, t->samples[i]));
	const double mean = sum / (double)t->n;
	for (size_t i = 0; i < t->n; i++) {
		const double e = log(t->variance[i] / variance_trend(t, t->samples[i])) - mean;
		squares += e * e;
	}
	const double excess = squares / ((double)t->n - 1) - trigamma(half);
	double scale = mean - digamma(half) + log(half);
	t->prior_degrees = INFINITY;
	if (excess > 0) {
		const double prior = trigamma_inverse(excess);
		t->prior_degrees = 2 * prior;
		scale += digamma(prior) - log(prior);
	}
	t->trend_level *= exp(scale);
	t->trend_slope *= exp(scale);
}

void shrink_variances(struct tested *t)
{
	for (size_t i = 0; i < t->n; i++)
		t->variance[i] = variance_within(t, t->squares[i], t->shift[i]);
	fit_trend(t);
	t->prior_degrees = 0;
	if (t->n >= TREND_FUNCTIONS_MIN)
		fit_prior(t);
	for (size_t i = 0; i < t->n; i++)
		t->variance[i] = variance_moderated(t, t->samples[i], t->variance[i]);
}
