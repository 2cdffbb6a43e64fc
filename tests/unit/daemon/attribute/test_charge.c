/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/charge.c: counts belong to who ran */

#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

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

EACH_TEST(.begin = setup, .end = teardown);

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

TEST(two_tasks_that_take_turns_each_get_their_own)
{
	bench_fork(b, SECOND + 2, 20, 20, 10);
	take_turns(100, true);
	ck_assert_uint_eq(bench_counted(b, 10, 0), 300);
	ck_assert_uint_eq(bench_counted(b, 10, 1), 300);
	ck_assert_uint_eq(bench_counted(b, 20, 0), 100000);
	ck_assert_uint_eq(bench_counted(b, 20, 1), 100000);
}

TEST(without_the_cut_at_switches_the_counts_are_wrong)
{
	bench_fork(b, SECOND + 2, 20, 20, 10);
	take_turns(100, false);
	/* most of what 20 counted is charged to 10, who runs when the next sample comes */
	ck_assert_uint_gt(bench_counted(b, 10, 0), 50000);
	ck_assert_uint_lt(bench_counted(b, 20, 0), 50000);
}

TEST(pending_counts_come_with_the_next_sample)
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

TEST(an_exit_delivers_what_no_sample_took)
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

TEST(an_exit_without_counts_delivers_nothing)
{
	bench_exit(b, 2 * SECOND, 10, 10);
	ck_assert_uint_eq(b->n_sunk, 0);
}

TEST(harts_count_each_for_itself)
{
	bench_read(b, BENCH_LEADER, 2 * SECOND, 10, (uint64_t[]){100, 100});
	bench_read(b, BENCH_HART + BENCH_LEADER, 2 * SECOND + 1, 10, (uint64_t[]){9000, 9000});
	bench_read(b, BENCH_LEADER, 2 * SECOND + 2, 10, (uint64_t[]){107, 100});
	ck_assert_uint_eq(bench_counted(b, 10, 0), 7);
	ck_assert_int_eq(bench_got(b, 1)->hart, 1);
}

TEST(counts_of_idle_and_of_the_unwanted_are_charged_to_nobody)
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

TEST(what_was_counted_while_records_were_lost_is_charged_to_nobody)
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

TEST(counters_that_go_backwards_charge_nothing)
{
	bench_read(b, BENCH_LEADER, 2 * SECOND, 10, (uint64_t[]){100, 100});
	bench_read(b, BENCH_LEADER, 2 * SECOND + 1, 10, (uint64_t[]){50, 100});
	bench_read(b, BENCH_LEADER, 2 * SECOND + 2, 10, (uint64_t[]){53, 100});
	ck_assert_uint_eq(bench_counted(b, 10, 0), 3);
	ck_assert_uint_eq(b->n_sunk, 3);
}

TEST(groups_opened_per_task_count_from_their_beginning)
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

/* Its events stay open. */
TEST(groups_opened_per_task_go_on_when_the_thread_gets_another_name)
{
	b->options.per_task = true;
	restart();
	bench_read(b, BENCH_LEADER, 2 * SECOND, 10, (uint64_t[]){100, 100});
	task_find(&b->tasks, 10)->used = true;
	bench_comm(b, 2 * SECOND + 2, 10, "another", false);
	bench_read(b, BENCH_LEADER, 2 * SECOND + 3, 10, (uint64_t[]){117, 120});
	ck_assert_uint_eq(bench_counted(b, 10, 0), 117);
	ck_assert_ptr_ne(bench_got(b, 0)->task, bench_got(b, b->n_sunk - 1)->task);
}

TEST(members_that_no_stream_knows_are_left_out)
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

/* --- groups that are not cut ------------------------------------------------------------------ */

static void begin_uncut(void)
{
	stream_table_set_uncut(&b->streams, BENCH_LEADER);
	stream_table_set_uncut(&b->streams, BENCH_HART + BENCH_LEADER);
	restart();
	bench_fork(b, SECOND + 2, 20, 20, 10);
}

/* A sample of the group on hart 0: the leader has that total, the sibling twice it. */
static void sampled(uint64_t time_ns, int pid, uint64_t total, uint64_t switches)
{
	struct record r = bench_sample(b, BENCH_LEADER, 2 * SECOND + time_ns, pid, 0x1000);

	r.sample.n_read = 3;
	r.sample.read[0] = (struct record_read_value){BENCH_LEADER, total};
	r.sample.read[1] = (struct record_read_value){BENCH_SIBLING, 2 * total};
	r.sample.read[2] = (struct record_read_value){BENCH_COUNT, switches};
	r.sample.enabled_ns = r.sample.running_ns = r.time_ns;
	bench_take(b, &r, 0);
}

/* The i-th attribution is a sample with these counts of the leader. */
static void expect_counted(size_t i, uint64_t value)
{
	const struct attribution *a = bench_got(b, i);

	ck_assert_uint_eq(a->count, 1);
	ck_assert_uint_eq(a->uncounted, 0);
	ck_assert_uint_eq(a->n_reads, 2);
	ck_assert_uint_eq(a->read[0].value, value);
	ck_assert_uint_eq(a->read[1].value, 2 * value);
}

static void expect_uncounted(size_t i)
{
	ck_assert_uint_eq(bench_got(b, i)->count, 1);
	ck_assert_uint_eq(bench_got(b, i)->uncounted, 1);
	ck_assert_uint_eq(bench_got(b, i)->n_reads, 0);
}

TEST(a_stretch_without_a_switch_is_charged)
{
	begin_uncut();
	sampled(0, 10, 1000, 7);
	sampled(10, 10, 1030, 7);
	expect_uncounted(0); /* nothing to compare with */
	expect_counted(1, 30);
	ck_assert_uint_eq(bench_got(b, 1)->read[0].enabled_ns, 10);
}

TEST(a_stretch_with_a_switch_is_charged_to_nobody)
{
	begin_uncut();
	sampled(0, 10, 1000, 7);
	sampled(10, 10, 1030, 9); /* away and back: the same task at both ends */
	sampled(20, 10, 1035, 9);
	sampled(30, 20, 1900, 10);
	sampled(40, 20, 1906, 10);
	expect_uncounted(1);
	expect_counted(2, 5);
	expect_uncounted(3);
	expect_counted(4, 6);
	ck_assert_uint_eq(bench_counted(b, 10, 0), 5);
	ck_assert_uint_eq(bench_counted(b, 20, 0), 6);
	ck_assert_uint_eq(b->lost[0][LOSS_SWITCH], 0); /* none was to be had */
}

TEST(a_switch_to_idle_and_back_is_one_too)
{
	begin_uncut();
	sampled(0, 10, 1000, 7);
	sampled(5, 0, 1010, 8); /* of the idle task, which is shown to nobody */
	sampled(10, 10, 1030, 9);
	ck_assert_uint_eq(b->n_sunk, 2);
	expect_uncounted(1);
}

TEST(a_counter_that_never_moved_proves_nothing)
{
	begin_uncut();
	for (uint64_t i = 0; i < 10; i++)
		sampled(i, i < 5 ? 10 : 20, 1000 * i, 0);
	for (size_t i = 0; i < 10; i++)
		expect_uncounted(i);
	sampled(10, 20, 10000, 1); /* it moves */
	sampled(11, 20, 10001, 1);
	expect_uncounted(10);
	expect_counted(11, 1);
}

TEST(a_group_without_a_counter_charges_nobody)
{
	begin_uncut();
	bench_read(b, BENCH_LEADER, 2 * SECOND, 10, (uint64_t[]){100, 100});
	bench_read(b, BENCH_LEADER, 2 * SECOND + 1, 10, (uint64_t[]){105, 100});
	expect_uncounted(0);
	expect_uncounted(1);
}

TEST(lost_records_leave_the_next_sample_without_counts)
{
	struct record lost = bench_record(b, RECORD_LOST, 2 * SECOND + 5, 0);

	begin_uncut();
	sampled(0, 10, 1000, 7);
	lost.lost.n = 3;
	bench_take(b, &lost, 0);
	sampled(10, 10, 1030, 7);
	sampled(20, 10, 1037, 7);
	expect_uncounted(1);
	expect_counted(2, 7);
}

TEST(a_group_that_was_opened_again_begins_again)
{
	static const uint64_t again = 200;
	static const struct stream streams[] = {
		{.id = 210, .role = STREAM_SAMPLER, .event = 0, .uncut = true},
		{.id = 211, .role = STREAM_SWITCH_COUNT, .event = -1},
	};
	begin_uncut();
	sampled(0, 10, 1000, 7);
	sampled(10, 10, 1030, 7);
	for (size_t i = 0; i < 2; i++) {
		struct stream s = streams[i];
		s.leader = again + BENCH_LEADER;
		s.weight_ns = 10101010;
		s.fd = -1;
		ck_assert_int_eq(stream_table_add(&b->streams, &s), 0);
	}
	/* its counter is a new one, which has not moved */
	for (uint64_t i = 0; i < 4; i++) {
		struct record r =
			bench_sample(b, again + BENCH_LEADER, 2 * SECOND + 20 + i, 10, 0x1000);
		r.sample.n_read = 2;
		r.sample.read[0] = (struct record_read_value){210, 50 * i};
		r.sample.read[1] = (struct record_read_value){211, i < 2 ? 0 : 1};
		bench_take(b, &r, 0);
	}
	expect_uncounted(2);
	expect_uncounted(3);
	expect_uncounted(4);
	ck_assert_uint_eq(bench_got(b, 5)->uncounted, 0);
	ck_assert_uint_eq(bench_counted(b, 10, 0), 30 + 50);
}

TEST(a_value_that_wraps_or_is_reset_charges_nothing_and_both_sides_do)
{
	begin_uncut();
	sampled(0, 10, 1000, UINT64_MAX);
	sampled(10, 10, 1004, UINT64_MAX);
	sampled(20, 10, 1010, 2); /* the counter wrapped: three switches */
	sampled(30, 10, 1013, 2);
	expect_counted(1, 4);
	expect_uncounted(2);
	expect_counted(3, 3);

	sampled(40, 10, 13, 2); /* the group was reset, the counter was not */
	sampled(50, 10, 15, 2);
	expect_uncounted(4);
	expect_counted(5, 2);
	sampled(60, 10, 16, 1); /* the counter alone */
	sampled(70, 10, 21, 1);
	expect_uncounted(6);
	expect_counted(7, 5);
}

TEST(the_other_harts_switches_do_not_matter)
{
	begin_uncut();
	for (uint64_t i = 0; i < 4; i++) {
		struct record r = bench_sample(
			b, BENCH_HART + BENCH_LEADER, 2 * SECOND + 10 * i + 5, 20, 0x1000);
		r.sample.n_read = 2;
		r.sample.read[0] = (struct record_read_value){BENCH_HART + BENCH_LEADER, i};
		r.sample.read[1] = (struct record_read_value){BENCH_HART + BENCH_COUNT, 5 + i};
		sampled(10 * i, 10, 1000 + i, 1);
		bench_take(b, &r, 1);
	}
	ck_assert_uint_eq(bench_counted(b, 10, 0), 3);
	ck_assert_uint_eq(bench_counted(b, 20, 0), 0);
}

/* In each turn 10 counts 1 and 20 counts 100 a sample, four samples long. */
TEST(two_tasks_that_take_turns_get_only_their_own_counts)
{
	uint64_t total = 0, switches = 1, time_ns = 0;

	begin_uncut();
	for (int turn = 0; turn < 50; turn++) {
		int pid = turn % 2 ? 20 : 10;
		for (int i = 0; i < 4; i++) {
			total += pid == 10 ? 1 : 100;
			sampled(++time_ns, pid, total, switches);
		}
		switches++;
	}
	ck_assert_uint_eq(bench_counted(b, 10, 0), 25 * 3);
	ck_assert_uint_eq(bench_counted(b, 20, 0), 25 * 300);
	uint64_t n_uncounted = 0;
	for (size_t i = 0; i < b->n_sunk; i++)
		n_uncounted += b->sunk[i].a.uncounted;
	ck_assert_uint_eq(n_uncounted, 50);
}
