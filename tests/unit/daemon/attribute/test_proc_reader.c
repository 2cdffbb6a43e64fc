/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/attribute/proc_reader.h"

#include <stdatomic.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "tests/unit/test.h"

static struct proc_reader *reader;
static atomic_int blocks; /* reads of owners: until it is 0 */
static atomic_int n_ended;

static void begin(void)
{
	ck_assert_int_eq(proc_reader_new(&reader), 0);
}

EACH_TEST(.begin = begin);

/* A process whose owner cannot be read for as long as `blocks` is set. */
static int slow_rights(int folder_fd, uid_t account, struct rights *ret_rights)
{
	(void)account;
	(void)folder_fd;
	while (blocks)
		usleep(1000);
	*ret_rights = (struct rights){7, 8, 7};
	n_ended++;
	return 0;
}

static int ask(pid_t pid, unsigned wants, struct proc_view *v)
{
	const struct proc_question q = {.folder = "/proc/self",
		.pid = pid,
		.account = ACCOUNT_NOBODY,
		.wants = wants,
		.rights = slow_rights};
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	int r = proc_reader_ask(reader, &q, v);
	ck_assert_uint_lt(clock_ns(CLOCK_MONOTONIC) - began, SECOND);
	return r;
}

TEST(what_is_wanted_of_a_process_is_read)
{
	struct proc_view v;
	ck_assert_int_eq(ask(1,
				 PROC_STAT | PROC_CGROUP | PROC_THREADS | PROC_INNER | PROC_ARGV |
					 PROC_RIGHTS | PROC_EXE | PROC_MAPS | PROC_ENVIRON,
				 &v),
		0);
	ck_assert_uint_eq(v.has & PROC_STAT, PROC_STAT);
	ck_assert_int_eq(v.stat.pid, getpid());
	ck_assert_uint_ge(v.n_threads, 1); /* ours, and the one that reads */
	ck_assert_int_eq(v.thread[0].inner > 0, 1);
	ck_assert_ptr_nonnull(strstr(v.argv, "test_proc_reader"));
	ck_assert_ptr_nonnull(strstr(v.exe, "test_proc_reader"));
	ck_assert_uint_eq(v.rights.uid, 7);
	ck_assert_ptr_nonnull(strstr(v.maps, "r-xp"));
	ck_assert_ptr_null(strstr(v.maps, "rw-p"));
	ck_assert_uint_eq(v.environment[v.n_environment], 0);
	proc_view_clear(&v);
}

TEST(only_what_is_wanted_is_read)
{
	struct proc_view v;
	ck_assert_int_eq(ask(1, PROC_EXE, &v), 0);
	ck_assert_uint_eq(v.has, PROC_EXE);
	ck_assert_ptr_null(v.argv);
	proc_view_clear(&v);
}

TEST(threads_are_read_up_to_the_bound_and_the_time_is_said)
{
	const struct proc_question q = {.folder = "/proc/self",
		.pid = getpid(),
		.account = ACCOUNT_NOBODY,
		.wants = PROC_THREADS | PROC_INNER,
		.n_threads = 1};
	struct proc_view v;
	ck_assert_int_eq(proc_reader_ask(reader, &q, &v), 0);
	ck_assert_uint_eq(v.n_threads, 1); /* of two: ours, and the one that reads */
	ck_assert_uint_gt(v.reading_ns, 0);
	proc_view_clear(&v);
	/* ours is charged as it passes */
	ck_assert_int_eq(proc_reader_ask(NULL, &q, &v), 0);
	ck_assert_uint_eq(v.reading_ns, 0);
	proc_view_clear(&v);
}

TEST(a_process_that_is_gone_is_gone)
{
	const struct proc_question q = {.folder = "/proc/0", .pid = 1, .wants = PROC_STAT};
	struct proc_view v;
	ck_assert_int_eq(proc_reader_ask(reader, &q, &v), PROC_GONE);
	ck_assert_int_eq(proc_reader_ask(NULL, &q, &v), PROC_GONE);
	ck_assert_uint_eq(proc_reader_silent(reader), 0);
}

TEST(a_process_that_does_not_answer_is_not_asked_again_until_it_has)
{
	struct proc_view v;
	blocks = 1;
	ck_assert_int_eq(ask(1, PROC_RIGHTS, &v), PROC_SILENT);
	ck_assert_int_eq(ask(1, PROC_EXE, &v), PROC_SILENT);
	ck_assert_uint_eq(proc_reader_silent(reader), 2);
	ck_assert_int_eq(ask(2, PROC_EXE, &v), 0); /* another one of the same user */
	proc_view_clear(&v);
	blocks = 0;
	for (int i = 0; i < 500 && n_ended == 0; i++)
		usleep(10000);
	int r = PROC_SILENT;
	for (int i = 0; i < 500 && r == PROC_SILENT; i++, usleep(10000))
		r = ask(1, PROC_RIGHTS, &v);
	ck_assert_int_eq(r, 0);
	proc_view_clear(&v);
}

TEST(a_user_keeps_the_loop_waiting_for_a_small_part_of_its_time)
{
	struct proc_view v;
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	int n_late = 0;
	for (int i = 0; i < 200; i++) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC);
		int ended = n_ended;
		blocks = 1;
		if (ask(100 + i, PROC_RIGHTS, &v) == 0)
			proc_view_clear(&v);
		n_late += clock_ns(CLOCK_MONOTONIC) - before > 5 * MS;
		blocks = 0;
		for (int wait = 0; wait < 50 && n_ended == ended && n_late < 20; wait++)
			usleep(200);
	}
	/* 50 ms at once, and then one part in PROC_READER_PART */
	uint64_t took_s = (clock_ns(CLOCK_MONOTONIC) - began) / SECOND + 1;
	ck_assert_int_ge(n_late, 2);
	ck_assert_int_le(n_late, (int)(10 + 6 * took_s));
}
