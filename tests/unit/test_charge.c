/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/charge.c: counts belong to who ran */

#include <check.h>
#include <stdlib.h>

#include "tests/unit/attribute_bench.h"

#define SECOND UINT64_C(1000000000)

static struct bench *b;

/* Process 10 is "prog". */
static void setup(void)
{
	b = bench_new();
	bench_start(b);
	bench_fork(b, SECOND, 10, 10, 1);
	bench_comm(b, SECOND + 1, 10, "prog", true);
}

static void teardown(void)
{
	bench_free(b);
}

static void restart(void)
{
	attribute_free(b->attribute);
	bench_start(b);
}

/* Tasks 10 and 20 take turns on hart 0 for `turns` turns; 10 counts 3 and 20 counts 1000 in each.
 * 10 is sampled in the middle of its turns, 20 in every tenth of its own. */
static void take_turns(int turns, bool with_switches)
{
	uint64_t total[2] = {1000000, 5000000}, time_ns = 2 * SECOND;

	bench_read(b, BENCH_SWITCH, time_ns, 0, total);
	for (int i = 0; i < turns; i++) {
		total[0] += 1;
		total[1] += 1;
		bench_read(b, BENCH_LEADER, ++time_ns, 10, total);
		total[0] += 2;
		total[1] += 2;
		if (with_switches)
			bench_read(b, BENCH_SWITCH, ++time_ns, 10, total);
		total[0] += 400;
		total[1] += 400;
		if (i % 10 == 0)
			bench_read(b, BENCH_LEADER, ++time_ns, 20, total);
		total[0] += 600;
		total[1] += 600;
		if (with_switches)
			bench_read(b, BENCH_SWITCH, ++time_ns, 20, total);
	}
	bench_exit(b, ++time_ns, 10, 10);
	bench_exit(b, ++time_ns, 20, 20);
}

START_TEST(two_tasks_that_take_turns_each_get_their_own)
{
	bench_fork(b, SECOND + 2, 20, 20, 10);
	take_turns(100, true);
	ck_assert_uint_eq(bench_counted(b, 10, 0), 300);
	ck_assert_uint_eq(bench_counted(b, 10, 1), 300);
	ck_assert_uint_eq(bench_counted(b, 20, 0), 100000);
	ck_assert_uint_eq(bench_counted(b, 20, 1), 100000);
}
END_TEST

START_TEST(without_the_cut_at_switches_the_counts_are_wrong)
{
	bench_fork(b, SECOND + 2, 20, 20, 10);
	take_turns(100, false);
	/* most of what 20 counted is charged to 10, who runs when the next sample comes */
	ck_assert_uint_gt(bench_counted(b, 10, 0), 50000);
	ck_assert_uint_lt(bench_counted(b, 20, 0), 50000);
}
END_TEST

START_TEST(pending_counts_come_with_the_next_sample)
{
	bench_read(b, BENCH_SWITCH, 2 * SECOND, 0, (uint64_t[]){100, 200});
	bench_read(b, BENCH_SWITCH, 2 * SECOND + 10, 10, (uint64_t[]){110, 230});
	ck_assert_uint_eq(b->n_sunk, 0);
	bench_read(b, BENCH_SWITCH, 2 * SECOND + 20, 0, (uint64_t[]){500, 500});
	bench_read(b, BENCH_LEADER, 2 * SECOND + 30, 10, (uint64_t[]){501, 502});

	const struct attribution *a = bench_got(b, 0);
	ck_assert_uint_eq(a->n_reads, 2);
	ck_assert_int_eq(a->read[0].event, 0);
	ck_assert_uint_eq(a->read[0].value, 11);
	ck_assert_int_eq(a->read[1].event, 1);
	ck_assert_uint_eq(a->read[1].value, 32);
	ck_assert_uint_eq(a->read[1].enabled_ns, 20);
	ck_assert_uint_eq(a->read[1].running_ns, 10);

	/* and only with that one */
	bench_read(b, BENCH_LEADER, 2 * SECOND + 40, 10, (uint64_t[]){502, 502});
	ck_assert_uint_eq(bench_got(b, 1)->read[0].value, 1);
}
END_TEST

START_TEST(an_exit_delivers_what_no_sample_took)
{
	bench_read(b, BENCH_SWITCH, 2 * SECOND, 0, (uint64_t[]){100, 200});
	bench_read(b, BENCH_SWITCH, 2 * SECOND + 10, 10, (uint64_t[]){110, 230});
	bench_exit(b, 2 * SECOND + 20, 10, 10);
	const struct attribution *a = bench_got(b, 0);
	ck_assert_uint_eq(a->count, 0);
	ck_assert_uint_eq(a->weight_ns, 0);
	ck_assert_uint_eq(a->n_frames, 0);
	ck_assert_int_eq(a->event, 0);
	ck_assert_int_eq(a->rung, RUNG_LEADER);
	ck_assert_uint_eq(a->n_reads, 2);
	ck_assert_uint_eq(a->read[1].value, 30);

	/* its last switch comes after its EXIT */
	bench_read(b, BENCH_SWITCH, 2 * SECOND + 30, 10, (uint64_t[]){117, 230});
	ck_assert_uint_eq(b->n_sunk, 2);
	ck_assert_uint_eq(bench_got(b, 1)->count, 0);
	ck_assert_uint_eq(bench_counted(b, 10, 0), 17);
}
END_TEST

START_TEST(an_exit_without_counts_delivers_nothing)
{
	bench_exit(b, 2 * SECOND, 10, 10);
	ck_assert_uint_eq(b->n_sunk, 0);
}
END_TEST

START_TEST(harts_count_each_for_itself)
{
	bench_read(b, BENCH_LEADER, 2 * SECOND, 10, (uint64_t[]){100, 100});
	bench_read(b, BENCH_HART + BENCH_LEADER, 2 * SECOND + 1, 10, (uint64_t[]){9000, 9000});
	bench_read(b, BENCH_LEADER, 2 * SECOND + 2, 10, (uint64_t[]){107, 100});
	ck_assert_uint_eq(bench_counted(b, 10, 0), 7);
	ck_assert_int_eq(bench_got(b, 1)->hart, 1);
}
END_TEST

START_TEST(counts_of_idle_and_of_the_unwanted_are_charged_to_nobody)
{
	b->options.all = false;
	restart();
	task_find(&b->tasks, 10)->wanted = true;
	bench_fork(b, SECOND + 2, 30, 30, 1);
	bench_read(b, BENCH_SWITCH, 2 * SECOND, 10, (uint64_t[]){100, 100});
	bench_read(b, BENCH_SWITCH, 2 * SECOND + 1, 0, (uint64_t[]){5000, 100});
	bench_read(b, BENCH_SWITCH, 2 * SECOND + 2, 30, (uint64_t[]){9000, 100});
	bench_read(b, BENCH_LEADER, 2 * SECOND + 3, 10, (uint64_t[]){9001, 100});
	ck_assert_uint_eq(bench_counted(b, 10, 0), 1);
	ck_assert_ptr_null(task_find(&b->tasks, 30)->pending);
}
END_TEST

START_TEST(what_was_counted_while_records_were_lost_is_charged_to_nobody)
{
	struct record lost = bench_record(b, RECORD_LOST, 2 * SECOND + 1, 0);

	bench_read(b, BENCH_LEADER, 2 * SECOND, 10, (uint64_t[]){100, 100});
	lost.lost.n = 5;
	bench_take(b, &lost, 0);
	bench_read(b, BENCH_LEADER, 2 * SECOND + 2, 10, (uint64_t[]){90000, 100});
	bench_read(b, BENCH_LEADER, 2 * SECOND + 3, 10, (uint64_t[]){90001, 100});
	ck_assert_uint_eq(bench_counted(b, 10, 0), 1);
	ck_assert_uint_eq(b->n_sunk, 3);
	ck_assert_uint_eq(b->lost[0][LOSS_RING], 5);
}
END_TEST

START_TEST(counters_that_go_backwards_charge_nothing)
{
	bench_read(b, BENCH_LEADER, 2 * SECOND, 10, (uint64_t[]){100, 100});
	bench_read(b, BENCH_LEADER, 2 * SECOND + 1, 10, (uint64_t[]){50, 100});
	bench_read(b, BENCH_LEADER, 2 * SECOND + 2, 10, (uint64_t[]){53, 100});
	ck_assert_uint_eq(bench_counted(b, 10, 0), 3);
	ck_assert_uint_eq(b->n_sunk, 3);
}
END_TEST

START_TEST(groups_opened_per_task_count_from_their_beginning)
{
	b->options.per_task = true;
	restart();
	bench_fork(b, SECOND + 2, 20, 20, 10);
	bench_read(b, BENCH_LEADER, 2 * SECOND, 10, (uint64_t[]){100, 100});
	bench_read(b, BENCH_LEADER, 2 * SECOND + 1, 20, (uint64_t[]){7, 100});
	bench_read(b, BENCH_LEADER, 2 * SECOND + 2, 10, (uint64_t[]){105, 100});
	ck_assert_uint_eq(bench_counted(b, 10, 0), 105);
	ck_assert_uint_eq(bench_counted(b, 20, 0), 7);
}
END_TEST

START_TEST(members_that_no_stream_knows_are_left_out)
{
	struct record r = bench_sample(b, BENCH_LEADER, 2 * SECOND, 10, 0x10020);

	r.sample.n_read = 2;
	r.sample.read[0] = (struct record_read_value){4711, 5};
	r.sample.read[1] = (struct record_read_value){BENCH_SWITCH, 5};
	bench_take(b, &r, 0);
	r.sample.read[0].value = 50;
	r.sample.read[1].value = 50;
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->n_sunk, 2);
	ck_assert_uint_eq(bench_got(b, 1)->n_reads, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("charge");
	TCase *tests = tcase_create("charge");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, two_tasks_that_take_turns_each_get_their_own);
	tcase_add_test(tests, without_the_cut_at_switches_the_counts_are_wrong);
	tcase_add_test(tests, pending_counts_come_with_the_next_sample);
	tcase_add_test(tests, an_exit_delivers_what_no_sample_took);
	tcase_add_test(tests, an_exit_without_counts_delivers_nothing);
	tcase_add_test(tests, harts_count_each_for_itself);
	tcase_add_test(tests, counts_of_idle_and_of_the_unwanted_are_charged_to_nobody);
	tcase_add_test(tests, what_was_counted_while_records_were_lost_is_charged_to_nobody);
	tcase_add_test(tests, counters_that_go_backwards_charge_nothing);
	tcase_add_test(tests, groups_opened_per_task_count_from_their_beginning);
	tcase_add_test(tests, members_that_no_stream_knows_are_left_out);
	suite_add_tcase(suite, tests);

	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
