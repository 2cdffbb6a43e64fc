/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/lost_exec.c: a command that is held until its exec, and whose exec falls
 * on a ring that is full.
 */

#include "daemon/attribute/attribute_private.h"
#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

#define CODE 0x400000u

static struct bench *b;

static const char holder_maps[] = "00400000-00402000 r-xp 00000000 08:01 11 /usr/bin/holder\n";
static const char command_maps[] = "00400000-00404000 r-xp 00000000 08:01 22 /usr/bin/command\n";

static void program(const char *comm, const char *maps)
{
	bench_process(b, &(struct bench_process){.pid = 10,
				 .parent = 1,
				 .comm = comm,
				 .maps = maps,
				 .start_ns = 2 * SECOND});
	bench_bytes(b, "proc/10/cmdline", comm, strlen(comm) + 1);
}

static void hold(bool all, bool per_task)
{
	b = bench_new();
	b->options.all = all;
	b->options.after_exec = !all;
	b->options.per_task = per_task;
	bench_start(b);
	program("holder", holder_maps);
	ck_assert_int_eq(attribute_scan(b->attribute, (pid_t[]){10}, 1), 0);
	if (all)
		attribute_await_exec(b->attribute, (pid_t[]){10}, 1);
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.end = teardown);

static void sample(uint64_t time_ns)
{
	struct record r = bench_sample(b, BENCH_ALONE, time_ns, 10, CODE + 0x20);

	bench_take(b, &r, 0);
}

static void heard(uint64_t time_ns)
{
	attribute_exec(b->attribute, 10, time_ns);
	attribute_read_execs(b->attribute, time_ns + 1000);
}

static void lost(uint64_t time_ns)
{
	struct record r = bench_record(b, RECORD_LOST, time_ns, 10);

	r.lost.n = 7;
	bench_take(b, &r, 0);
}

static const char *last_path(void)
{
	ck_assert_uint_gt(b->n_sunk, 0);
	const struct attribution *a = bench_got(b, b->n_sunk - 1);

	ck_assert_uint_eq(a->n_frames, 1);
	return a->frame[0]->file->path;
}

static void expect_command(uint64_t exec_ns)
{
	const struct task *task = task_find(&b->tasks, 10);

	ck_assert_str_eq(last_path(), "/usr/bin/command");
	ck_assert_str_eq(task->comm, "command");
	ck_assert_str_eq(task->argv, "command");
	ck_assert_uint_eq(task->exec_ns, exec_ns);
}

TEST(a_lost_record_has_proc_asked_for_those_that_await_their_exec, .times = 2)
{
	hold(_i, _i);
	program("command", command_maps);
	lost(5 * SECOND);
	sample(5 * SECOND + 1);
	ck_assert_uint_eq(b->n_sunk, 1);
	expect_command(5 * SECOND);
	ck_assert(task_find(&b->tasks, 10)->wanted);
	ck_assert_uint_eq(b->lost[0][LOSS_RING], 7);
	lost(6 * SECOND); /* it is settled */
	ck_assert_uint_eq(task_find(&b->tasks, 10)->exec_ns, 5 * SECOND);
	ck_assert_uint_eq(lost_exec_n_awaited(b->attribute->awaited), 0);
}

TEST(one_that_has_not_exec_d_goes_on_to_be_awaited)
{
	hold(false, false);
	lost(5 * SECOND);
	sample(5 * SECOND + 1);
	ck_assert_uint_eq(b->n_sunk, 0);
	bench_comm(b, 6 * SECOND, 10, "command", true);
	sample(6 * SECOND + 1);
	ck_assert_uint_eq(b->n_sunk, 1);
	ck_assert_uint_eq(task_find(&b->tasks, 10)->exec_ns, 6 * SECOND);
}

TEST(an_exec_that_was_heard_of_needs_no_record, .times = 2)
{
	hold(_i, false);
	program("command", command_maps);
	heard(5 * SECOND);
	sample(5 * SECOND - 1);
	ck_assert_uint_eq(b->n_sunk, _i ? 1 : 0); /* it is the holder's still */
	ck_assert_uint_eq(task_find(&b->tasks, 10)->exec_ns, 0);
	sample(5 * SECOND + 2000);
	expect_command(5 * SECOND);
}

TEST(a_record_that_comes_late_changes_nothing)
{
	hold(false, false);
	program("command", command_maps);
	heard(5 * SECOND);
	sample(5 * SECOND + 2000);
	bench_comm(b, 5 * SECOND - 100, 10, "command", true);
	sample(5 * SECOND + 3000);
	ck_assert_uint_eq(b->n_sunk, 2);
	expect_command(5 * SECOND);
}

/* The tracepoint fires when the new program is in place, COMM before that. */
TEST(an_exec_whose_record_came_is_not_missed)
{
	hold(false, false);
	heard(5 * SECOND + 1000);
	bench_comm(b, 5 * SECOND, 10, "other", true);
	sample(5 * SECOND + 2000);
	ck_assert_uint_eq(b->n_sunk, 1);
	ck_assert_uint_eq(task_find(&b->tasks, 10)->exec_ns, 5 * SECOND);
	ck_assert_str_eq(task_find(&b->tasks, 10)->comm, "other");
}

TEST(the_second_of_two_execs_may_be_missed)
{
	hold(false, false);
	heard(5 * SECOND + 1000);
	program("command", command_maps);
	heard(5 * SECOND + 5000);
	bench_comm(b, 5 * SECOND, 10, "shell", true);
	sample(5 * SECOND + 2000);
	ck_assert_str_eq(task_find(&b->tasks, 10)->comm, "shell");
	sample(5 * SECOND + 6000);
	ck_assert_uint_eq(b->n_sunk, 2);
	expect_command(5 * SECOND + 5000);
}

TEST(a_session_per_task_looks_after_each_drain, .times = 2)
{
	hold(false, true);
	attribute_drained(b->attribute);
	program("command", command_maps);
	attribute_drained(b->attribute); /* the record may still be in a ring */
	ck_assert_uint_eq(task_find(&b->tasks, 10)->exec_ns, 0);
	uint64_t seen_ns = lost_exec_other_ns(b->attribute->awaited);
	ck_assert_uint_gt(seen_ns, 0);
	if (_i) {
		bench_comm(b, 5 * SECOND, 10, "command", true);
		attribute_drained(b->attribute);
		ck_assert_uint_eq(task_find(&b->tasks, 10)->exec_ns, 5 * SECOND);
	} else {
		attribute_drained(b->attribute);
		sample(seen_ns + 1);
		expect_command(seen_ns);
	}
	attribute_drained(b->attribute);
	ck_assert_uint_eq(lost_exec_n_awaited(b->attribute->awaited), 0);
}

TEST(one_that_ended_is_awaited_no_more)
{
	hold(false, true);
	bench_exit(b, 6 * SECOND, 10, 10);
	lost(7 * SECOND);
	ck_assert_uint_eq(lost_exec_n_awaited(b->attribute->awaited), 0);
	attribute_await_exec(b->attribute, (pid_t[]){10, 99}, 2);
	ck_assert_uint_eq(lost_exec_n_awaited(b->attribute->awaited), 0);
}
