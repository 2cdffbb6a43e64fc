/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Against printed tables and values known in closed form.
 */
#include <math.h>

#include "daemon/compare/distribution.h"
#include "tests/unit/test.h"

#define EULER 0.57721566490153286
#define PI2 9.8696044010893586

TEST(student_is_as_tables_print_it)
{
	static const struct {
		double p, degrees, t;
	} known[] = {{0.025, 1, 12.7062}, {0.025, 2, 4.30265}, {0.025, 10, 2.22814},
		{0.05, 10, 1.81246}, {0.01, 18, 2.55238}, {0.005, 30, 2.75000},
		{0.025, 1e9, 1.95996}};
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		ck_assert_double_eq_tol(
			student_above(known[i].t, known[i].degrees), known[i].p, 2e-6);
		ck_assert_double_eq_tol(
			student_quantile(known[i].p, known[i].degrees), known[i].t, 1e-4);
	}
}

TEST(student_is_symmetric_and_ends_where_it_must)
{
	for (double t = 0; t < 50; t += 0.37)
		ck_assert_double_eq_tol(student_above(t, 7) + student_above(-t, 7), 1, 1e-12);
	ck_assert_double_eq_tol(student_above(0, 3), 0.5, 1e-12);
	ck_assert_double_eq(student_above(INFINITY, INFINITY), 0);
	ck_assert_double_eq_tol(student_above(1, 1), 0.25, 1e-12); /* Cauchy: 1/2 - atan(1)/π */
}

TEST(derivatives_of_the_gamma_function)
{
	ck_assert_double_eq_tol(digamma(1), -EULER, 1e-10);
	ck_assert_double_eq_tol(digamma(0.5), -EULER - 2 * log(2), 1e-10);
	ck_assert_double_eq_tol(digamma(4), -EULER + 1 + 0.5 + 1.0 / 3, 1e-10);
	ck_assert_double_eq_tol(trigamma(1), PI2 / 6, 1e-10);
	ck_assert_double_eq_tol(trigamma(0.5), PI2 / 2, 1e-10);
	ck_assert_double_eq_tol(trigamma(3), PI2 / 6 - 1.25, 1e-10);
}

TEST(trigamma_has_an_inverse)
{
	for (double x = 0.01; x < 1e6; x *= 3)
		ck_assert_double_eq_tol(trigamma_inverse(trigamma(x)) / x, 1, 1e-6);
}

TEST(random_numbers_are_even_and_repeat)
{
	struct random_sequence a = {7}, b = {7};
	unsigned n[5] = {0};
	for (int i = 0; i < 50000; i++) {
		const uint64_t one = random_below(&a, 5);
		ck_assert_uint_eq(one, random_below(&b, 5));
		n[one]++;
	}
	for (int i = 0; i < 5; i++) /* 5 standard deviations: 89 each */
		ck_assert(n[i] > 9550 && n[i] < 10450);
	const double u = random_unit(&a);
	ck_assert(u > 0 && u < 1);
}
