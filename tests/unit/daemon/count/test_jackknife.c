/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The error of what was scaled: from made readings, against intervals worked out by hand and against
 * what is missed by counting a part.
 */
#include <math.h>
#include <stdlib.h>

#include "daemon/count/jackknife.h"
#include "tests/unit/test.h"

#define MILLI 1000000ull
#define N(table) (sizeof(table) / sizeof((table)[0]))

static struct jackknife *made(size_t n_events)
{
	struct jackknife *s = NULL;
	ck_assert_int_eq(jackknife_new(n_events, 0, &s), 0);
	return s;
}

/* n readings of one event: value, enabled and running per stretch, alike in all. */
static void take(struct jackknife *s, size_t n, const struct jackknife_count *each)
{
	struct jackknife_count sum = {0};
	for (size_t i = 1; i <= n; i++) {
		sum.value += each->value;
		sum.enabled_ns += each->enabled_ns;
		sum.running_ns += each->running_ns;
		jackknife_take(s, &sum, i * 20 * MILLI, 0);
	}
}

TEST(what_never_varies_has_no_error)
{
	_cleanup_(jackknife_freep) struct jackknife *s = made(1);
	take(s, 10, &(struct jackknife_count){100, 20 * MILLI, 10 * MILLI});
	double without[10], count;
	ck_assert_uint_eq(jackknife_n_stretches(s), 10);
	for (size_t i = 0; i < 10; i++) {
		jackknife_without(s, i, &count);
		ck_assert_double_eq_tol(count, 2000, 1e-9); /* 1000 in half of the time */
		without[i] = count;
	}
	ck_assert_double_eq(jackknife_error(without, NULL, 10, 0.5), 0);
}

/* The jackknife of a mean is its standard error: of 1, 2, 3, 4, 5, 6 sqrt(3.5 / 6) = 0.7638, and
 * Student's 2.571 for five degrees. */
TEST(an_interval_by_hand)
{
	const double value[] = {1, 2, 3, 4, 5, 6};
	double without[6];
	for (size_t i = 0; i < 6; i++)
		without[i] = (21 - value[i]) / 5;
	ck_assert_double_eq_tol(jackknife_error(without, NULL, 6, 0), 2.571 * 0.7638, 0.02);
	ck_assert_double_eq_tol(
		jackknife_error(without, NULL, 6, 0.75), 0.5 * 2.571 * 0.7638, 0.01);
}

/* Four stretches of a second and two of two seconds: each weighs by how much is left without it. */
TEST(stretches_of_unequal_length_weigh_by_their_part)
{
	const double value[] = {1, 2, 3, 4, 11, 9}, part[] = {1, 1, 1, 1, 2, 2};
	double without[6], mean = 0, squares = 0;
	for (size_t i = 0; i < 6; i++) {
		without[i] = (30 - value[i]) / (8 - part[i]);
		mean += (8 - part[i]) / 8 * without[i] / 5;
	}
	for (size_t i = 0; i < 6; i++)
		squares += (8 / part[i] - 1) * pow(without[i] - mean, 2);
	ck_assert_double_eq_tol(
		jackknife_error(without, part, 6, 0), 2.571 * sqrt(squares / 6), 0.02);
	const double equal[] = {2, 2, 2, 2, 2, 2};
	ck_assert_double_eq_tol(
		jackknife_error(without, equal, 6, 0), jackknife_error(without, NULL, 6, 0), 1e-9);
	const double no_time[] = {1, 1, 0, 0, 1, 1};
	ck_assert(isnan(jackknife_error(without, no_time, 6, 0)));
}

TEST(what_was_counted_all_the_time_is_exact)
{
	const double without[] = {1, 2, 3, 4, 5, 6};
	ck_assert_double_eq(jackknife_error(without, NULL, 6, 1), 0);
	ck_assert_double_eq(jackknife_error(without, NULL, 0, 0.9999), 0);
}

TEST(a_short_run_has_an_unknown_error_not_none)
{
	const double without[] = {1, 2, NAN, 4, INFINITY, 6};
	ck_assert(isnan(jackknife_error(without, NULL, 0, 0.5)));
	ck_assert(isnan(jackknife_error(without, NULL, 2, 0.5)));
	ck_assert(isnan(jackknife_error(without, NULL, 6, 0.5))); /* four of them are numbers */
}

TEST(an_event_that_counted_in_one_stretch_alone_is_nothing_without_it)
{
	_cleanup_(jackknife_freep) struct jackknife *s = made(1);
	jackknife_take(s, &(struct jackknife_count){0, 20 * MILLI, 0}, 20 * MILLI, 0);
	jackknife_take(s, &(struct jackknife_count){70, 40 * MILLI, 20 * MILLI}, 40 * MILLI, 0);
	double count = 0;
	jackknife_without(s, 1, &count);
	ck_assert(isnan(count));
	jackknife_without(s, 0, &count);
	ck_assert_double_eq_tol(count, 140, 1e-9);
}

TEST(a_long_run_has_few_long_stretches)
{
	_cleanup_(jackknife_freep) struct jackknife *s = made(1);
	take(s, 10000, &(struct jackknife_count){1, 20 * MILLI, 20 * MILLI});
	ck_assert_uint_le(jackknife_n_stretches(s), JACKKNIFE_STRETCHES_MAX);
	ck_assert_uint_ge(jackknife_n_stretches(s), JACKKNIFE_STRETCHES_MAX / 2);
	double count;
	for (size_t i = 0; i < jackknife_n_stretches(s); i++) {
		jackknife_without(s, i, &count);
		ck_assert_double_eq_tol(count, 10000, 1e-6);
	}
}

TEST(readings_become_rare_in_a_long_run_and_where_they_cost_much)
{
	_cleanup_(jackknife_freep) struct jackknife *s = made(1);
	const struct jackknife_count count = {1, 20 * MILLI, 10 * MILLI};
	ck_assert_uint_eq(jackknife_due_ns(s), 20 * MILLI);
	take(s, JACKKNIFE_STRETCHES_MAX, &count);
	ck_assert_uint_eq(jackknife_due_ns(s), 660 * MILLI);
	jackknife_take(s, &count, 660 * MILLI, 0);
	ck_assert_uint_eq(jackknife_due_ns(s), 700 * MILLI);
	jackknife_take(s, &count, 700 * MILLI, 50 * MILLI);
	ck_assert_uint_eq(jackknife_due_ns(s), 1700 * MILLI);
}

/* Count until until_ns, counters being there for a part of each 10 ms, and read whenever that is due; how
 * often. */
static int run_until(
	struct jackknife *s, struct jackknife_count *sum, uint64_t until_ns, uint64_t part)
{
	int n = 0;
	while (sum->enabled_ns < until_ns) {
		sum->enabled_ns += 10 * MILLI;
		sum->running_ns += part * MILLI;
		sum->value += part * 1000;
		if (sum->enabled_ns < jackknife_due_ns(s))
			continue;
		jackknife_take(s, sum, sum->enabled_ns, 0);
		n++;
	}
	return n;
}

TEST(what_is_counted_all_the_time_is_read_when_it_is_twice_as_long)
{
	_cleanup_(jackknife_freep) struct jackknife *s = made(1);
	struct jackknife_count sum = {0};
	ck_assert_int_eq(run_until(s, &sum, 5120 * MILLI, 10), 9); /* 20 ms, 40, 80, ... */
	ck_assert_uint_eq(jackknife_due_ns(s), 10240 * MILLI);
	jackknife_restart(s);
	ck_assert_uint_eq(jackknife_due_ns(s), 5140 * MILLI);
}

TEST(once_it_is_scaled_a_run_has_as_many_stretches_as_another)
{
	_cleanup_(jackknife_freep) struct jackknife *s = made(1);
	struct jackknife_count sum = {0};
	(void)run_until(s, &sum, 5000 * MILLI, 10);
	(void)run_until(s, &sum, 10240 * MILLI, 5);
	ck_assert_uint_eq(jackknife_due_ns(s), 10400 * MILLI); /* stretches of 320 ms */
	(void)run_until(s, &sum, 20480 * MILLI, 5);
	ck_assert_uint_ge(jackknife_n_stretches(s), JACKKNIFE_STRETCHES_MAX / 2);
	double parts = 0;
	for (size_t i = 0; i < jackknife_n_stretches(s); i++)
		parts += jackknife_part(s, i);
	ck_assert_double_eq_tol(parts, 1, 1e-9);
}

TEST(a_restart_forgets_what_was_before)
{
	_cleanup_(jackknife_freep) struct jackknife *s = made(1);
	take(s, 7, &(struct jackknife_count){100, 20 * MILLI, 10 * MILLI});
	jackknife_restart(s);
	ck_assert_uint_eq(jackknife_n_stretches(s), 0);
	jackknife_take(s, &(struct jackknife_count){710, 160 * MILLI, 80 * MILLI}, 160 * MILLI, 0);
	jackknife_take(s, &(struct jackknife_count){730, 180 * MILLI, 90 * MILLI}, 180 * MILLI, 0);
	double count;
	jackknife_without(s, 0, &count);
	ck_assert_double_eq_tol(count, 20 * 4, 1e-9); /* 20 in 10 of 40 ms */
}

/* One run of a program that is noise, whose counters are shared from first_ms on, read when that is due. Has
 * the interval the count of the whole time? */
static bool is_right(uint64_t first_ms, uint64_t last_ms)
{
	_cleanup_(jackknife_freep) struct jackknife *s = made(1);
	struct jackknife_count sum = {0};
	double truth = 0, without[JACKKNIFE_STRETCHES_MAX], part[JACKKNIFE_STRETCHES_MAX];
	for (uint64_t ms = 1; ms <= last_ms; ms++) {
		bool counts = ms <= first_ms || ms / 2 % 2;
		unsigned value = (unsigned)rand() % 1000;
		truth += value;
		sum.enabled_ns += MILLI;
		sum.value += counts ? value : 0;
		sum.running_ns += counts ? MILLI : 0;
		if (ms == last_ms || ms * MILLI >= jackknife_due_ns(s))
			jackknife_take(s, &sum, ms * MILLI, 0);
	}
	size_t n = jackknife_n_stretches(s);
	for (size_t i = 0; i < n; i++) {
		jackknife_without(s, i, &without[i]);
		part[i] = jackknife_part(s, i);
	}
	double counted = (double)sum.running_ns / (double)sum.enabled_ns;
	double error = jackknife_error(without, part, n, counted);
	return fabs((double)sum.value / counted - truth) <= error;
}

/* The interval has the count of the whole time about 95 times in 100, whenever others came. */
TEST(intervals_have_the_truth_as_often_as_they_say)
{
	const uint64_t first_ms[] = {0, 100, 350, 900};
	for (size_t i = 0; i < N(first_ms); i++) {
		int n_right = 0;
		srand(1);
		for (int run = 0; run < 400; run++)
			n_right += is_right(first_ms[i], 1000);
		/* 91 to 100 % */
		ck_assert_msg(n_right >= 364 && n_right < 400, "from %d ms on: %d of 400",
			(int)first_ms[i], n_right);
	}
}
