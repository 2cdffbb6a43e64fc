/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "runtime/abi.h"
#include "runtime/draw.h"
#include "runtime/thread.h"
#include "tests/unit/test.h"

/* Only a thread with a record draws at random. Its numbers are the same in every run: a limit of four
 * standard errors would otherwise fail once in some thousand. */
static void prepare(void)
{
	struct thread *t = mperf_thread_make();
	ck_assert_ptr_nonnull(t);
	/* Source: Marsaglia, Xorshift RNGs, 2003, the seed of its example. */
	t->random = 88172645463325252;
}

struct drawn {
	struct draw draw;
	uint64_t passes;
};

/* An entry, as markers make it. */
static uint32_t enter(struct drawn *d, uint32_t one_in)
{
	if (d->passes == 0)
		return mperf_draw(&d->draw, one_in, &d->passes);
	d->passes--;
	return 0;
}

TEST(each_entry_stands_for_itself_if_all_are_measured)
{
	struct drawn d = {0};
	for (unsigned i = 0; i < 100; i++)
		ck_assert_uint_eq(enter(&d, 1), 1);
}

TEST(no_entry_is_measured_if_none_should_be)
{
	struct drawn d = {0};
	for (unsigned i = 0; i < 100; i++)
		ck_assert_uint_eq(enter(&d, 0), 0);
}

TEST(the_first_entry_is_measured_and_stands_for_itself_alone)
{
	struct drawn d = {0};
	ck_assert_uint_eq(enter(&d, 100), 1);
}

TEST(measured_entries_stand_for_all_of_whole_windows)
{
	/* 1 + 2 + ... + 64, then windows of 100 */
	prepare();
	struct drawn d = {0};
	uint64_t represented = 0, measured = 0;
	for (unsigned i = 0; i < 127 + 100 * 100; i++) {
		uint32_t stands_for = enter(&d, 100);
		represented += stands_for;
		measured += stands_for > 0;
	}
	ck_assert_uint_eq(represented, 127 + 100 * 100);
	ck_assert_uint_eq(measured, 7 + 100);
}

/* Entries that are long at each tenth, where each tenth is measured: with even gaps the sum would be
 * ten times too much, or nothing of them. */
TEST(a_period_of_the_program_does_not_meet_that_of_measuring)
{
	prepare();
	struct drawn d = {0};
	double sum = 0, truth = 0;
	for (unsigned i = 0; i < 15 + 10 * 20000; i++) {
		double value = i % 10 == 0 ? 1000 : 10;
		sum += enter(&d, 10) * value;
		truth += value;
	}
	/* Standard deviation of a window's mean: 297; of 20,000: 2.1 of 109. */
	ck_assert_double_eq_tol(sum / truth, 1, 5 * 2.1 / 109);
}

#define ROUNDS 300
#define ENTRIES (127u + 100u * 100u)

/* The reported variance is that of the sums over many rounds. */
TEST(the_reported_error_is_that_of_the_sums)
{
	prepare();
	double squares = 0, reported = 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct drawn d = {0};
		struct spread s = {0};
		double sum = 0, truth = 0;
		for (unsigned i = 0; i < ENTRIES; i++) {
			uint64_t value = 1000 + mperf_thread_chance() % 100000;
			uint32_t stands_for = enter(&d, 100);
			truth += (double)value;
			sum += (double)value * stands_for;
			if (stands_for > 0)
				mperf_spread_add(&s, value, stands_for);
		}
		squares += (sum - truth) * (sum - truth);
		reported += (double)mperf_spread_units(&s) * MPERF_VARIANCE_UNIT;
	}
	/* A variance of 300 rounds is known to sqrt(2 / 300), 8 %: four of these. */
	ck_assert_double_eq_tol(reported / squares, 1, 0.33);
}

TEST(entries_that_are_alike_have_no_error)
{
	struct spread s = {0};
	for (unsigned i = 0; i < 100; i++)
		mperf_spread_add(&s, 12345, 100);
	ck_assert_uint_eq(mperf_spread_units(&s), 0);
}

TEST(entries_that_are_all_measured_have_no_error)
{
	struct spread s = {0};
	for (unsigned i = 0; i < 100; i++)
		mperf_spread_add(&s, 1 + (i % 2) * 1000000000u, 1);
	ck_assert_uint_eq(mperf_spread_units(&s), 0);
}

TEST(a_small_error_is_not_taken_for_none)
{
	struct spread s = {0};
	mperf_spread_add(&s, 100, 10);
	mperf_spread_add(&s, 101, 10); /* 45 */
	ck_assert_uint_eq(mperf_spread_units(&s), 1);
	s.variance = MPERF_VARIANCE_UNIT;
	ck_assert_uint_eq(mperf_spread_units(&s), 1);
	s.variance = MPERF_VARIANCE_UNIT + 1;
	ck_assert_uint_eq(mperf_spread_units(&s), 2);
}

TEST(a_variance_beyond_what_a_database_takes_is_cut_off)
{
	struct spread s = {0};
	for (unsigned i = 0; i < 100; i++)
		mperf_spread_add(&s, (i % 2) * (UINT64_MAX / 2), 10000);
	ck_assert_uint_eq(mperf_spread_units(&s), INT64_MAX);
}
