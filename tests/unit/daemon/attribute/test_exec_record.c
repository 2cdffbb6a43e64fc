/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of records that bring the arguments and owner of an exec, daemon/attribute */

#include <sys/stat.h>
#include <unistd.h>

#include "daemon/attribute/attribute_private.h"
#include "proto/base/clock.h"
#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

#define PID 10
#define USER 1000 /* whose /proc/PID is, on the bench */
#define UNKNOWN ((uid_t) - 1)

static struct bench *b;
static uint64_t t0; /* after the scan, whose readings are stamped by the real clock */

static void setup(void)
{
	b = bench_new();
	bench_start(b);
	bench_process(b, &(struct bench_process){.pid = PID, .parent = 1, .comm = "sh"});
	bench_bytes(b, "proc/10/cmdline", "from proc", 10);
	ck_assert_int_eq(attribute_scan(b->attribute, NULL, 0), 0);
	t0 = clock_ns(CLOCK_MONOTONIC) + MS;
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

static struct task *process(void)
{
	struct task *task = task_find(&b->tasks, PID);

	ck_assert_ptr_nonnull(task);
	return task;
}

/* No file of it is left, though it does not know of its end. */
static void vanish(void)
{
	char from[128], to[256];

	snprintf(from, sizeof(from), "%s/%d", b->proc, PID);
	snprintf(to, sizeof(to), "%s.gone", from);
	ck_assert_int_eq(rename(from, to), 0);
}

/* The record of an exec is read before the COMM of that exec is taken. */
static void brings(uint64_t time_ns, const struct record_exec *x)
{
	struct record r = bench_record(b, RECORD_EXEC, time_ns, PID);

	r.exec = *x;
	attribute_exec_record(b->attribute, &r);
}

static void sampled(uint64_t time_ns)
{
	struct record r = bench_sample(b, BENCH_ALONE, time_ns, PID, 0x1000);
	bench_take(b, &r, 0);
}

static const struct record_exec cc1 = {
	.uid = USER, .gid = USER, .whole = true, .args = "cc1\0-O2", .n_args = 8};

TEST(arguments_and_owner_come_with_the_record)
{
	vanish();
	brings(t0 + 2 * MS, &cc1);
	ck_assert_uint_eq(attribute_exec_due_ns(b->attribute), UINT64_MAX); /* nothing to read */
	bench_comm(b, t0 + MS, PID, "cc1", true);
	ck_assert_uint_eq(process()->n_argv, 7);
	ck_assert_mem_eq(process()->argv, "cc1\0-O2", 8);
	ck_assert_uint_eq(process()->uid, USER);
	ck_assert_uint_eq(process()->gid, USER);
	ck_assert_uint_eq(process()->account, USER);
	attribute_drained(b->attribute);
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 0);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 0);
}

/* More than a second's on one hart, and no drain meanwhile. A process runs several programs in turn. */
TEST(thousands_between_two_drains_all_have_theirs)
{
	enum { PIDS = 3000, TURNS = 4 };
	char text[64];

	for (int i = 0; i < PIDS * TURNS; i++) {
		int pid = 1000 + i % PIDS, n = snprintf(text, sizeof(text), "cc1%c-O%d", 0, i);
		struct record r =
			bench_record(b, RECORD_EXEC, t0 + (uint64_t)i * MS / 10 + 50, pid);
		r.exec =
			(struct record_exec){.uid = USER + (uint32_t)i, .gid = USER, .whole = true};
		r.exec.args = text;
		r.exec.n_args = (size_t)n + 1;
		attribute_exec_record(b->attribute, &r);
	}
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), PIDS * TURNS);
	for (int i = 0; i < PIDS * TURNS; i++) {
		int pid = 1000 + i % PIDS;
		if (i < PIDS)
			bench_fork(b, t0 + (uint64_t)i * MS / 10 - 50, pid, pid, PID);
		bench_comm(b, t0 + (uint64_t)i * MS / 10, pid, "cc1", true);
		const struct task *task = task_find(&b->tasks, pid);
		snprintf(text, sizeof(text), "-O%d", i);
		ck_assert_ptr_nonnull(task->argv);
		ck_assert_str_eq(task->argv + 4, text);
		ck_assert_uint_eq(task->uid, USER + (uint32_t)i);
	}
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 0);
	attribute_drained(b->attribute);
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 0);
}

TEST(a_record_that_is_lost_leaves_it_to_proc)
{
	bench_comm(b, t0 + MS, PID, "cc1", true);
	ck_assert_str_eq(process()->argv, "from proc");
	ck_assert_uint_eq(process()->uid, USER);
}

TEST(a_record_that_is_lost_of_one_who_is_gone_is_counted)
{
	vanish();
	bench_comm(b, t0 + MS, PID, "cc1", true);
	attribute_drained(b->attribute);
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 1);
	ck_assert_uint_eq(process()->uid, UNKNOWN);
}

/* The program is mapped between the two: a drain may come in between. */
TEST(a_record_that_comes_after_the_drain_of_its_comm_is_taken, .times = 3)
{
	attribute_execs_apart(b->attribute, true);
	if (_i != 1)
		vanish();
	bench_comm(b, t0 + MS, PID, "cc1", true);
	attribute_drained(b->attribute);
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 0);
	struct record_exec x = cc1;
	x.whole = _i != 2;
	brings(t0 + 2 * MS, &x);
	ck_assert_mem_eq(process()->argv, "cc1\0-O2", 8);
	ck_assert_uint_eq(process()->uid, x.whole ? USER : 0);
	sampled(t0 + 3 * MS); /* it shows no other exec */
	attribute_drained(b->attribute);
	ck_assert_uint_eq(process()->exec_ns, t0 + MS);
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 0);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 0);
}

TEST(a_record_that_does_not_come_is_counted_later)
{
	attribute_execs_apart(b->attribute, true);
	vanish();
	t0 = clock_ns(CLOCK_MONOTONIC) - 1000 * MS;
	bench_comm(b, t0, PID, "cc1", true);
	attribute_drained(b->attribute);
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 1);
	brings(t0 + 200 * MS, &cc1); /* of another exec */
	ck_assert_ptr_null(process()->argv);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 1);
}

/* The COMM of an exec is lost: its record shows it with the next sample, as a report by the tracepoint does. */
TEST(a_record_without_its_comm_shows_an_exec)
{
	struct record_exec x = cc1;

	x.whole = false;
	bench_comm(b, t0 + MS, PID, "sh", true);
	brings(t0 + 2 * MS, &x);
	vanish();
	struct record r = bench_sample(b, BENCH_ALONE, t0 + 3 * MS, PID, 0x1000);
	bench_take(b, &r, 0);
	ck_assert_uint_eq(process()->uid, 0);
	ck_assert_uint_ge(process()->exec_ns, t0 + 2 * MS);
}

static void lost(uint64_t time_ns)
{
	struct record r = bench_record(b, RECORD_LOST, time_ns, PID);
	r.lost.n = 7;
	bench_take(b, &r, 0);
}

/* Its exec of a program of root's may be among the lost records. */
TEST(an_owner_is_in_doubt_after_a_loss_until_it_is_read, .times = 3)
{
	sampled(t0);
	ck_assert_uint_eq(process()->uid, USER);
	const uint64_t later_ns = t0 + 1000 * MS;
	if (_i == 1)
		vanish();
	if (_i == 2)
		bench_owner(b, PID, 0);
	sampled(t0 + MS);
	ck_assert_uint_eq(process()->uid, USER); /* nothing was lost: it is not read */
	lost(later_ns);
	sampled(later_ns + MS);
	ck_assert_uint_eq(process()->uid, _i == 0 ? USER : 0);
}

/* Its last samples came before the loss was reported, and its EXIT was lost, too. */
TEST(who_is_not_sampled_after_a_loss_is_read_before_the_flush)
{
	sampled(t0);
	vanish();
	attribute_check_owners(b->attribute, t0 + 1 * SECOND);
	ck_assert_uint_eq(process()->uid, USER);
	sampled(t0 + SECOND);
	lost(t0 + SECOND + MS);
	attribute_check_owners(b->attribute, t0 + 2 * SECOND);
	ck_assert_uint_eq(process()->uid, 0);
}

TEST(a_loss_beside_execs_of_their_own_ring_puts_no_owner_in_doubt)
{
	sampled(t0);
	attribute_execs_apart(b->attribute, true);
	vanish();
	lost(t0 + 1000 * MS);
	sampled(t0 + 1001 * MS);
	ck_assert_uint_eq(process()->uid, USER);
	attribute_execs_lost(b->attribute, t0 + 1002 * MS, true);
	sampled(t0 + 1003 * MS);
	ck_assert_uint_eq(process()->uid, 0);
}

/* What was read says nothing about the time before an exec that comes later through the merge. */
TEST(a_doubt_that_was_read_after_an_exec_is_not_settled_for_before)
{
	sampled(t0);
	lost(t0 + MS);
	sampled(t0 + 2 * MS);
	const struct task *before = process();
	bench_comm(b, before->owner_since_ns - 1, PID, "cc1", true);
	ck_assert_ptr_ne(before, process());
	ck_assert_uint_eq(before->uid, 0);
}

TEST(the_owner_alone_comes_where_the_ring_had_no_room_for_arguments)
{
	struct record_exec x = cc1;

	x.cut = true;
	x.n_args = 0;
	vanish();
	brings(t0 + 2 * MS, &x);
	bench_comm(b, t0 + MS, PID, "cc1", true);
	ck_assert_uint_eq(process()->uid, USER);
	ck_assert_ptr_null(process()->argv);
	attribute_drained(b->attribute);
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 1);
}

TEST(who_is_not_wholly_a_users_is_nobodys_and_that_user_pays)
{
	struct record_exec x = cc1;

	x.whole = false;
	brings(t0 + 2 * MS, &x);
	bench_comm(b, t0 + MS, PID, "passwd", true);
	ck_assert_uint_eq(process()->uid, 0);
	ck_assert_uint_eq(process()->account, USER);
}

TEST(what_the_record_cannot_judge_is_asked_of_proc)
{
	struct record_exec x = cc1;

	x.whole = false;
	x.unjudged = true;
	x.uid = USER + 7;
	brings(t0 + 2 * MS, &x);
	bench_comm(b, t0 + MS, PID, "cc1", true);
	ck_assert_uint_eq(process()->uid, USER);
	ck_assert_str_eq(process()->argv, "cc1");
}

TEST(who_is_gone_and_unjudged_stays_with_who_forked_it)
{
	struct record_exec x = cc1;

	x.whole = false;
	x.unjudged = true;
	ck_assert_uint_eq(process()->uid, USER);
	vanish();
	brings(t0 + 2 * MS, &x);
	bench_comm(b, t0 + MS, PID, "cc1", true);
	ck_assert_uint_eq(process()->uid, USER);
}

TEST(who_may_hide_and_is_gone_is_nobodys)
{
	struct record_exec x = cc1;

	x.whole = false;
	x.unjudged = x.may_hide = true;
	vanish();
	brings(t0 + 2 * MS, &x);
	bench_comm(b, t0 + MS, PID, "cc1", true);
	ck_assert_uint_eq(process()->uid, 0);
}

TEST(more_arguments_than_are_kept_end_in_a_mark)
{
	static char many[TASK_ARGV_BYTES_MAX];
	struct record_exec x = {.whole = true, .cut = true, .args = many, .n_args = sizeof(many)};

	memset(many, 'a', sizeof(many));
	brings(t0 + 2 * MS, &x);
	bench_comm(b, t0 + MS, PID, "cc1", true);
	ck_assert_uint_eq(process()->n_argv, TASK_ARGV_BYTES_MAX);
	ck_assert_str_eq(process()->argv + TASK_ARGV_BYTES_MAX - strlen("…"), "…");
}

TEST(no_arguments_and_empty_ones_are_known, .times = 2)
{
	struct record_exec x = {.whole = true, .args = "", .n_args = (uint32_t)_i};

	brings(t0 + 2 * MS, &x);
	bench_comm(b, t0 + MS, PID, "cc1", true);
	ck_assert_str_eq(process()->argv, "");
	ck_assert_uint_eq(process()->n_argv, 0);
}

TEST(each_exec_has_its_own)
{
	struct record_exec x = cc1;

	x.args = "as";
	x.n_args = 3;
	brings(t0 + 2 * MS, &cc1);
	brings(t0 + 300 * MS, &x);
	bench_comm(b, t0 + MS, PID, "cc1", true);
	ck_assert_str_eq(process()->argv, "cc1");
	bench_comm(b, t0 + 299 * MS, PID, "as", true);
	ck_assert_str_eq(process()->argv, "as");
}
