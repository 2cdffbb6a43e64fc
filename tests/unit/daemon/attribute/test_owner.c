/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/owner.c: samples stay with the user they were taken of */

#include "daemon/attribute/attribute_private.h"
#include "daemon/attribute/sweep.h"
#include "proto/base/clock.h"
#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

static struct bench *b;
static uint64_t t0; /* a while from now: later than what was read by then */

static const struct bench_process prog = {
	.pid = 10, .parent = 1, .comm = "prog", .start_ns = SECOND};

static void setup(void)
{
	b = bench_new();
	bench_start(b);
	bench_process(b, &prog);
	bench_bytes(b, "proc/10/cmdline", "prog\0", 5);
	t0 = clock_ns(CLOCK_MONOTONIC) + 60 * SECOND;
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

static void scan(unsigned int uid)
{
	bench_owner(b, 10, uid);
	ck_assert_int_eq(attribute_scan(b->attribute, NULL, 0), 0);
}

static struct task *live(int tid)
{
	struct task *task = task_find(&b->tasks, tid);

	ck_assert_ptr_nonnull(task);
	return task;
}

/* The task that a sample of that moment is of. */
static struct task *sampled(uint64_t time_ns)
{
	struct record r = bench_sample(b, BENCH_ALONE, time_ns, 10, 0x10020);

	bench_take(b, &r, 0);
	return bench_got(b, b->n_sunk - 1)->task;
}

static void exec_as(unsigned int uid, uint64_t time_ns)
{
	bench_owner(b, 10, uid);
	bench_comm(b, time_ns, 10, "prog", true);
}

TEST(samples_before_a_program_of_roots_are_hidden_with_it)
{
	scan(1000);
	struct task *before = sampled(t0);
	exec_as(0, t0 + MS);
	struct task *after = sampled(t0 + 2 * MS);
	ck_assert_ptr_ne(before, after);
	ck_assert_uint_eq(after->uid, 0);
	ck_assert_uint_eq(before->uid, 1000);
	/* nobody looked whether it was the user's to its end */
	attribute_check_owners(b->attribute, clock_ns(CLOCK_MONOTONIC) + 10 * SECOND);
	ck_assert_uint_eq(before->uid, 0);
}

TEST(without_room_for_a_task_what_was_sampled_of_two_owners_is_hidden)
{
	scan(1000);
	struct task *task = sampled(t0);
	bench_fill(b, 1000, 0);
	exec_as(1001, t0 + MS);
	ck_assert_uint_eq(task->uid, 0);
}

TEST(samples_of_root_stay_hidden_when_a_users_program_follows)
{
	scan(0);
	struct task *before = sampled(t0);
	exec_as(1000, t0 + MS);
	struct task *after = sampled(t0 + 2 * MS);
	ck_assert_ptr_ne(before, after);
	ck_assert_uint_eq(before->uid, 0);
	ck_assert_uint_ne(before->end_ns, 0);
	ck_assert_uint_eq(after->uid, 1000);
	ck_assert_uint_eq(after->gid, 50);
	ck_assert_uint_eq(after->start_ns, before->start_ns);
	ck_assert_uint_eq(after->exec_ns, t0 + MS);
	ck_assert_str_eq(after->comm, "prog");
	ck_assert_ptr_nonnull(after->argv);
	ck_assert_ptr_eq(live(10), after);
}

TEST(samples_of_a_user_stay_hidden_from_the_next)
{
	scan(1000);
	struct task *before = sampled(t0);
	exec_as(1001, t0 + MS);
	struct task *after = sampled(t0 + 2 * MS);
	ck_assert_ptr_ne(before, after);
	ck_assert_uint_eq(before->uid, 1000);
	ck_assert_uint_eq(after->uid, 1001);
	attribute_check_owners(b->attribute, clock_ns(CLOCK_MONOTONIC) + 10 * SECOND);
	ck_assert_uint_eq(before->uid, 0);
	ck_assert_uint_eq(after->uid, 1001);
}

TEST(what_was_never_sampled_goes_on_as_it_is_and_other_programs_of_its_user_stay_that_users)
{
	scan(0);
	struct task *before = live(10);
	exec_as(1000, t0);
	ck_assert_ptr_eq(live(10), before);
	ck_assert_uint_eq(before->uid, 1000);
	exec_as(1000, t0 + 200 * SECOND);
	sampled(t0 + 201 * SECOND);
	exec_as(1000, t0 + 400 * SECOND);
	ck_assert_ptr_ne(sampled(t0 + 401 * SECOND), before);
	ck_assert_uint_eq(before->uid, 1000);
	ck_assert_uint_eq(live(10)->uid, 1000);
}

/* Both execs were over when the first was looked at. */
TEST(a_program_that_nobody_read_is_nobodys)
{
	uint64_t past = clock_ns(CLOCK_MONOTONIC) - SECOND;

	bench_fork(b, past, 10, 10, 1);
	exec_as(1000, past + MS);
	struct task *between = sampled(past + 2 * MS);
	exec_as(1000, past + 3 * MS);
	struct task *after = sampled(past + 4 * MS);
	ck_assert_ptr_ne(between, after);
	ck_assert_uint_eq(between->uid, 0);
	ck_assert_uint_eq(after->uid, 1000);
}

TEST(a_process_of_threads_stays_hidden)
{
	scan(0);
	struct task *before = sampled(t0);
	bench_fork(b, t0 + MS, 10, 12, 10);
	scan(1000);
	ck_assert_ptr_eq(live(10), before);
	ck_assert_uint_eq(before->uid, 0);
}

static struct task *sampled_of(int tid, uint64_t time_ns)
{
	struct record r = bench_sample(b, BENCH_ALONE, time_ns, 10, 0x10020);

	r.tid = (uint32_t)tid;
	bench_take(b, &r, 0);
	return bench_got(b, b->n_sunk - 1)->task;
}

/* Its first thread changes its name while root runs it: what was sampled before is root's for ever. */
TEST(a_name_before_is_whose_the_process_was)
{
	scan(0);
	bench_fork(b, t0, 10, 12, 10);
	struct task *first = sampled_of(10, t0 + MS), *thread = sampled_of(12, t0 + MS);
	bench_comm(b, t0 + 2 * MS, 10, "other", false);
	scan(1000);
	ck_assert_uint_eq(live(10)->uid, 1000);
	ck_assert_ptr_eq(sampled_of(12, t0 + 3 * MS)->process, live(10));
	ck_assert_uint_eq(first->uid, 0);
	ck_assert_ptr_eq(thread->process, first);

	bench_comm(b, t0 + 4 * MS, 10, "third", false);
	sampled_of(10, t0 + 5 * MS);
	scan(1001); /* which it may have been for a while */
	ck_assert_uint_eq(live(10)->uid, 0);
}

/* It hides itself, and changes its name before that is found. */
TEST(a_name_before_is_hidden_with_what_hides_itself)
{
	scan(1000);
	bench_fork(b, t0, 10, 12, 10);
	struct task *first = sampled_of(10, t0 + MS), *thread = sampled_of(12, t0 + MS);
	bench_hidden(b, 10, 1000);
	bench_comm(b, t0 + 2 * MS, 10, "other", false);
	struct task *second = sampled_of(10, t0 + 3 * MS);
	ck_assert_ptr_ne(first, second);
	attribute_check_owners(b->attribute, clock_ns(CLOCK_MONOTONIC) + 10 * SECOND);
	ck_assert_uint_eq(first->uid, 0);
	ck_assert_uint_eq(second->uid, 0);
	ck_assert_uint_eq(thread->process->uid, 0);
	ck_assert_uint_eq(owner_n_watched(b->attribute->owners), 0);
}

TEST(what_becomes_anothers_without_a_record_is_found_and_hidden)
{
	scan(1000);
	struct task *task = sampled(t0);
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC) + 10 * SECOND;
	attribute_check_owners(b->attribute, now_ns);
	ck_assert_uint_eq(task->uid, 1000);

	bench_owner(b, 10, 0);
	attribute_check_owners(b->attribute, now_ns + 2 * SECOND);
	ck_assert_uint_eq(task->uid, 1000); /* not sampled since: there is nothing to hide */
	sampled(t0 + MS);
	task->changed = false;
	attribute_check_owners(b->attribute, now_ns + 4 * SECOND);
	ck_assert_uint_eq(task->uid, 0);
	ck_assert_uint_eq(task->gid, 0);
	ck_assert(task->changed);
}

TEST(a_process_is_read_once_a_second)
{
	scan(1000);
	struct task *task = sampled(t0);
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC) + 10 * SECOND;
	attribute_check_owners(b->attribute, now_ns);
	sampled(t0 + MS);
	bench_owner(b, 10, 0);
	attribute_check_owners(b->attribute, now_ns + SECOND / 2);
	ck_assert_uint_eq(task->uid, 1000);
	attribute_check_owners(b->attribute, now_ns + SECOND);
	ck_assert_uint_eq(task->uid, 0);
}

TEST(those_who_are_too_many_have_their_turn)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC) + 10 * SECOND;

	scan(1000);
	attribute_check_owners(b->attribute, now_ns);
	bench_fork(b, t0, 20, 20, 10);
	bench_fork(b, t0, 30, 30, 10);
	for (int pid = 20; pid <= 30; pid += 10) {
		struct record r = bench_sample(b, BENCH_ALONE, t0 + MS, pid, 0x10020);

		bench_process(b, &(struct bench_process){.pid = pid, .comm = "prog"});
		bench_owner(b, pid, 0);
		bench_take(b, &r, 0);
	}
	/* so little time has passed that there is one to be read */
	attribute_check_owners(b->attribute, now_ns + SECOND / OWNERS_SECOND_MAX);
	ck_assert_uint_eq(live(20)->uid, 0);
	ck_assert_uint_eq(live(30)->uid, 1000);
	attribute_check_owners(b->attribute, now_ns + SECOND);
	ck_assert_uint_eq(live(30)->uid, 0);
	ck_assert_uint_eq(owner_n_watched(b->attribute->owners), 0);
}

/* Eight processes are sampled all the time, and of each round there is time to read one. */
TEST(a_check_that_waits_is_not_overtaken_by_those_that_are_sampled_again)
{
	enum { N = 8, LAST = 100 + N - 1 };
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC) + 10 * SECOND;

	scan(1000);
	attribute_check_owners(b->attribute, now_ns);
	for (int pid = 100; pid <= LAST; pid++) {
		bench_process(b, &(struct bench_process){.pid = pid, .comm = "prog"});
		bench_fork(b, t0, pid, pid, 10);
	}
	bench_owner(b, LAST, 0); /* its check would hide it */
	for (int round = 1; round <= N; round++) {
		for (int pid = 100; pid <= LAST; pid++) {
			struct record r = bench_sample(b, BENCH_ALONE, t0 + MS, pid, 0x10020);

			b->n_sunk = 0;
			bench_take(b, &r, 0);
		}
		ck_assert_uint_eq(owner_n_watched(b->attribute->owners), N);
		ck_assert_uint_eq(live(LAST)->uid, 1000);
		now_ns += SECOND / OWNERS_SECOND_MAX;
		attribute_check_owners(b->attribute, now_ns);
	}
	ck_assert_uint_eq(live(LAST)->uid, 0);
}

/* A task of process 10 that has ended, and waits for its check; the process continues as another task. */
static struct task *waits_for_check(uint64_t now_ns)
{
	attribute_check_owners(b->attribute, now_ns);
	struct task *before = sampled(now_ns);
	bench_comm(b, now_ns + 1, 10, "second", false);
	ck_assert_ptr_ne(sampled(now_ns + 2), before);
	ck_assert(before->end_ns && before->watched);
	return before;
}

TEST(a_task_that_waits_for_its_check_is_hidden_by_a_reading_after_its_end)
{
	scan(1000);
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct task *before = waits_for_check(now_ns);
	bench_hidden(b, 10, 1000);
	ck_assert_int_eq(attribute_scan(b->attribute, NULL, 0), 0);
	bench_owner(b, 10, 1000); /* the check itself would find nothing */
	attribute_check_owners(b->attribute, now_ns + MS);
	ck_assert_uint_eq(before->uid, 1000); /* there was no time for it */
	ck_assert(before->watched);
	before->changed = false;
	attribute_check_owners(b->attribute, now_ns + 10 * SECOND);
	ck_assert_uint_eq(before->uid, 0);
	ck_assert_uint_eq(before->gid, 0);
	ck_assert_uint_eq(before->account, 1000);
	ck_assert(before->changed && !before->watched);
}

/* The reading makes the process continue as a third task, for its new user. */
TEST(a_reading_that_finds_another_user_counts_for_tasks_that_wait)
{
	scan(1000);
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct task *before = waits_for_check(now_ns);
	scan(1001);
	bench_owner(b, 10, 1000); /* the check itself would find nothing */
	attribute_check_owners(b->attribute, now_ns + 10 * SECOND);
	ck_assert_uint_eq(before->uid, 0);
	ck_assert_uint_eq(before->account, 1001);
}

TEST(a_task_that_waits_for_its_check_is_kept_by_a_reading_after_its_end)
{
	scan(1000);
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct task *before = waits_for_check(now_ns);
	scan(1000);
	bench_owner(b, 10,
		0); /* what it becomes later is no matter of the task that had ended by the reading */
	attribute_check_owners(b->attribute, now_ns + 10 * SECOND);
	ck_assert_uint_eq(before->uid, 1000);
	ck_assert(!before->watched);
	ck_assert_uint_eq(live(10)->uid, 0); /* it was sampled since, and is read */
}

TEST(a_group_that_the_user_does_not_log_in_with_is_noticed)
{
	bench_text(b, "etc/passwd", "me:x:1000:50::/:/bin/sh\nyou:x:1001:51::/:/bin/sh\n");
	attribute_check_owners(b->attribute, clock_ns(CLOCK_MONOTONIC));
	scan(1000);
	ck_assert(!live(10)->other_group);
	exec_as(1001, t0);
	ck_assert_uint_eq(live(10)->uid, 1001);
	ck_assert(live(10)->other_group);
	bench_fork(b, t0 + MS, 20, 20, 10);
	ck_assert(live(20)->other_group);
	exec_as(1002, t0 + 100 * SECOND);
	ck_assert(!live(10)->other_group); /* whom the file does not have */
}

TEST(one_that_ended_is_whose_it_was)
{
	scan(1000);
	struct task *task = sampled(t0);
	bench_exit(b, t0 + MS, 10, 10);
	bench_owner(b, 10, 0);
	attribute_check_owners(b->attribute, clock_ns(CLOCK_MONOTONIC) + 10 * SECOND);
	ck_assert_uint_eq(task->uid, 1000);
}

/* An exec whose record was lost may have made it another user's. */
TEST(one_that_ended_while_execs_were_lost_is_nobodys, .times = 3)
{
	scan(1000);
	struct task *task = sampled(t0);
	bench_exit(b, t0 + MS, 10, 10);
	if (_i > 0)
		attribute_execs_lost(b->attribute, t0 + 2 * MS, false);
	if (_i == 1)
		attribute_check_owners(b->attribute, clock_ns(CLOCK_MONOTONIC) + 10 * SECOND);
	else
		ck_assert_int_eq(attribute_sweep(b->attribute, NULL, NULL), 0);
	ck_assert_uint_eq(task->uid, _i == 0 ? 1000 : 0);
}

TEST(what_a_program_counted_itself_is_its_owners_of_that_moment)
{
	scan(0);
	struct task *before = live(10);
	attribute_counted(b->attribute, before);
	exec_as(1000, t0);
	ck_assert_ptr_ne(live(10), before);
	ck_assert_uint_eq(before->uid, 0);
	ck_assert_uint_eq(live(10)->uid, 1000);
}

TEST(nobody_who_ended_is_kept_to_be_read)
{
	scan(1000);
	sampled(t0);
	bench_fork(b, t0, 20, 20, 10);
	struct record r = bench_sample(b, BENCH_ALONE, t0 + MS, 20, 0x10020);
	bench_take(b, &r, 0);
	struct task *child = live(20);
	bench_exit(b, t0 + 2 * MS, 20, 20);
	ck_assert_uint_eq(owner_n_watched(b->attribute->owners), 2);
	ck_assert_int_eq(attribute_sweep(b->attribute, NULL, NULL), 0);
	ck_assert_uint_eq(owner_n_watched(b->attribute->owners), 1);
	ck_assert(!child->watched && live(10)->watched);
}

/* --- who pays --------------------------------------------------------------------------------- */

TEST(what_belongs_to_nobody_is_on_the_account_of_its_real_user)
{
	bench_hidden(b, 10, 1000);
	ck_assert_int_eq(attribute_scan(b->attribute, NULL, 0), 0);
	ck_assert_uint_eq(live(10)->uid, 0);
	ck_assert_uint_eq(task_account(live(10)), 1000);
	bench_fork(b, t0, 10, 11, 10); /* a thread */
	bench_fork(b, t0, 20, 20, 10);
	ck_assert_uint_eq(task_account(live(11)), 1000);
	ck_assert_uint_eq(task_account(live(20)), 1000);
	/* what it runs as root, as sudo does, is root's */
	exec_as(0, t0 + MS);
	ck_assert_uint_eq(task_account(live(10)), 0);
	ck_assert_uint_eq(task_account(live(11)), 0);
}

TEST(a_user_pays_for_a_program_that_was_gone_before_it_was_read_and_root_does_not)
{
	for (unsigned int uid = 0; uid <= 1000; uid += 1000) {
		uint64_t at_ns = t0 + uid * MS;
		bench_text(b, "proc/10/status", "");
		bench_owner(b, 10, uid);
		ck_assert_int_eq(attribute_scan(b->attribute, NULL, 0), 0);
		ck_assert_uint_eq(task_account(live(10)), uid);
		bench_text(b, "proc/10/status", "");
		bench_comm(b, at_ns, 10, "gone", true);
		ck_assert_uint_eq(live(10)->uid, (uid_t)-1);
		ck_assert_uint_eq(task_account(live(10)), uid ? uid : ACCOUNT_NOBODY);
	}
}

TEST(what_root_forked_is_found_under_a_user_without_an_exec)
{
	scan(0);
	bench_fork(b, t0, 20, 20, 10);
	ck_assert_uint_eq(task_account(live(20)), 0);
	bench_process(b, &(struct bench_process){.pid = 20, .comm = "prog"});
	bench_owner(b, 20, 1001);
	struct record r = bench_sample(b, BENCH_ALONE, t0 + MS, 20, 0x10020);
	bench_take(b, &r, 0);
	ck_assert_uint_eq(task_account(live(20)), 1001);
	ck_assert_uint_eq(live(20)->uid, 0); /* what it had of root's is still in it */
}

TEST(what_nobody_has_looked_at_is_not_roots)
{
	struct record r = bench_sample(b, BENCH_ALONE, t0, 77, 0x10020);
	bench_take(b, &r, 0);
	ck_assert_uint_eq(task_account(live(77)), ACCOUNT_NOBODY);
	ck_assert_uint_eq(task_account(NULL), ACCOUNT_NOBODY);
}
