/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Student's distribution is an incomplete beta function, which a continued fraction gives; its
 * quantiles are found by halving intervals, which always ends. The derivatives of ln Γ are moved up
 * to where their asymptotic series are exact enough.
 */
#include "daemon/compare/distribution.h"

#include <math.h>

#define TERMS_MAX 500 /* terms of the continued fraction; at most 60 were ever used */
#define SERIES_FROM 10.0
#define HALVINGS 80

/* Continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < tiny ? tiny : d);
	double value = d;

	for (int m = 1; m <= TERMS_MAX; m++) {
		const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double change = 1;
		for (int i = 0; i < 2; i++) {
			const double term = i == 0 ? even : odd;
			d = 1 + term * d;
			c = 1 + term / c;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = fabs(c) < tiny ? tiny : c;
			change = c * d;
			value *= change;
		}
		if (fabs(change - 1) < 1e-15)
			break;
	}
	return value;
}

static double incomplete_beta(double a, double b, double x)
{
	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	const double front =
		exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_above(double t, double degrees)
{
	if (degrees > 1e7)
		return erfc(t / sqrt(2)) / 2;
	const double half = incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2;
	return t > 0 ? half : 1 - half;
}

double student_quantile(double p, double degrees)
{
	double low = -1, high = 1;

	while (student_above(low, degrees) < p && low > -1e12)
		low *= 2;
	while (student_above(high, degrees) > p && high < 1e12)
		high *= 2;
	for (int i = 0; i < HALVINGS; i++) {
		const double middle = (low + high) / 2;
		if (student_above(middle, degrees) > p)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

double digamma(double x)
{
	double below = 0;

	for (; x < SERIES_FROM; x++)
		below += 1 / x;
	const double z = 1 / (x * x);
	return log(x) - 0.5 / x -
	       z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z / 132)))) -
	       below;
}

double trigamma(double x)
{
	double below = 0;

	for (; x < SERIES_FROM; x++)
		below += 1 / (x * x);
	const double z = 1 / (x * x);
	return 1 / x + z / 2 +
	       z / x * (1.0 / 6 - z * (1.0 / 30 - z * (1.0 / 42 - z * (1.0 / 30 - z * 5 / 66)))) +
	       below;
}

/* Trigamma falls from infinity to 0, and is below 1/x + 1/x². */
double trigamma_inverse(double y)
{
	double low = 0, high = 1;

	while (trigamma(high) > y && high < 1e12)
		high *= 2;
	for (int i = 0; i < HALVINGS; i++) {
		const double middle = (low + high) / 2;
		if (trigamma(middle) > y)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

static uint64_t random_next(struct random_sequence *s)
{
	uint64_t z = s->state += 0x9e3779b97f4a7c15;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* n is far below 2^64, so the bias of the remainder is negligible. */
uint64_t random_below(struct random_sequence *s, uint64_t n)
{
	return random_next(s) % n;
}

double random_unit(struct random_sequence *s)
{
	return (random_next(s) / 2048 + 0.5) / 9007199254740992.0;
}
