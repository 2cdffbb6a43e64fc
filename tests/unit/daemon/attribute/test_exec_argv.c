/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/exec_argv.c: arguments that are read before the record of their
 * exec comes */

#include <linux/auxvec.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/attribute/attribute_private.h"
#include "daemon/attribute/exec_table.h"
#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

#define NEVER UINT64_MAX

static struct bench *b;
static uint64_t t0; /* of the first exec; looks are stamped by the real clock */

static void setup(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t0 = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - 5 * MS;
	b = bench_new();
	bench_start(b);
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

static void write_argv(int pid, const char *argv)
{
	char path[64];

	bench_process(b, &(struct bench_process){.pid = pid, .parent = 1, .comm = "x"});
	snprintf(path, sizeof(path), "proc/%d/cmdline", pid);
	bench_bytes(b, path, argv, *argv ? strlen(argv) + 1 : 0);
}

static void vanish(int pid)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%d", b->proc, pid);
	strcat(path, ".gone");
	char from[128];
	snprintf(from, sizeof(from), "%s/%d", b->proc, pid);
	ck_assert_int_eq(rename(from, path), 0);
}

static const char *argv_of(int pid)
{
	const struct task *task = task_find(&b->tasks, pid);

	ck_assert_ptr_nonnull(task);
	return task->argv;
}

static void heard(int pid, uint64_t time_ns)
{
	attribute_exec(b->attribute, pid, time_ns);
	ck_assert_uint_eq(attribute_exec_due_ns(b->attribute), 0);
}

static void look(uint64_t now_ns)
{
	attribute_read_execs(b->attribute, now_ns);
}

TEST(arguments_of_one_who_is_gone_come_with_his_record)
{
	write_argv(10, "cc1 -O2");
	heard(10, t0);
	look(t0 + MS / 10);
	ck_assert_uint_eq(attribute_exec_due_ns(b->attribute), NEVER);
	vanish(10);
	bench_comm(b, t0 - MS / 5, 10, "cc1", true);
	ck_assert_str_eq(argv_of(10), "cc1 -O2");
	ck_assert_uint_eq(task_find(&b->tasks, 10)->uid, 1000);
	attribute_drained(b->attribute);
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 0);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 0);
}

/* The kernel's copy of a stack with one argument, as the exec's record brings it. */
static void copied(int pid, uint64_t time_ns, uint64_t uid, uint64_t secure, size_t n_cut)
{
	uint64_t sp = 0x7fff0000, text = sp + 12 * 8;
	uint64_t words[14] = {1, text, 0, 0, AT_UID, uid, AT_SECURE, secure, AT_NULL};
	struct record r = {
		.kind = RECORD_SAMPLE,
		.pid = (uint32_t)pid,
		.tid = (uint32_t)pid,
		.time_ns = time_ns,
		.sample = {.regs_abi = PERF_SAMPLE_REGS_ABI_64,
			.regs = &sp,
			.stack = (const uint8_t *)words,
			.n_stack = sizeof(words) - n_cut},
	};
	memcpy(words + 12, "cc1 -O3", 8);
	attribute_exec_stack(b->attribute, &r);
}

TEST(arguments_on_the_copied_stack_need_no_living_process)
{
	copied(10, t0, 1000, 0, 0);
	ck_assert_uint_eq(attribute_exec_due_ns(b->attribute), NEVER); /* nothing to read */
	bench_comm(b, t0 - MS / 5, 10, "cc1", true);
	ck_assert_str_eq(argv_of(10), "cc1 -O3");
	attribute_drained(b->attribute);
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 0);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 0);
}

TEST(a_copied_stack_without_the_arguments_has_them_read)
{
	write_argv(10, "cc1 -O2");
	copied(10, t0, 1000, 0, 16);
	ck_assert_uint_eq(attribute_exec_due_ns(b->attribute), 0);
	look(t0 + MS / 10);
	bench_comm(b, t0 - MS / 5, 10, "cc1", true);
	ck_assert_str_eq(argv_of(10), "cc1 -O2");
}

TEST(a_program_that_is_gone_before_anybody_looked_is_nobodys)
{
	bench_process(b, &(struct bench_process){.pid = 10, .parent = 1, .comm = "x"});
	bench_comm(b, t0 - MS, 10, "sh", true);
	ck_assert_uint_eq(task_find(&b->tasks, 10)->uid, (uid_t)-1);
}

TEST(a_program_with_its_files_rights_is_roots)
{
	bench_process(b, &(struct bench_process){.pid = 10, .parent = 1, .comm = "x"});
	copied(10, t0, 1000, 1, 0);
	bench_comm(b, t0 - MS / 5, 10, "passwd", true);
	ck_assert_uint_eq(task_find(&b->tasks, 10)->uid, 0);
}

TEST(a_program_that_may_not_be_read_is_nobodys_though_it_is_gone_by_then)
{
	bench_process(b, &(struct bench_process){.pid = 10, .parent = 1, .comm = "x"});
	ck_assert_int_eq(attribute_scan(b->attribute, NULL, 0), 0);
	ck_assert_uint_eq(task_find(&b->tasks, 10)->uid, 1000);
	bench_owner(b, 10, 0);
	copied(10, t0, 1000, 0, 0); /* the copy does not say so */
	vanish(10);
	bench_comm(b, t0 - MS / 5, 10, "cc1", true);
	ck_assert_uint_eq(task_find(&b->tasks, 10)->uid, 0);
}

TEST(another_uid_is_asked_of_proc_which_knows_the_namespace)
{
	bench_process(b, &(struct bench_process){.pid = 10, .parent = 1, .comm = "x"});
	copied(10, t0, 0, 0, 0); /* root, says the container */
	bench_comm(b, t0 - MS / 5, 10, "cc1", true);
	ck_assert_uint_eq(task_find(&b->tasks, 10)->uid, 1000);
}

TEST(copies_whose_record_never_comes_are_forgotten)
{
	for (int pid = 1; pid <= 5; pid++)
		copied(pid, t0, 1000, 0, 0);
	attribute_drained(b->attribute);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 5);
	for (int pid = 1; pid <= 3; pid++)
		copied(pid, t0 - 4000 * MS, 1000, 0, 0);
	attribute_drained(b->attribute);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 5);
}

TEST(one_whom_nobody_heard_of_in_time_is_counted)
{
	heard(10, t0);
	look(t0 + MS);
	bench_comm(b, t0, 10, "cc1", true);
	bench_comm(b, t0, 11, "as", true);
	attribute_drained(b->attribute);
	ck_assert_ptr_null(argv_of(10));
	ck_assert_ptr_null(argv_of(11));
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 2);
}

TEST(one_whom_nobody_heard_of_is_still_found_alive)
{
	write_argv(10, "daemon --stay");
	bench_comm(b, t0, 10, "daemon", true);
	ck_assert_str_eq(argv_of(10), "daemon --stay");
}

static bool tens_are_gone(pid_t pid)
{
	return pid == 10;
}

TEST(one_who_is_known_to_be_gone_is_not_looked_up)
{
	b->attribute->o.is_gone = tens_are_gone;
	write_argv(10, "cc1 -O2");
	write_argv(11, "as -o");
	heard(10, t0);
	look(t0 + MS);
	bench_comm(b, t0, 10, "cc1", true);
	bench_comm(b, t0, 11, "as", true);
	attribute_drained(b->attribute);
	ck_assert_ptr_null(argv_of(10));
	ck_assert_str_eq(argv_of(11), "as -o");
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 1);
}

TEST(a_process_is_gone_once_it_was_waited_for)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	ck_assert_int_gt(child, 0);
	ck_assert(!proc_is_gone(child));
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	ck_assert(proc_is_gone(child));
	ck_assert(!proc_is_gone(getpid()));
	ck_assert(!proc_is_gone(1)); /* also if we may not send it a signal */
	ck_assert(!proc_is_gone(0));
	ck_assert(!proc_is_gone(-1));
}

TEST(an_empty_look_is_repeated_after_one_three_and_ten_milliseconds)
{
	write_argv(10, "");
	heard(10, t0);
	look(t0 + MS / 10);
	ck_assert_uint_eq(attribute_exec_due_ns(b->attribute), t0 + 1 * MS);
	look(t0 + 1 * MS - 1); /* too early: nothing happens */
	ck_assert_uint_eq(attribute_exec_due_ns(b->attribute), t0 + 1 * MS);
	look(t0 + 1 * MS);
	ck_assert_uint_eq(attribute_exec_due_ns(b->attribute), t0 + 3 * MS);
	write_argv(10, "late");
	look(t0 + 2 * MS);
	ck_assert_uint_eq(attribute_exec_due_ns(b->attribute), t0 + 3 * MS);
	look(t0 + 3 * MS);
	ck_assert_uint_eq(attribute_exec_due_ns(b->attribute), NEVER);
	vanish(10);
	bench_comm(b, t0, 10, "late", true);
	ck_assert_str_eq(argv_of(10), "late");
}

TEST(an_empty_one_is_given_up_to_the_drain)
{
	write_argv(10, "");
	heard(10, t0);
	look(t0 + 2 * MS); /* the first look was late: the next is the second */
	ck_assert_uint_eq(attribute_exec_due_ns(b->attribute), t0 + 3 * MS);
	look(t0 + 30 * MS); /* all are past */
	ck_assert_uint_eq(attribute_exec_due_ns(b->attribute), NEVER);
	write_argv(10, "at last");
	bench_comm(b, t0, 10, "x", true);
	ck_assert_str_eq(argv_of(10), "at last");
}

TEST(a_record_that_overtakes_the_looks_is_served_later)
{
	write_argv(10, "");
	write_argv(11, "");
	heard(10, t0);
	heard(11, t0);
	look(t0 + MS / 10);
	bench_comm(b, t0, 10, "x", true);
	bench_comm(b, t0, 11, "y", true);
	attribute_drained(b->attribute);
	ck_assert_ptr_null(argv_of(10));
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 0); /* not yet */
	write_argv(10, "x in place");
	vanish(11);
	look(t0 + 1 * MS);
	ck_assert_str_eq(argv_of(10), "x in place");
	ck_assert_ptr_null(argv_of(11));
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 1);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 0);
}

TEST(what_a_second_exec_left_is_not_the_firsts)
{
	write_argv(10, "second");
	heard(10, t0);
	look(t0 + 3 * MS); /* the second exec was before, but we hear of it only now */
	heard(10, t0 + 2 * MS);
	bench_comm(b, t0, 10, "first", true);
	look(t0 + 4 * MS);
	vanish(10);
	bench_comm(b, t0 + 2 * MS, 10, "second", true);
	ck_assert_str_eq(argv_of(10), "second");
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 0);
}

TEST(execs_in_a_row_each_get_their_own)
{
	write_argv(10, "first");
	heard(10, t0);
	look(t0 + MS);
	write_argv(10, "second");
	heard(10, t0 + 2000 * MS); /* after the look */
	look(t0 + 2001 * MS);
	vanish(10);
	bench_comm(b, t0 - 1, 10, "first", true);
	ck_assert_str_eq(argv_of(10), "first");
	bench_comm(b, t0 + 1999 * MS, 10, "second", true);
	ck_assert_str_eq(argv_of(10), "second");
}

TEST(an_exec_heard_of_out_of_order_is_not_read)
{
	write_argv(10, "second");
	heard(10, t0 + 2 * MS);
	attribute_exec(b->attribute, 10, t0);
	look(t0 + 3 * MS);
	vanish(10);
	bench_comm(b, t0, 10, "first", true);
	ck_assert_ptr_null(argv_of(10));
	bench_comm(b, t0 + 2 * MS, 10, "second", true);
	ck_assert_str_eq(argv_of(10), "second");
}

TEST(arguments_of_another_time_or_pid_are_not_taken)
{
	write_argv(10, "mine");
	heard(10, t0);
	look(t0 + MS);
	vanish(10);
	bench_comm(b, t0 + 101 * MS, 10, "other", true);
	ck_assert_ptr_null(argv_of(10));
	bench_comm(b, t0, 11, "other", true);
	ck_assert_ptr_null(argv_of(11));
	bench_comm(b, t0 + 100 * MS, 10, "mine", true);
	ck_assert_str_eq(argv_of(10), "mine");
}

TEST(what_never_comes_through_the_merge_expires)
{
	write_argv(10, "x");
	heard(10, t0);
	look(t0 + MS);
	look(t0 + 3000 * MS);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 1);
	look(t0 + 3000 * MS + 1);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 0);
}

TEST(the_table_is_bounded)
{
	const int most = EXECS_BYTES_MAX / (EXEC_BYTES + TASK_ARGV_BYTES_MAX);
	for (int pid = 1; pid <= most + 100; pid++)
		attribute_exec(b->attribute, pid, t0);
	ck_assert_int_eq(exec_argv_n(b->attribute->execs), most);
	for (int i = 0; i < most + 100; i++) /* one process, again and again */
		attribute_exec(b->attribute, 7, t0 + (uint64_t)i);
	ck_assert_int_eq(exec_argv_n(b->attribute->execs), most);
	write_argv(most + 50, "beyond");
	bench_comm(b, t0, most + 50, "beyond", true);
	ck_assert_str_eq(argv_of(most + 50), "beyond");
	look(t0 + MS); /* those that are read take as much as they have */
	look(t0 + 20 * MS);
	attribute_exec(b->attribute, most + 60, t0 + 20 * MS);
	ck_assert_int_eq(exec_argv_n(b->attribute->execs), most + 1);
	look(t0 + 4000 * MS);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 0);
}

TEST(only_the_wanted_are_looked_at_and_counted)
{
	attribute_free(b->attribute);
	b->options.all = false;
	bench_start(b);
	bench_fork(b, t0 - 9 * MS, 20, 20, 1);
	bench_fork(b, t0 - 9 * MS, 30, 30, 1);
	task_find(&b->tasks, 30)->wanted = true;
	attribute_exec(b->attribute, 20, t0);
	attribute_exec(b->attribute, -1, t0);
	attribute_exec(b->attribute, 0, t0);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 0);
	heard(30, t0);
	heard(31, t0); /* not known yet: it may be wanted */
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 2);
	look(t0 + MS);
	bench_comm(b, t0, 20, "a", true);
	bench_comm(b, t0, 30, "b", true);
	attribute_drained(b->attribute);
	ck_assert_uint_eq(b->lost[0][LOSS_ARGV], 1);
}
