/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/loops/feed_task.c: threads of a program in another pid namespace */

#include <unistd.h>

#include "daemon/loops/feed_private.h"
#include "tests/unit/test.h"

TEST(threads_of_another_pid_namespace_are_read_once_in_a_while)
{
	struct task_table tasks = {0};
	struct feed f = {.o.tasks = &tasks, .now_ns = 10};
	struct connection c = {.feed = &f, .pid = getpid(), .process.other_pids = true};
	struct program_thread known = {.tid = (uint32_t)getpid(), .begin_ns = 5};
	struct program_thread invented = {.tid = 1 << 29, .begin_ns = 5};
	struct program_thread later = {.tid = 1 << 29, .begin_ns = 15};
	ck_assert_int_eq(task_add(&tasks, getpid(), getpid(), 1, &c.process.task), 0);

	ck_assert_ptr_eq(feed_task_of(&c, &known), c.process.task);
	ck_assert_int_eq(known.our_tid, getpid());
	ck_assert_uint_eq(c.process.tids_ns, 10);

	f.now_ns = 20;
	ck_assert_ptr_eq(feed_task_of(&c, &invented), c.process.task);
	ck_assert_ptr_eq(
		invented.who, c.process.task); /* for good: it began before they were read */
	ck_assert_uint_eq(f.causes[FEED_STRANGER], 1);

	ck_assert_ptr_eq(feed_task_of(&c, &later), c.process.task);
	ck_assert_ptr_null(later.who); /* it may be there by now */
	ck_assert_uint_eq(c.process.tids_ns, 10);

	f.now_ns = 10 + FEED_LOOK_NS;
	ck_assert_ptr_eq(feed_task_of(&c, &later), c.process.task);
	ck_assert_ptr_eq(later.who, c.process.task);
	ck_assert_uint_eq(c.process.tids_ns, f.now_ns);
	free(c.process.tid);
	task_table_clear(&tasks);
}
