/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/naming/space.c and daemon/attribute/task_space.c */

#include "daemon/attribute/task.h"

#include "tests/unit/test.h"

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

EACH_TEST(.begin = setup, .end = teardown, .seconds = 60);

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

TEST(both_bounds_of_a_mapping_are_exact)
{
	map(100, 200, 0, &file_a);
	ck_assert_ptr_null(space_find(task->space, 99));
	ck_assert_ptr_nonnull(space_find(task->space, 100));
	ck_assert_ptr_nonnull(space_find(task->space, 199));
	ck_assert_ptr_null(space_find(task->space, 200));
	ck_assert_ptr_null(space_find(NULL, 100));
}

TEST(a_mapping_inside_another_cuts_it_in_two)
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

TEST(a_mapping_swallows_what_it_covers)
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

TEST(random_mappings_agree_with_a_plain_model)
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

TEST(an_empty_mapping_is_nothing)
{
	ck_assert_int_eq(space_map(&table, task, 100, 0, 0, &file_a), 0);
	ck_assert_ptr_null(task->space);
}

TEST(a_mapping_beyond_the_last_address_is_cut)
{
	ck_assert_int_eq(space_map(&table, task, UINT64_MAX - 10, 100, 0, &file_a), 0);
	ck_assert_ptr_nonnull(space_find(task->space, UINT64_MAX - 1));
	check_order(task->space);
}

TEST(the_same_mapping_again_is_no_change)
{
	map(100, 200, 0, &file_a);
	uint64_t generation = task->space->generation;
	map(100, 200, 0, &file_a);
	ck_assert_uint_eq(task->space->generation, generation);
	map(100, 200, 1, &file_a);
	ck_assert_uint_gt(task->space->generation, generation);
}

TEST(a_forked_child_shares_until_it_maps)
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

TEST(a_parent_that_maps_leaves_its_child_alone)
{
	struct task *child = add(20, 20);

	map(100, 200, 0, &file_a);
	space_share(child, task);
	map(100, 200, 0, &file_b);
	ck_assert_ptr_eq(space_find(child->space, 100)->file, &file_a);
	ck_assert_ptr_eq(space_find(task->space, 100)->file, &file_b);
}

TEST(a_thread_maps_for_its_process)
{
	struct task *leader = task, *thread = add(10, 11);

	ck_assert_int_eq(space_map(&table, thread, 100, 50, 0, &file_a), 0);
	ck_assert_ptr_nonnull(space_find(task_space(leader), 100));
	ck_assert_ptr_eq(task_space(thread), task_space(leader));
}

TEST(dropping_leaves_the_others_what_they_have)
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

TEST(a_tid_that_is_used_again_gives_its_space_back)
{
	struct task *former = task;

	map(100, 200, 0, &file_a);
	task = add(10, 10);
	ck_assert_ptr_null(former->space);
	ck_assert_ptr_null(task->space);
}

TEST(an_ended_task_keeps_its_space_until_it_is_dropped)
{
	map(100, 200, 0, &file_a);
	task_end(&table, task, 9);
	ck_assert_ptr_nonnull(space_find(task_space(task), 100));
	space_drop(task);
	ck_assert_ptr_null(task_space(task));
}

TEST(sharing_with_oneself_changes_nothing)
{
	map(100, 200, 0, &file_a);
	space_share(task, task);
	ck_assert_uint_eq(task->space->n_users, 1);
}

TEST(sharing_nothing_drops_what_was_there)
{
	struct task *child = add(20, 20);

	map(100, 200, 0, &file_a);
	space_share(task, child);
	ck_assert_ptr_null(task->space);
}

TEST(mappings_are_refused_beyond_their_limit)
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

TEST(mappings_from_above_move_nothing)
{
	unsigned n_moves = 0;

	for (uint64_t i = MAPS_MAX; i > 0; i--) {
		const struct map *before = task->space ? task->space->map : NULL;
		map(i * 100, i * 100 + 50, i, &file_a);
		n_moves += !before || task->space->map != before - 1;
	}
	/* the first ones, and then each time twice the memory */
	ck_assert_uint_le(n_moves, 30);
	ck_assert_uint_eq(task->space->n_maps, MAPS_MAX);
	check_order(task->space);
	for (uint64_t i = 1; i <= MAPS_MAX; i++)
		ck_assert_uint_eq(space_find(task->space, i * 100 + 49)->file_offset, i);
}

TEST(mappings_from_both_ends_meet_in_the_middle)
{
	for (uint64_t i = 0; i < MAPS_MAX / 2; i++) {
		map(i * 100, i * 100 + 50, i, &file_a);
		map((MAPS_MAX - 1 - i) * 100, (MAPS_MAX - 1 - i) * 100 + 50, i, &file_b);
	}
	ck_assert_uint_eq(task->space->n_maps, MAPS_MAX);
	check_order(task->space);
	for (uint64_t i = 0; i < MAPS_MAX / 2; i++) {
		ck_assert_ptr_eq(space_find(task->space, i * 100)->file, &file_a);
		ck_assert_uint_eq(space_find(task->space, i * 100)->file_offset, i);
		ck_assert_ptr_eq(space_find(task->space, (MAPS_MAX - 1 - i) * 100)->file, &file_b);
	}
}

TEST(a_copy_has_what_was_before_unused_room)
{
	struct task *child = add(20, 20);

	for (uint64_t i = 100; i > 0; i--)
		map(i * 100, i * 100 + 50, i, &file_a);
	space_share(child, task);
	map(10, 20, 0, &file_b);
	ck_assert_uint_eq(child->space->n_maps, 100);
	ck_assert_uint_eq(task->space->n_maps, 101);
	for (uint64_t i = 1; i <= 100; i++)
		ck_assert_uint_eq(space_find(task->space, i * 100)->file_offset, i);
	check_order(task->space);
	check_order(child->space);
}
