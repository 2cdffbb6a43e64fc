/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/delta.c */

#include "daemon/attribute/delta.h"

#include "tests/unit/test.h"

static struct delta_table table;
static const struct delta_key hart_0 = {.leader = 10}, hart_1 = {.leader = 20, .hart = 1};

static void teardown(void)
{
	delta_table_clear(&table);
}

EACH_TEST(.end = teardown, .seconds = 60);

static struct record_sample reading(uint64_t a, uint64_t b, uint64_t enabled, uint64_t running)
{
	return (struct record_sample){
		.n_read = 2,
		.read = {{.id = 10, .value = a}, {.id = 11, .value = b}},
		.enabled_ns = enabled,
		.running_ns = running,
	};
}

static int take(const struct delta_key *key, struct record_sample s, struct delta *ret_delta)
{
	return delta_take(&table, key, &s, ret_delta);
}

TEST(the_first_reading_charges_nobody)
{
	struct delta d = {.n_reads = 42};

	ck_assert_int_eq(take(&hart_0, reading(5, 6, 7, 8), &d), DELTA_FIRST);
	ck_assert_uint_eq(d.n_reads, 42);
}

TEST(the_next_reading_is_the_difference)
{
	struct delta d;

	take(&hart_0, reading(5, 6, 7, 8), &d);
	ck_assert_int_eq(take(&hart_0, reading(15, 26, 37, 48), &d), 0);
	ck_assert_uint_eq(d.n_reads, 2);
	ck_assert_uint_eq(d.read[0].id, 10);
	ck_assert_uint_eq(d.read[0].value, 10);
	ck_assert_uint_eq(d.read[1].value, 20);
	ck_assert_uint_eq(d.enabled_ns, 30);
	ck_assert_uint_eq(d.running_ns, 40);
	ck_assert_int_eq(take(&hart_0, reading(15, 26, 37, 48), &d), 0);
	ck_assert_uint_eq(d.read[0].value, 0);
}

TEST(harts_do_not_mix)
{
	struct delta d;

	take(&hart_0, reading(5, 6, 7, 8), &d);
	ck_assert_int_eq(take(&hart_1, reading(15, 26, 37, 48), &d), DELTA_FIRST);
	ck_assert_int_eq(take(&hart_0, reading(6, 6, 7, 8), &d), 0);
	ck_assert_uint_eq(d.read[0].value, 1);
}

TEST(a_value_that_goes_backwards_starts_anew)
{
	struct delta d;

	take(&hart_0, reading(5, 6, 7, 8), &d);
	ck_assert_int_eq(take(&hart_0, reading(50, 5, 70, 80), &d), DELTA_RESET);
	ck_assert_int_eq(take(&hart_0, reading(51, 7, 70, 80), &d), 0);
	ck_assert_uint_eq(d.read[0].value, 1);
	ck_assert_uint_eq(d.read[1].value, 2);
}

TEST(times_that_go_backwards_start_anew)
{
	struct delta d;

	take(&hart_0, reading(5, 6, 7, 8), &d);
	ck_assert_int_eq(take(&hart_0, reading(5, 6, 6, 8), &d), DELTA_RESET);
	ck_assert_int_eq(take(&hart_0, reading(5, 6, 6, 7), &d), DELTA_RESET);
}

TEST(other_members_start_anew)
{
	struct record_sample fewer = reading(50, 60, 70, 80), others = fewer;
	struct delta d;

	fewer.n_read = 1;
	others.read[1].id = 99;
	take(&hart_0, reading(5, 6, 7, 8), &d);
	ck_assert_int_eq(take(&hart_0, fewer, &d), DELTA_RESET);
	ck_assert_int_eq(take(&hart_0, reading(55, 66, 77, 88), &d), DELTA_RESET);
	others.read[0].value = 500;
	others.read[1].value = 500;
	others.enabled_ns = others.running_ns = 500;
	ck_assert_int_eq(take(&hart_0, others, &d), DELTA_RESET);
}

TEST(a_full_group_fits)
{
	struct record_sample s = {.n_read = RECORD_READ_VALUES_MAX};
	struct delta d;

	take(&hart_0, s, &d);
	for (int i = 0; i < RECORD_READ_VALUES_MAX; i++)
		s.read[i].value = UINT64_MAX;
	ck_assert_int_eq(take(&hart_0, s, &d), 0);
	ck_assert_uint_eq(d.read[RECORD_READ_VALUES_MAX - 1].value, UINT64_MAX);
}

TEST(lost_records_make_the_next_reading_the_first)
{
	struct delta d;

	take(&hart_0, reading(5, 6, 7, 8), &d);
	take(&hart_1, reading(5, 6, 7, 8), &d);
	delta_forget_hart(&table, 0);
	ck_assert_int_eq(take(&hart_0, reading(50, 60, 70, 80), &d), DELTA_FIRST);
	ck_assert_int_eq(take(&hart_1, reading(50, 60, 70, 80), &d), 0);
}

TEST(a_group_of_one_task_counts_from_its_beginning)
{
	struct delta_key one = {.leader = 10, .tid = 7};
	struct delta d;

	ck_assert_int_eq(take(&one, reading(5, 6, 7, 8), &d), 0);
	ck_assert_uint_eq(d.read[0].value, 5);
	ck_assert_uint_eq(d.enabled_ns, 7);
	delta_forget_hart(&table, 0);
	ck_assert_int_eq(take(&one, reading(6, 6, 7, 8), &d), 0);
	ck_assert_uint_eq(d.read[0].value, 1);
}

TEST(a_task_that_is_gone_is_forgotten)
{
	struct delta_key one = {.leader = 10, .tid = 7}, two = {.leader = 10, .tid = 8};
	struct delta d;

	take(&one, reading(5, 6, 7, 8), &d);
	take(&two, reading(5, 6, 7, 8), &d);
	delta_forget_task(&table, 7);
	/* the tid is used again: what it counts is its own */
	ck_assert_int_eq(take(&one, reading(9, 9, 9, 9), &d), 0);
	ck_assert_uint_eq(d.read[0].value, 9);
	ck_assert_int_eq(take(&two, reading(9, 9, 9, 9), &d), 0);
	ck_assert_uint_eq(d.read[0].value, 4);
}

TEST(groups_are_refused_beyond_their_limit)
{
	struct delta_key key = {.leader = 10};
	struct delta d = {.n_reads = 42};

	for (key.tid = 1; key.tid <= DELTA_GROUPS_MAX; key.tid++)
		ck_assert_int_eq(take(&key, reading(1, 1, 1, 1), &d), 0);
	d.n_reads = 42;
	ck_assert_int_eq(take(&key, reading(1, 1, 1, 1), &d), DELTA_TABLE_FULL);
	ck_assert_uint_eq(d.n_reads, 42);
	key.tid = 1;
	ck_assert_int_eq(take(&key, reading(1, 1, 1, 1), &d), 0);
}
