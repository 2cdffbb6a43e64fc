/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The error of what was scaled: from made readings, against intervals worked out by hand and against
 * what is missed by counting a part.
 */
#include <math.h>
#include <stdlib.h>

#include "daemon/pmu/scatter.h"
#include "tests/unit/test.h"

#define MILLI 1000000ull

static struct scatter *made(size_t n_events)
{
	struct scatter *s = NULL;
	ck_assert_int_eq(scatter_new(n_events, 0, &s), 0);
	return s;
}

/* n readings of one event: value, enabled and running per stretch, alike in all. */
static void take(struct scatter *s, size_t n, const struct scatter_count *each)
{
	struct scatter_count sum = {0};
	for (size_t i = 1; i <= n; i++) {
		sum.value += each->value;
		sum.enabled_ns += each->enabled_ns;
		sum.running_ns += each->running_ns;
		scatter_take(s, &sum, i * 20 * MILLI, 0);
	}
}

TEST(what_never_varies_has_no_error)
{
	_cleanup_(scatter_freep) struct scatter *s = made(1);
	take(s, 10, &(struct scatter_count){100, 20 * MILLI, 10 * MILLI});
	double without[10], count;
	ck_assert_uint_eq(scatter_n_stretches(s), 10);
	for (size_t i = 0; i < 10; i++) {
		scatter_without(s, i, &count);
		ck_assert_double_eq_tol(count, 2000, 1e-9); /* 1000 in half of the time */
		without[i] = count;
	}
	ck_assert_double_eq(scatter_error(without, 10, 0.5), 0);
}

/* The jackknife of a mean is its standard error: of 1, 2, 3, 4, 5, 6 sqrt(3.5 / 6) = 0.7638, and
 * Student's 2.571 for five degrees. */
TEST(an_interval_by_hand)
{
	const double value[] = {1, 2, 3, 4, 5, 6};
	double without[6];
	for (size_t i = 0; i < 6; i++)
		without[i] = (21 - value[i]) / 5;
	ck_assert_double_eq_tol(scatter_error(without, 6, 0), 2.571 * 0.7638, 0.02);
	ck_assert_double_eq_tol(scatter_error(without, 6, 0.75), 0.5 * 2.571 * 0.7638, 0.01);
}

TEST(what_was_counted_all_the_time_is_exact)
{
	const double without[] = {1, 2, 3, 4, 5, 6};
	ck_assert_double_eq(scatter_error(without, 6, 1), 0);
	ck_assert_double_eq(scatter_error(without, 0, 0.9999), 0);
}

TEST(a_short_run_has_an_unknown_error_not_none)
{
	const double without[] = {1, 2, NAN, 4, INFINITY, 6};
	ck_assert(isnan(scatter_error(without, 0, 0.5)));
	ck_assert(isnan(scatter_error(without, 2, 0.5)));
	ck_assert(isnan(scatter_error(without, 6, 0.5))); /* four of them are numbers */
}

TEST(an_event_that_counted_in_one_stretch_alone_is_nothing_without_it)
{
	_cleanup_(scatter_freep) struct scatter *s = made(1);
	scatter_take(s, &(struct scatter_count){0, 20 * MILLI, 0}, 20 * MILLI, 0);
	scatter_take(s, &(struct scatter_count){70, 40 * MILLI, 20 * MILLI}, 40 * MILLI, 0);
	double count = 0;
	scatter_without(s, 1, &count);
	ck_assert(isnan(count));
	scatter_without(s, 0, &count);
	ck_assert_double_eq_tol(count, 140, 1e-9);
}

TEST(a_long_run_has_few_long_stretches)
{
	_cleanup_(scatter_freep) struct scatter *s = made(1);
	take(s, 10000, &(struct scatter_count){1, 20 * MILLI, 20 * MILLI});
	ck_assert_uint_le(scatter_n_stretches(s), SCATTER_STRETCHES_MAX);
	ck_assert_uint_ge(scatter_n_stretches(s), SCATTER_STRETCHES_MAX / 2);
	double count;
	for (size_t i = 0; i < scatter_n_stretches(s); i++) {
		scatter_without(s, i, &count);
		ck_assert_double_eq_tol(count, 10000, 1e-6);
	}
}

TEST(readings_become_rare_in_a_long_run_and_where_they_cost_much)
{
	_cleanup_(scatter_freep) struct scatter *s = made(1);
	const struct scatter_count count = {0};
	ck_assert_uint_eq(scatter_due_ns(s), 20 * MILLI);
	for (int i = 0; i < SCATTER_STRETCHES_MAX + 1; i++)
		scatter_take(s, &count, 1000 * MILLI, 0);
	ck_assert_uint_eq(scatter_due_ns(s), 1040 * MILLI);
	scatter_take(s, &count, 2000 * MILLI, 50 * MILLI);
	ck_assert_uint_eq(scatter_due_ns(s), 3000 * MILLI);
}

TEST(a_restart_forgets_what_was_before)
{
	_cleanup_(scatter_freep) struct scatter *s = made(1);
	take(s, 7, &(struct scatter_count){100, 20 * MILLI, 10 * MILLI});
	scatter_restart(s);
	ck_assert_uint_eq(scatter_n_stretches(s), 0);
	scatter_take(s, &(struct scatter_count){710, 160 * MILLI, 80 * MILLI}, 160 * MILLI, 0);
	scatter_take(s, &(struct scatter_count){730, 180 * MILLI, 90 * MILLI}, 180 * MILLI, 0);
	double count;
	scatter_without(s, 0, &count);
	ck_assert_double_eq_tol(count, 20 * 4, 1e-9); /* 20 in 10 of 40 ms */
}

/* Two groups take turns over a program that is noise: the interval has the count of the whole time
 * about 95 times in 100. */
TEST(intervals_have_the_truth_as_often_as_they_say)
{
	int n_right = 0;
	srand(1);
	for (int run = 0; run < 400; run++) {
		_cleanup_(scatter_freep) struct scatter *s = made(1);
		struct scatter_count sum = {0};
		double truth = 0, without[SCATTER_STRETCHES_MAX], count;
		for (size_t i = 1; i <= 20; i++) {
			for (int slice = 0; slice < 10; slice++) {
				unsigned value = (unsigned)rand() % 1000;
				truth += value;
				sum.enabled_ns += MILLI;
				sum.value += slice % 2 ? value : 0;
				sum.running_ns += slice % 2 ? MILLI : 0;
			}
			scatter_take(s, &sum, i * 20 * MILLI, 0);
		}
		for (size_t i = 0; i < 20; i++) {
			scatter_without(s, i, &count);
			without[i] = count;
		}
		n_right += fabs(2.0 * (double)sum.value - truth) <= scatter_error(without, 20, 0.5);
	}
	ck_assert_msg(n_right >= 364 && n_right < 400, "%d of 400", n_right); /* 91 to 100 % */
}
