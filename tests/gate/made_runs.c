/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Counts are gamma-Poisson, all of a run share a factor, and each function has one of its own.
 */
#include "tests/gate/made_runs.h"

#include <math.h>

#include "daemon/compare/distribution.h"

#define HZ 99
#define COMMON_CV 0.0266 /* of hosted runners */
#define OWN_CV 0.01
#define OVERDISPERSION 1.5 /* variance over mean */
#define OUTLIER 1.3
#define FIRST_SHARE 0.20

static double normal(struct random_sequence *s)
{
	return sqrt(-2 * log(random_unit(s))) * cos(2 * M_PI * random_unit(s));
}

/* Source: G. Marsaglia and W. Tsang, "A simple method for generating gamma variables", 2000. */
static double gamma_of(struct random_sequence *s, double shape)
{
	if (shape < 1)
		return gamma_of(s, shape + 1) * pow(random_unit(s), 1 / shape);
	const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
	for (;;) {
		const double x = normal(s), v = pow(1 + c * x, 3);
		if (v > 0 && log(random_unit(s)) < x * x / 2 + d - d * v + d * log(v))
			return d * v;
	}
}

/* Large ones are split by a gamma variable: the time of a middle event.
 * Source: J. Ahrens and U. Dieter, "Computer methods for sampling from gamma, beta, Poisson and binomial
 * distributions", 1974; what follows the middle event is again Poisson. */
static double poisson(struct random_sequence *s, double mean)
{
	double n = 0;
	while (mean > 30) {
		const double m = floor(mean * 7 / 8), time = gamma_of(s, m);
		if (time > mean) { /* m - 1 events at random places of (0, time) */
			for (double i = 1; i < m; i++)
				n += random_unit(s) * time < mean;
			return n;
		}
		n += m;
		mean -= time;
	}
	double left = exp(-mean);
	for (double u = random_unit(s); u > left; u *= random_unit(s))
		n++;
	return n;
}

static double count_of(struct random_sequence *s, double mean)
{
	return poisson(s, gamma_of(s, mean / (OVERDISPERSION - 1)) * (OVERDISPERSION - 1));
}

/* 20, 5 and 1 %, and the others share the rest as Zipf has it; or the first has another share, and all
 * others the rest. */
static double share_of(unsigned function, double first)
{
	if (first > 0)
		return function == 0 ? first
				     : share_of(function, 0) * (1 - first) / (1 - FIRST_SHARE);
	double zipf = 0;
	for (int i = 1; i <= MADE_FUNCTIONS - 3; i++)
		zipf += 1.0 / i;
	return function == 0   ? FIRST_SHARE
	       : function == 1 ? 0.05
	       : function == 2 ? 0.01
			       : 0.74 / (function - 2) / zipf;
}

static void make_run(const struct made_scenario *s, double share[][2],
	struct random_sequence *random, struct made_runs *m, size_t r, double common)
{
	double factor = exp(common) * (m->candidate[r] ? 1 + s->all : 1);
	if (random_unit(random) < s->outliers)
		factor *= OUTLIER;
	m->total[r] = 0;
	for (unsigned f = 0; f < MADE_FUNCTIONS; f++) {
		const bool grows = m->candidate[r] && f == s->function;
		const double own = exp(OWN_CV * normal(random)) * (grows ? 1 + s->growth : 1);
		const double n = count_of(
			random, HZ * s->seconds * share[f][m->candidate[r]] * factor * own);
		m->samples[f * 2 * s->n + r] = n;
		m->total[r] += n / HZ;
	}
}

void make_runs(
	const struct made_scenario *s, struct random_sequence *random, struct made_runs *ret_runs)
{
	double share[MADE_FUNCTIONS][2], common = COMMON_CV * normal(random);
	for (unsigned f = 0; f < 2 * MADE_FUNCTIONS; f++) {
		share[f / 2][f % 2] = share_of(f / 2, s->first_share);
		if (s->layout > 0)
			share[f / 2][f % 2] *= exp(s->layout * normal(random));
	}
	for (size_t r = 0; r < 2 * s->n; r++) {
		ret_runs->candidate[r] = s->one_after_other ? r >= s->n : r % 2 == 1;
		ret_runs->begin_ns[r] = (int64_t)r;
		make_run(s, share, random, ret_runs, r, common);
		common = s->drift * common +
			 sqrt(1 - s->drift * s->drift) * COMMON_CV * normal(random);
	}
}

struct compare_runs made_as_input(const struct made_runs *m, size_t n)
{
	return (struct compare_runs){.n_functions = MADE_FUNCTIONS,
		.n_runs = 2 * n,
		.samples = m->samples,
		.total = m->total,
		.candidate = m->candidate,
		.begin_ns = m->begin_ns};
}
