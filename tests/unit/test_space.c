/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/space.c */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/attribute/task.h"

static struct task_table table;
static struct task *task;
static struct file file_a = {.id = 1}, file_b = {.id = 2};

static struct task *add(pid_t pid, pid_t tid)
{
	struct task *added = NULL;

	ck_assert_int_eq(task_add(&table, pid, tid, 1, &added), 0);
	return added;
}

static void setup(void)
{
	task = add(10, 10);
}

static void teardown(void)
{
	task_table_clear(&table);
}

static void map(uint64_t start, uint64_t end, uint64_t offset, struct file *file)
{
	ck_assert_int_eq(space_map(&table, task, start, end - start, offset, file), 0);
}

/* Sorted, disjoint, none empty: whatever was mapped. */
static void check_order(const struct space *s)
{
	for (uint32_t i = 0; i < s->n_maps; i++) {
		ck_assert_uint_lt(s->map[i].start, s->map[i].end);
		if (i)
			ck_assert_uint_le(s->map[i - 1].end, s->map[i].start);
	}
}

START_TEST(both_bounds_of_a_mapping_are_exact)
{
	map(100, 200, 0, &file_a);
	ck_assert_ptr_null(space_find(task->space, 99));
	ck_assert_ptr_nonnull(space_find(task->space, 100));
	ck_assert_ptr_nonnull(space_find(task->space, 199));
	ck_assert_ptr_null(space_find(task->space, 200));
	ck_assert_ptr_null(space_find(NULL, 100));
}
END_TEST

START_TEST(a_mapping_inside_another_cuts_it_in_two)
{
	map(100, 400, 1000, &file_a);
	map(200, 300, 0, &file_b);
	ck_assert_uint_eq(task->space->n_maps, 3);
	ck_assert_ptr_eq(space_find(task->space, 199)->file, &file_a);
	ck_assert_ptr_eq(space_find(task->space, 200)->file, &file_b);
	const struct map *tail = space_find(task->space, 300);
	ck_assert_ptr_eq(tail->file, &file_a);
	ck_assert_uint_eq(tail->file_offset, 1200);
	check_order(task->space);
}
END_TEST

START_TEST(a_mapping_swallows_what_it_covers)
{
	map(100, 200, 0, &file_a);
	map(200, 300, 0, &file_a);
	map(400, 500, 0, &file_a);
	map(50, 450, 7, &file_b);
	ck_assert_uint_eq(task->space->n_maps, 2);
	ck_assert_ptr_eq(space_find(task->space, 449)->file, &file_b);
	ck_assert_uint_eq(space_find(task->space, 450)->file_offset, 50);
	check_order(task->space);
}
END_TEST

START_TEST(random_mappings_agree_with_a_plain_model)
{
	uint8_t model[256] = {0};
	struct file files[8];
	unsigned int seed = 1;

	for (int i = 0; i < 2000; i++) {
		unsigned int start = (unsigned int)rand_r(&seed) % 250;
		unsigned int n = 1 + (unsigned int)rand_r(&seed) % (255 - start);
		unsigned int file = (unsigned int)rand_r(&seed) % 8;

		map(start, start + n, start, &files[file]);
		memset(model + start, (int)file + 1, n);
		check_order(task->space);
		for (unsigned int at = 0; at < 256; at++) {
			const struct map *m = space_find(task->space, at);
			ck_assert_int_eq(m ? (int)(m->file - files) + 1 : 0, model[at]);
			if (m)
				ck_assert_uint_eq(at - m->start + m->file_offset, at);
		}
	}
}
END_TEST

START_TEST(an_empty_mapping_is_nothing)
{
	ck_assert_int_eq(space_map(&table, task, 100, 0, 0, &file_a), 0);
	ck_assert_ptr_null(task->space);
}
END_TEST

START_TEST(a_mapping_beyond_the_last_address_is_cut)
{
	ck_assert_int_eq(space_map(&table, task, UINT64_MAX - 10, 100, 0, &file_a), 0);
	ck_assert_ptr_nonnull(space_find(task->space, UINT64_MAX - 1));
	check_order(task->space);
}
END_TEST

START_TEST(the_same_mapping_again_is_no_change)
{
	map(100, 200, 0, &file_a);
	uint64_t generation = task->space->generation;
	map(100, 200, 0, &file_a);
	ck_assert_uint_eq(task->space->generation, generation);
	map(100, 200, 1, &file_a);
	ck_assert_uint_gt(task->space->generation, generation);
}
END_TEST

START_TEST(a_forked_child_shares_until_it_maps)
{
	struct task *parent = task, *child = add(20, 20);

	map(100, 200, 0, &file_a);
	space_share(child, parent);
	ck_assert_ptr_eq(child->space, parent->space);
	ck_assert_uint_eq(parent->space->n_users, 2);

	ck_assert_int_eq(space_map(&table, child, 100, 50, 0, &file_b), 0);
	ck_assert_ptr_ne(child->space, parent->space);
	ck_assert_uint_eq(parent->space->n_users, 1);
	ck_assert_ptr_eq(space_find(parent->space, 100)->file, &file_a);
	ck_assert_ptr_eq(space_find(child->space, 100)->file, &file_b);
	ck_assert_uint_ne(child->space->generation, parent->space->generation);
}
END_TEST

START_TEST(a_parent_that_maps_leaves_its_child_alone)
{
	struct task *child = add(20, 20);

	map(100, 200, 0, &file_a);
	space_share(child, task);
	map(100, 200, 0, &file_b);
	ck_assert_ptr_eq(space_find(child->space, 100)->file, &file_a);
	ck_assert_ptr_eq(space_find(task->space, 100)->file, &file_b);
}
END_TEST

START_TEST(a_thread_maps_for_its_process)
{
	struct task *leader = task, *thread = add(10, 11);

	ck_assert_int_eq(space_map(&table, thread, 100, 50, 0, &file_a), 0);
	ck_assert_ptr_nonnull(space_find(task_space(leader), 100));
	ck_assert_ptr_eq(task_space(thread), task_space(leader));
}
END_TEST

START_TEST(dropping_leaves_the_others_what_they_have)
{
	struct task *child = add(20, 20);

	map(100, 200, 0, &file_a);
	space_share(child, task);
	space_drop(task);
	space_drop(task);
	ck_assert_ptr_null(task->space);
	ck_assert_ptr_nonnull(space_find(child->space, 100));
	ck_assert_uint_eq(child->space->n_users, 1);
}
END_TEST

START_TEST(a_tid_that_is_used_again_gives_its_space_back)
{
	struct task *former = task;

	map(100, 200, 0, &file_a);
	task = add(10, 10);
	ck_assert_ptr_null(former->space);
	ck_assert_ptr_null(task->space);
}
END_TEST

START_TEST(an_ended_task_keeps_its_space_until_it_is_dropped)
{
	map(100, 200, 0, &file_a);
	task_end(&table, task, 9);
	ck_assert_ptr_nonnull(space_find(task_space(task), 100));
	space_drop(task);
	ck_assert_ptr_null(task_space(task));
}
END_TEST

START_TEST(sharing_with_oneself_changes_nothing)
{
	map(100, 200, 0, &file_a);
	space_share(task, task);
	ck_assert_uint_eq(task->space->n_users, 1);
}
END_TEST

START_TEST(sharing_nothing_drops_what_was_there)
{
	struct task *child = add(20, 20);

	map(100, 200, 0, &file_a);
	space_share(task, child);
	ck_assert_ptr_null(task->space);
}
END_TEST

START_TEST(mappings_are_refused_beyond_their_limit)
{
	for (uint64_t i = 0; i < MAPS_MAX; i++)
		map(i * 100, i * 100 + 50, 0, &file_a);
	ck_assert_int_eq(space_map(&table, task, MAPS_MAX * 100, 1, 0, &file_a), SPACE_FULL);
	/* cutting one in two is one more as well */
	ck_assert_int_eq(space_map(&table, task, 10, 1, 0, &file_b), SPACE_FULL);
	ck_assert_uint_eq(task->space->n_maps, MAPS_MAX);
	check_order(task->space);
	/* covering one is not */
	map(0, 50, 0, &file_b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("space");
	TCase *tests = tcase_create("space");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, both_bounds_of_a_mapping_are_exact);
	tcase_add_test(tests, a_mapping_inside_another_cuts_it_in_two);
	tcase_add_test(tests, a_mapping_swallows_what_it_covers);
	tcase_add_test(tests, random_mappings_agree_with_a_plain_model);
	tcase_add_test(tests, an_empty_mapping_is_nothing);
	tcase_add_test(tests, a_mapping_beyond_the_last_address_is_cut);
	tcase_add_test(tests, the_same_mapping_again_is_no_change);
	tcase_add_test(tests, a_forked_child_shares_until_it_maps);
	tcase_add_test(tests, a_parent_that_maps_leaves_its_child_alone);
	tcase_add_test(tests, a_thread_maps_for_its_process);
	tcase_add_test(tests, dropping_leaves_the_others_what_they_have);
	tcase_add_test(tests, a_tid_that_is_used_again_gives_its_space_back);
	tcase_add_test(tests, an_ended_task_keeps_its_space_until_it_is_dropped);
	tcase_add_test(tests, sharing_with_oneself_changes_nothing);
	tcase_add_test(tests, sharing_nothing_drops_what_was_there);
	tcase_add_test(tests, mappings_are_refused_beyond_their_limit);
	suite_add_tcase(suite, tests);

	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
