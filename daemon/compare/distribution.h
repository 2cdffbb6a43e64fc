/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Distributions: the functions that tests of means and variances need
 *
 * GSL and libRmath have these functions, but under the GPL, which would then cover mperfd as a whole.
 */

#include <stdint.h>

/* Probability that Student's t with that many degrees of freedom (above 0; INFINITY: the normal
 * distribution) is above t. Within 1e-10.
 * Source: Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.5.8, 26.7.1. */
double student_above(double t, double degrees);

/* The t that is exceeded with probability p, 0 < p < 1. */
double student_quantile(double p, double degrees);

/* First and second derivative of ln Γ, for x > 0. Within 1e-10.
 * Source: Abramowitz and Stegun, 6.3.5, 6.3.18, 6.4.6, 6.4.12. */
double digamma(double x);
double trigamma(double x);

/* The x > 0 with that trigamma, for y > 0. */
double trigamma_inverse(double y);

/* A sequence of numbers that is the same on every machine, from a seed.
 * Source: S. Vigna, "splitmix64", 2015, public domain; constants only. */
struct random_sequence {
	uint64_t state;
};

/* The next one, of 0 to n - 1, n > 0. */
uint64_t random_below(struct random_sequence *s, uint64_t n);

/* The next one, above 0 and below 1. Exported for tests. */
double random_unit(struct random_sequence *s);
