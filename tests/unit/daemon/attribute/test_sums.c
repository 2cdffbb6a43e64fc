/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of what becomes of sums that BPF kept of tasks: daemon/attribute/charge.c, weigh.c, throttle.c
 */

#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

#define BY_RATE UINT64_C(10101010) /* of all streams of the bench */

static struct bench *b;

/* Processes 10 and 20; the group of hart 0 is summed up. */
static void setup(void)
{
	b = bench_new();
	stream_table_set_timed(&b->streams, BENCH_LEADER);
	stream_table_set_summed(&b->streams, BENCH_LEADER);
	bench_start(b);
	bench_fork(b, SECOND, 10, 10, 1);
	bench_comm(b, SECOND + 1, 10, "prog", true);
	bench_fork(b, SECOND + 2, 20, 20, 10);
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

/* At that ms of second 2: the task of pid counted `value` of the leader and twice of the sibling, in
 * enabled_ms; any task ran for ran_ms on the hart. */
static void summed(uint64_t ms, int pid, uint64_t value, uint64_t enabled_ms, uint64_t ran_ms)
{
	struct record r = bench_sample(b, BENCH_SUMS, 2 * SECOND + ms * MS, pid, 0);

	r.sample.n_read = 2;
	r.sample.read[0] = (struct record_read_value){BENCH_LEADER, value};
	r.sample.read[1] = (struct record_read_value){BENCH_SIBLING, 2 * value};
	r.sample.enabled_ns = enabled_ms * MS;
	r.sample.running_ns = enabled_ms * MS;
	r.sample.ran_ns = ran_ms * MS;
	bench_take(b, &r, 0);
}

/* A sample carries the hart's totals, which say nothing of its task. */
static void sampled(uint64_t ms, int pid)
{
	uint64_t totals[2] = {1000000 * ms, 3000000 * ms};

	bench_read(b, BENCH_LEADER, 2 * SECOND + ms * MS, pid, totals);
}

TEST(a_sample_has_what_its_task_counted_and_nothing_of_the_hart)
{
	summed(10, 10, 30, 3, 10), sampled(10, 10);
	summed(20, 20, 500, 7, 10), sampled(20, 20);
	summed(30, 10, 40, 4, 10), sampled(30, 10);
	ck_assert_uint_eq(b->n_sunk, 3);
	ck_assert_uint_eq(bench_got(b, 0)->read[0].value, 30);
	ck_assert_uint_eq(bench_got(b, 0)->read[1].value, 60);
	ck_assert_uint_eq(bench_got(b, 0)->read[0].enabled_ns, 3 * MS);
	ck_assert_uint_eq(bench_got(b, 0)->uncounted, 0);
	ck_assert_uint_eq(bench_counted(b, 10, 0), 70);
	ck_assert_uint_eq(bench_counted(b, 20, 0), 500);
	ck_assert_uint_eq(bench_counted(b, 20, 1), 1000);
}

TEST(a_sample_without_a_sum_has_no_counts_and_the_next_has_both)
{
	summed(10, 10, 30, 3, 10), sampled(10, 10);
	sampled(12, 10);
	summed(20, 10, 40, 9, 10), sampled(20, 10);
	ck_assert_uint_eq(bench_got(b, 1)->n_reads, 0);
	ck_assert_uint_eq(bench_got(b, 2)->read[0].value, 40);
}

TEST(an_end_delivers_what_no_sample_took)
{
	summed(10, 20, 8, 1, 10), sampled(10, 20);
	bench_exit(b, 2 * SECOND + 12 * MS, 20, 20);
	summed(13, 20, 5, 1, 1);
	ck_assert_uint_eq(bench_counted(b, 20, 0), 13);
	ck_assert_uint_eq(bench_got(b, 1)->count, 0);
}

TEST(a_sample_stands_for_the_time_that_any_task_ran)
{
	summed(10, 10, 1, 3, 8), sampled(10, 10);
	summed(15, 20, 1, 1, 5); /* 20 ends */
	summed(20, 10, 1, 2, 4), sampled(20, 10);
	ck_assert_uint_eq(bench_got(b, 0)->weight_ns, 8 * MS);
	ck_assert_uint_eq(bench_got(b, 1)->weight_ns, 9 * MS);
}

TEST(without_a_record_of_sums_a_sample_stands_for_its_period)
{
	sampled(10, 10);
	ck_assert_uint_eq(bench_got(b, 0)->weight_ns, BY_RATE);
}

TEST(switches_that_could_not_be_read_are_counted_and_leave_the_weight_to_the_rate)
{
	struct record r = bench_sample(b, BENCH_SUMS, 2 * SECOND, 10, 0);

	r.sample.n_missed = 3;
	r.sample.ran_ns = MS;
	bench_take(b, &r, 0);
	sampled(1, 10);
	ck_assert_uint_eq(b->lost[0][LOSS_SWITCH], 3);
	ck_assert_uint_eq(bench_got(b, 0)->weight_ns, BY_RATE);
	summed(10, 10, 1, 3, 8), sampled(10, 10);
	ck_assert_uint_eq(bench_got(b, 1)->weight_ns, 8 * MS);
}

static void throttle(enum record_kind kind, uint64_t ms, int pid)
{
	struct record r = bench_record(b, kind, 2 * SECOND + ms * MS, pid);

	r.stream = stream_table_find(&b->streams, BENCH_LEADER);
	bench_take(b, &r, 0);
}

TEST(a_silence_is_the_throttled_tasks_even_if_others_are_read_first)
{
	summed(10, 10, 1, 1, 1), throttle(RECORD_THROTTLE, 10, 10), sampled(10, 10);
	throttle(RECORD_UNTHROTTLE, 14, 10);
	summed(15, 20, 7, 1, 1), sampled(15, 20);
	summed(20, 10, 9, 9, 9), sampled(20, 10);
	ck_assert_uint_eq(bench_got(b, 1)->read[0].running_ns, 1 * MS);
	ck_assert_uint_eq(bench_got(b, 2)->read[0].enabled_ns, 9 * MS);
	ck_assert_uint_eq(bench_got(b, 2)->read[0].running_ns, 5 * MS);
}
