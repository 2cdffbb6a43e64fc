/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/task.c */

#include "daemon/attribute/task.h"

#include "tests/unit/test.h"

static struct task_table table;

static void teardown(void)
{
	task_table_clear(&table);
}

EACH_TEST(.end = teardown, .seconds = 60);

static struct task *add(pid_t pid, pid_t tid, uint64_t start_ns)
{
	struct task *task = NULL;

	ck_assert_int_eq(task_add(&table, pid, tid, start_ns, &task), 0);
	ck_assert_ptr_nonnull(task);
	return task;
}

TEST(a_live_task_is_found_by_tid)
{
	struct task *leader = add(10, 10, 5), *thread = add(10, 11, 6);

	ck_assert_ptr_eq(task_find(&table, 10), leader);
	ck_assert_ptr_eq(task_find(&table, 11), thread);
	ck_assert_ptr_null(task_find(&table, 12));
	ck_assert_uint_eq(leader->id, 1);
	ck_assert_uint_eq(thread->id, 2);
}

TEST(a_thread_belongs_to_its_leader)
{
	struct task *leader = add(10, 10, 5), *thread = add(10, 11, 6);

	ck_assert_ptr_eq(leader->process, leader);
	ck_assert_ptr_eq(thread->process, leader);
	ck_assert_uint_eq(leader->n_threads, 2);
	task_end(&table, thread, 7);
	ck_assert_uint_eq(leader->n_threads, 1);
}

TEST(a_thread_without_a_leader_is_its_own_process)
{
	struct task *thread = add(10, 11, 6);

	ck_assert_ptr_eq(thread->process, thread);
}

TEST(an_ended_task_stays_in_the_table_only)
{
	struct task *task = add(10, 10, 5);

	task_end(&table, task, 9);
	ck_assert_ptr_null(task_find(&table, 10));
	ck_assert_uint_eq(task->end_ns, 9);
	ck_assert_ptr_eq(table.task[0], task);
}

TEST(ending_twice_keeps_the_first_end)
{
	struct task *task = add(10, 10, 5);

	task_end(&table, task, 9);
	task_end(&table, task, 12);
	ck_assert_uint_eq(task->end_ns, 9);
	ck_assert_uint_eq(task->n_threads, 0);
}

TEST(an_end_is_never_before_the_start)
{
	struct task *task = add(10, 10, 5), *at_zero = add(11, 11, 0);

	task_end(&table, task, 3);
	ck_assert_uint_gt(task->end_ns, task->start_ns);
	task_end(&table, at_zero, 0);
	ck_assert_uint_ne(at_zero->end_ns, 0);
}

TEST(a_reused_tid_ends_the_former_task)
{
	struct task *former = add(10, 10, 5), *task = add(10, 10, 50);

	ck_assert_uint_eq(former->end_ns, 50);
	ck_assert_ptr_eq(task_find(&table, 10), task);
	ck_assert_uint_eq(table.n_tasks, 2);
}

TEST(the_dead_of_a_tid_are_found_from_the_last_on)
{
	struct task *other = add(7, 7, 1), *first = add(10, 10, 5), *second = add(10, 10, 50);

	ck_assert_ptr_null(task_find_dead(&table, 7));
	ck_assert_ptr_eq(task_find_dead(&table, 10), first);
	task_end(&table, second, 60);
	task_end(&table, other, 70);
	ck_assert_ptr_eq(task_find_dead(&table, 10), second);
	ck_assert_ptr_eq(task_find_before(second), first);
	ck_assert_ptr_null(task_find_before(first));
	ck_assert_ptr_eq(task_find_dead(&table, 7), other);
	ck_assert_ptr_null(task_find_dead(&table, 11));
}

TEST(the_dead_that_a_sweep_frees_are_found_no_more)
{
	struct task *first = add(10, 10, 5), *second = add(10, 10, 50), *third = add(10, 10, 60);
	const uint8_t mark[] = {SWEEP_KEPT, SWEEP_FREE, SWEEP_KEPT};

	task_end(&table, third, 70);
	ck_assert_ptr_eq(task_find_before(third), second);
	ck_assert_int_eq(task_table_sweep(&table, mark), 0);
	ck_assert_ptr_eq(task_find_dead(&table, 10), third);
	ck_assert_ptr_eq(task_find_before(third), first);
	ck_assert_int_eq(
		task_table_sweep(&table, (const uint8_t[]){SWEEP_FREE, SWEEP_FREE, SWEEP_FREE}), 0);
	ck_assert_ptr_null(task_find_dead(&table, 10));
}

TEST(the_dead_of_one_list_are_told_apart)
{
	const pid_t n = 3 * (pid_t)DEAD_LISTS;

	for (pid_t tid = 1; tid <= n; tid++)
		task_end(&table, add(tid, tid, 1), 2);
	for (pid_t tid = 1; tid <= n; tid++) {
		struct task *found = task_find_dead(&table, tid);
		ck_assert_ptr_nonnull(found);
		ck_assert_int_eq(found->tid, tid);
		ck_assert_ptr_null(task_find_before(found));
	}
	ck_assert_ptr_null(task_find_dead(&table, n + 1));
}

TEST(a_long_name_is_cut_and_terminated)
{
	struct task *task = add(10, 10, 5);

	task_set_comm(task, "a name of more than fifteen bytes");
	ck_assert_str_eq(task->comm, "a name of more ");
}

TEST(the_same_name_is_no_change)
{
	struct task *task = add(10, 10, 5);

	task_set_comm(task, "cc1");
	task->changed = false;
	task_set_comm(task, "cc1");
	ck_assert(!task->changed);
	task_set_comm(task, "cc");
	ck_assert(task->changed);
	ck_assert_str_eq(task->comm, "cc");
}

TEST(the_table_is_full_at_its_limit_of_live_tasks)
{
	struct task *task;

	for (pid_t tid = 1; tid <= TASKS_LIVE_MAX; tid++)
		ck_assert_int_eq(
			task_add_for(&table, &(struct task_key){tid, tid, 1}, 0, &task), 0);
	ck_assert_int_eq(task_add(&table, 300000, 300000, 1, &task), TASK_TABLE_FULL);
	task_end(&table, task_find(&table, 7), 2);
	ck_assert_int_eq(task_add(&table, 300000, 300000, 1, &task), 0);
}

TEST(one_user_does_not_take_the_places_of_others)
{
	struct task *task;
	pid_t tid = 1;

	while (task_add_for(&table, &(struct task_key){tid, tid, 1}, 1000, &task) == 0) {
		task_end(&table, task, 2);
		tid++;
	}
	ck_assert_int_le(tid, TASKS_MAX / 2);
	ck_assert_int_ge(tid, TASKS_MAX / 3);
	ck_assert_int_eq(task_add_for(&table, &(struct task_key){tid, tid, 1}, 1001, &task), 0);
	ck_assert_int_eq(task_add(&table, tid + 1, tid + 1, 1, &task), 0);
}

TEST(a_thread_that_is_forgotten_gives_its_id_back)
{
	struct task *process = add(10, 10, 1), *first = add(10, 11, 1), *second, *again;
	const uint32_t id = first->id;

	task_end(&table, first, 2);
	second = add(10, 11, 3);
	task_end(&table, second, 4);
	task_forget(&table, first);
	ck_assert_ptr_eq(task_find_dead(&table, 11), second);
	ck_assert_ptr_null(task_find_before(second));
	again = add(10, 12, 5);
	ck_assert_uint_eq(again->id, id);
	task_forget(&table, second);
	ck_assert_ptr_null(task_find_dead(&table, 11));
	ck_assert_uint_eq(process->n_threads, 2);
}

TEST(a_cgroup_is_named_once_and_can_be_renamed)
{
	ck_assert_int_eq(cgroup_set(&table, 7, "/a", 0), 0);
	const struct cgroup *cgroup = cgroup_find(&table, 7);
	ck_assert_str_eq(cgroup->path, "/a");
	ck_assert_int_eq(cgroup_set(&table, 7, "/a", 0), 0);
	ck_assert_int_eq(cgroup_set(&table, 7, "/b", 0), 0);
	ck_assert_ptr_eq(cgroup_find(&table, 7), cgroup);
	ck_assert_str_eq(cgroup->path, "/b");
	ck_assert_ptr_null(cgroup_find(&table, 8));
}

TEST(cgroups_are_refused_beyond_their_limit)
{
	for (uint64_t id = 1; id <= CGROUPS_MAX; id++)
		ck_assert_int_eq(cgroup_set(&table, id, "/x", 0), 0);
	ck_assert_int_eq(cgroup_set(&table, UINT64_MAX, "/y", 0), CGROUP_TABLE_FULL);
	ck_assert_int_eq(cgroup_set(&table, 1, "/y", 0), 0);
}

TEST(cgroups_of_one_user_leave_places_for_others_by_the_length_of_their_paths)
{
	char path[4 * CGROUP_PLACE_BYTES];
	uint64_t n = 0;
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = 0;
	while (cgroup_set(&table, n + 1, path, 1000) == 0)
		n++;
	ck_assert_uint_gt(n, CGROUPS_MAX / 4 / 3);
	ck_assert_uint_le(n, CGROUPS_MAX / 4 / 2);
	ck_assert_int_eq(cgroup_set(&table, 1, "/short", 1000), 0);
	ck_assert_int_eq(cgroup_set(&table, n + 1, "/a", 1000), 0);
	ck_assert_int_eq(cgroup_set(&table, n + 1, path, 1000), CGROUP_TABLE_FULL);
	ck_assert_str_eq(cgroup_find(&table, n + 1)->path, "/a");
	for (uint64_t id = 1; id <= CGROUPS_MAX / 8; id++)
		ck_assert_int_eq(cgroup_set(&table, (1000 + 1) * CGROUPS_MAX + id, "/b", 1001), 0);
	for (uint64_t id = 1; id <= n + 1; id++)
		ck_assert_int_eq(cgroup_set(&table, id, "/c", 1000), 0);
	ck_assert_uint_eq(quota_held(&table.cgroups_of, 1000), n + 1);
}

TEST(a_cleared_table_can_be_used_again)
{
	add(10, 10, 5);
	cgroup_set(&table, 7, "/a", 0);
	task_table_clear(&table);
	ck_assert_ptr_null(task_find(&table, 10));
	ck_assert_uint_eq(add(10, 10, 5)->id, 1);
}

static struct label_set *labels(const char *json)
{
	struct label_set *set = NULL;
	ck_assert_int_eq(label_set_get(&table.label_sets, 1000, json, &set), 0);
	return set;
}

TEST(labels_know_the_live_processes_that_have_them)
{
	struct task *a = add(10, 10, 5), *b = add(20, 20, 6);
	task_set_labels(&table, a, labels("{\"a\":\"1\"}"));
	struct label_set *set = a->labels;
	task_inherit_labels(b, a);
	ck_assert(set->n_live == 2 && set->live == a && a->labels_next == b);
	task_inherit_labels(b, a); /* it has some */
	ck_assert_uint_eq(set->n_live, 2);
	task_end(&table, a, 7);
	task_end(&table, a, 8);
	ck_assert(set->n_live == 1 && set->live == b);
	task_set_labels(&table, b, labels("{\"a\":\"2\"}"));
	ck_assert(set->n_live == 0 && !set->live && b->labels->n_live == 1);
	task_set_labels(&table, b, NULL);
	task_set_labels(&table, a, NULL);
	ck_assert_ptr_null(table.label_sets.set);
}

TEST(a_tid_that_is_given_again_leaves_its_labels)
{
	struct task *a = add(10, 10, 5);
	task_set_labels(&table, a, labels("{\"a\":\"1\"}"));
	struct label_set *set = a->labels;
	add(10, 10, 9);
	ck_assert(set->n_live == 0 && a->labels == set);
}
