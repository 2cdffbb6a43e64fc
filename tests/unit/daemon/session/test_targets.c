/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/targets.c, on tasks made by hand. */

#include "daemon/session/targets.h"

#include "tests/unit/test.h"

static struct task init, shell, make, thread, other;
static struct targets targets;

static void lives(struct task *t, pid_t pid, struct task *parent, uint64_t start_ns)
{
	*t = (struct task){.pid = pid,
		.tid = pid,
		.process = t,
		.parent = parent,
		.start_ns = start_ns,
		.uid = 1000};
}

static void setup(void)
{
	lives(&init, 1, NULL, 0);
	lives(&shell, 10, &init, 100);
	lives(&make, 20, &shell, 2000);
	lives(&other, 30, &init, 100);
	thread = (struct task){.pid = 20, .tid = 21, .process = &make, .uid = 1000};
	targets = (struct targets){.since_ns = 1000, .pid = {10}, .n_pids = 1};
}

EACH_TEST(.begin = setup);

TEST(a_named_process_its_children_and_their_threads_are_wanted)
{
	ck_assert(targets_want(&targets, &shell));
	ck_assert(targets_want(&targets, &make));
	ck_assert(targets_want(&targets, &thread));
}

TEST(others_and_parents_are_not_wanted)
{
	ck_assert(!targets_want(&targets, &init));
	ck_assert(!targets_want(&targets, &other));
}

TEST(a_pid_that_is_used_again_is_another_process)
{
	lives(&shell, 10, &init, 1001);
	ck_assert(!targets_want(&targets, &shell));
	ck_assert(!targets_want(&targets, &make));
}

TEST(a_process_that_waits_for_its_exec_is_wanted_from_then_on)
{
	targets.after_exec = true;
	ck_assert(!targets_want(&targets, &shell));
	shell.exec_ns = 900;
	ck_assert(!targets_want(&targets, &shell));
	shell.exec_ns = 1100;
	ck_assert(targets_want(&targets, &shell));
	ck_assert(targets_want(&targets, &make));
}

TEST(another_users_child_is_hidden_from_who_sees_only_his_own)
{
	targets.only_uid = true;
	targets.uid = 1000;
	make.uid = 0; /* a setuid program that he started */
	ck_assert(targets_want(&targets, &shell));
	ck_assert(!targets_want(&targets, &make));
	ck_assert(!targets_want(&targets, &thread));
	make.uid = (uid_t)-1; /* not known */
	ck_assert(!targets_want(&targets, &make));
	targets.all = true;
	ck_assert(!targets_want(&targets, &make));
	ck_assert(targets_want(&targets, &other));
}

TEST(kernel_threads_are_nobodys_own)
{
	targets = (struct targets){.all = true, .only_uid = true, .uid = 0};
	lives(&other, 30, NULL, 0);
	other.uid = 0;
	ck_assert(targets_want(&targets, &other));
	other.kernel_thread = true;
	ck_assert(!targets_want(&targets, &other));
}

TEST(parents_in_a_circle_end_the_search)
{
	init.parent = &shell;
	targets.pid[0] = 77;
	ck_assert(!targets_want(&targets, &make));
}

TEST(only_processes_with_the_labels_of_a_job_are_wanted)
{
	struct label_set build = {.id = 1}, tests = {.id = 2};
	targets = (struct targets){.all = true, .labels = &build};
	make.labels = &build;
	other.labels = &tests;
	ck_assert(targets_want(&targets, &make));
	ck_assert(targets_want(&targets, &thread));
	ck_assert(!targets_want(&targets, &other));
	ck_assert(!targets_want(&targets, &shell));
	ck_assert(!targets_are_all(&targets));
}

TEST(only_tasks_in_a_control_group_and_those_below_are_wanted)
{
	struct task_table t = {.live = NULL};
	ck_assert_int_eq(cgroup_set(&t, 7, "/system.slice/ci-1.service", 0), 0);
	ck_assert_int_eq(cgroup_set(&t, 8, "/system.slice/ci-1.service/payload", 0), 0);
	ck_assert_int_eq(cgroup_set(&t, 9, "/system.slice/ci-1.service2", 0), 0);
	targets =
		(struct targets){.all = true, .cgroup = "/system.slice/ci-1.service", .tasks = &t};
	ck_assert(!targets_want(&targets, &make)); /* not known in which */
	make.cgroup = 7;
	ck_assert(targets_want(&targets, &make));
	make.cgroup = 8;
	ck_assert(targets_want(&targets, &make));
	make.cgroup = 9;
	ck_assert(!targets_want(&targets, &make));
	make.cgroup = 10;
	ck_assert(!targets_want(&targets, &make));
	ck_assert(!targets_are_all(&targets));
	task_table_clear(&t);
}
