/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/job.c: labels are given, read and inherited */

#include <linux/auxvec.h>
#include <unistd.h>

#include "daemon/attribute/attribute_private.h"
#include "proto/base/clock.h"
#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

#define A "{\"job\":\"a\"}"
#define B "{\"job\":\"b\"}"

static struct bench *b;
static uint64_t t0;
static struct label_variables variables;

static const struct bench_process shell = {
	.pid = 10, .parent = 1, .comm = "sh", .start_ns = SECOND};

static void setup(void)
{
	ck_assert_int_eq(label_variables_parse("CI_JOB_ID,branch=REF", &variables), 0);
	b = bench_new();
	b->options.variables = &variables;
	bench_start(b);
	bench_process(b, &shell);
	bench_owner(b, 10, 1000);
	bench_bytes(b, "proc/10/cmdline", "sh\0", 3);
	t0 = clock_ns(CLOCK_MONOTONIC) + 60 * SECOND;
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

static void scan(void)
{
	ck_assert_int_eq(attribute_scan(b->attribute, NULL, 0), 0);
}

static struct task *live(int tid)
{
	struct task *task = task_find(&b->tasks, tid);

	ck_assert_ptr_nonnull(task);
	return task;
}

static const char *labels_of(int pid)
{
	const struct label_set *set = live(pid)->process->labels;

	return set ? set->labels : "";
}

static struct task *sampled(uint64_t time_ns, int pid)
{
	struct record r = bench_sample(b, BENCH_ALONE, time_ns, pid, 0x10020);

	bench_take(b, &r, 0);
	return bench_got(b, b->n_sunk - 1)->task;
}

static void set(int pid, const char *json, uint64_t time_ns)
{
	ck_assert_int_eq(attribute_set_labels(b->attribute, pid, 1000, json, time_ns), 0);
}

TEST(what_a_process_starts_has_its_labels)
{
	scan();
	set(10, A, t0);
	bench_fork(b, t0 + MS, 11, 11, 10);
	bench_fork(b, t0 + 2 * MS, 12, 12, 11);
	bench_fork(b, t0 + 2 * MS, 12, 13, 12); /* a thread */
	ck_assert_str_eq(labels_of(11), A);
	ck_assert_str_eq(labels_of(12), A);
	ck_assert_str_eq(labels_of(13), A);
	bench_comm(b, t0 + 3 * MS, 12, "cc1", true);
	ck_assert_str_eq(labels_of(12), A);
}

TEST(samples_from_before_stay_in_the_job_before)
{
	scan();
	struct task *before = sampled(t0, 10);
	set(10, A, t0 + MS);
	struct task *inside = sampled(t0 + 2 * MS, 10);
	set(10, B, t0 + 3 * MS);
	struct task *after = sampled(t0 + 4 * MS, 10);
	ck_assert_ptr_null(before->labels);
	ck_assert_str_eq(inside->labels->labels, A);
	ck_assert_str_eq(after->labels->labels, B);
	ck_assert_uint_eq(before->uid, 1000);
	ck_assert_uint_eq(after->uid, 1000);
	ck_assert_uint_eq(before->start_ns, after->start_ns);
	ck_assert_str_eq(after->comm, "sh");
	ck_assert_ptr_nonnull(after->argv);
	/* a late record of the former goes to the one that lives */
	ck_assert_ptr_eq(sampled(t0 + 2 * MS, 10), after);
}

TEST(after_the_end_nothing_new_is_in_the_job)
{
	scan();
	set(10, A, t0);
	bench_fork(b, t0 + MS, 11, 11, 10);
	sampled(t0 + MS, 10);
	set(10, NULL, t0 + 2 * MS);
	bench_fork(b, t0 + 3 * MS, 12, 12, 10);
	ck_assert_str_eq(labels_of(10), "");
	ck_assert_str_eq(labels_of(11), A);
	ck_assert_str_eq(labels_of(12), "");
}

TEST(samples_from_before_of_a_process_with_threads_stay_in_the_job_before)
{
	scan();
	bench_fork(b, t0, 10, 14, 10);
	struct task *before = sampled(t0 + MS, 10);
	set(10, A, t0 + 2 * MS);
	struct task *inside = sampled(t0 + 3 * MS, 10);
	ck_assert_ptr_null(before->labels);
	ck_assert_str_eq(inside->labels->labels, A);
	ck_assert_str_eq(labels_of(14), A);
	ck_assert_uint_eq(inside->n_threads, 2);
}

TEST(processes_that_are_not_there_are_not_labelled)
{
	scan();
	bench_fork(b, t0, 10, 14, 10);
	ck_assert_int_eq(attribute_set_labels(b->attribute, 99, 1000, A, t0), ATTRIBUTE_GONE);
	ck_assert_int_eq(attribute_set_labels(b->attribute, 14, 1000, A, t0), ATTRIBUTE_GONE);
	ck_assert_uint_eq(HASH_COUNT(b->tasks.label_sets.set), 0);
}

#define ENVIRON "PATH=/bin\0CI_JOB_ID=4711\0GITHUB_TOKEN=secret\0REF=main"

TEST(named_variables_of_the_environment_are_labels_and_nothing_else)
{
	bench_bytes(b, "proc/10/environ", ENVIRON, sizeof(ENVIRON));
	scan();
	ck_assert_str_eq(labels_of(10), "{\"CI_JOB_ID\":\"4711\",\"branch\":\"main\"}");
	ck_assert_uint_eq(live(10)->labels->uid, 1000);
}

TEST(an_exec_reads_the_environment_of_the_program)
{
	scan();
	ck_assert_str_eq(labels_of(10), "");
	bench_bytes(b, "proc/10/environ", ENVIRON, sizeof(ENVIRON));
	bench_comm(b, t0, 10, "sh", true);
	ck_assert_str_eq(labels_of(10), "{\"CI_JOB_ID\":\"4711\",\"branch\":\"main\"}");
}

TEST(the_environment_adds_to_what_was_given_and_changes_none_of_it)
{
	scan();
	set(10, "{\"branch\":\"given\",\"job\":\"a\"}", t0);
	bench_bytes(b, "proc/10/environ", ENVIRON, sizeof(ENVIRON));
	bench_comm(b, t0 + MS, 10, "sh", true);
	ck_assert_str_eq(
		labels_of(10), "{\"CI_JOB_ID\":\"4711\",\"branch\":\"given\",\"job\":\"a\"}");
}

TEST(the_environment_of_what_belongs_to_nobody_labels_nothing)
{
	bench_bytes(b, "proc/10/environ", ENVIRON, sizeof(ENVIRON));
	bench_hidden(b, 10, 1000);
	scan();
	bench_comm(b, t0, 10, "sh", true);
	ck_assert_str_eq(labels_of(10), "");
	bench_owner(b, 10, 1000);
	bench_comm(b, t0 + MS, 10, "sh", true);
	ck_assert_uint_eq(live(10)->labels->uid, 1000);
	/* it stays in the job that it has */
	bench_hidden(b, 10, 1000);
	bench_bytes(b, "proc/10/environ", "REF=other", sizeof("REF=other"));
	bench_comm(b, t0 + 2 * MS, 10, "sh", true);
	ck_assert_str_eq(labels_of(10), "{\"CI_JOB_ID\":\"4711\",\"branch\":\"main\"}");
}

/* Its exec comes through the rings when it has become another program. */
TEST(the_environment_is_that_of_the_program_whose_owner_is_known)
{
	bench_owner(b, 10, 0);
	scan();
	ck_assert_uint_eq(live(10)->uid, 0);
	bench_bytes(b, "proc/10/environ", ENVIRON, sizeof(ENVIRON));
	bench_hidden(b, 10, 1000);
	struct task *process = live(10);
	struct proc_view v = {.has = 0};
	ck_assert_int_eq(proc_read(&b->options, 10, PROC_ENVIRON, &v), 0);
	ck_assert(v.has & PROC_ENVIRON);
	ck_assert_int_eq(job_read(b->attribute, &process, &v), 0);
	proc_view_clear(&v);
	ck_assert_str_eq(labels_of(10), "");
}

TEST(the_environment_of_one_user_adds_nothing_to_the_job_of_another)
{
	scan();
	ck_assert_int_eq(attribute_set_labels(b->attribute, 10, 0, A, t0), 0);
	bench_bytes(b, "proc/10/environ", ENVIRON, sizeof(ENVIRON));
	bench_comm(b, t0 + MS, 10, "sh", true);
	ck_assert_str_eq(labels_of(10), A);
}

/* Whoever may run it writes its environment. */
TEST(the_environment_of_a_set_user_id_program_makes_no_job_of_roots)
{
	static const uint64_t began[] = {AT_UID, 0, AT_SECURE, 1, 0, 0};
	static const uint64_t plain[] = {AT_UID, 0, AT_SECURE, 0, 0, 0};
	static const uint32_t narrow[] = {AT_PLATFORM, 7, AT_SECURE, 1, 0, 0};

	bench_owner(b, 10, 0);
	bench_bytes(b, "proc/10/environ", ENVIRON, sizeof(ENVIRON));
	scan(); /* auxv cannot be read */
	ck_assert_str_eq(labels_of(10), "");
	bench_bytes(b, "proc/10/auxv", (const char *)began, sizeof(began));
	bench_comm(b, t0, 10, "sudo", true);
	ck_assert_str_eq(labels_of(10), "");
	bench_bytes(b, "proc/10/auxv", (const char *)narrow, sizeof(narrow));
	bench_comm(b, t0 + 200 * MS, 10, "sudo", true);
	ck_assert_str_eq(labels_of(10), "");
	bench_bytes(b, "proc/10/auxv", (const char *)plain, sizeof(plain));
	bench_comm(b, t0 + 400 * MS, 10, "sh", true);
	ck_assert_uint_eq(live(10)->labels->uid, 0);
}

TEST(values_that_are_no_labels_are_left_out)
{
	static const char text[] = "CI_JOB_ID=a\nb\0REF=\xff\0XREF=1\0REF";

	bench_bytes(b, "proc/10/environ", text, sizeof(text));
	scan();
	ck_assert_str_eq(labels_of(10), "");
}

TEST(labels_are_freed_with_their_tasks)
{
	scan();
	set(10, A, t0);
	bench_fork(b, t0 + MS, 11, 11, 10);
	bench_exit(b, t0 + 2 * MS, 11, 11);
	bench_exit(b, t0 + 2 * MS, 10, 10);
	ck_assert_uint_eq(HASH_COUNT(b->tasks.label_sets.set), 1);
	task_table_clear(&b->tasks);
	ck_assert_ptr_null(b->tasks.label_sets.set);
}
