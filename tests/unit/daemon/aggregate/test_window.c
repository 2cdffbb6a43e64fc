/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Attributions as the attribute station would hand them over go in; rows are compared. */

#include "daemon/aggregate/window.h"

#include "tests/unit/test.h"

static struct window window;
static struct stack_tree tree;
static struct frame frames[4];
static struct frame *stack[] = {&frames[2], &frames[1], &frames[0]};
static struct task tasks[2];
static struct attribution a;

static void setup(void)
{
	window = (struct window){};
	tree = (struct stack_tree){};
	for (uint32_t i = 0; i < 4; i++)
		frames[i] = (struct frame){.id = i + 1};
	for (uint32_t i = 0; i < 2; i++)
		tasks[i] = (struct task){.id = i + 10};
	a = (struct attribution){
		.task = &tasks[0],
		.hart = 3,
		.event = 0,
		.rung = RUNG_CLOCK,
		.count = 1,
		.weight_ns = 10101010,
		.period = 7,
		.frame = stack,
		.n_frames = 3,
	};
}

static void teardown(void)
{
	window_clear(&window);
	stack_tree_clear(&tree);
}

EACH_TEST(.begin = setup, .end = teardown);

static void add(void)
{
	ck_assert_int_eq(window_add(&window, &tree, &a), 0);
}

/* The row that was made last; uthash keeps the order of insertion. */
static const struct window_row *last_row(void)
{
	const struct window_row *row = window.rows;

	while (row && row->hh.next)
		row = row->hh.next;
	return row;
}

TEST(same_place_is_one_row)
{
	for (int i = 0; i < 1000; i++)
		add();
	ck_assert_uint_eq(window.n_rows, 1);
	ck_assert_uint_eq(window.n_samples, 1000);
	const struct window_row *row = last_row();
	ck_assert_uint_eq(row->count, 1000);
	ck_assert_uint_eq(row->weight_ns, 10101010000);
	ck_assert_uint_eq(row->period, 7000);
	ck_assert_uint_eq(row->n_truncated, 0);
	ck_assert_uint_eq(row->n_reads, 0);
	ck_assert_ptr_eq(row->who, &tasks[0]);
}

TEST(row_says_who_where_and_how)
{
	add();
	const struct window_row *row = last_row();
	ck_assert_uint_eq(row->key.task, 10);
	ck_assert_int_eq(row->key.hart, 3);
	ck_assert_int_eq(row->key.event, 0);
	ck_assert_int_eq(row->key.rung, RUNG_CLOCK);
	ck_assert_ptr_eq(tree.node[row->key.stack - 1]->frame, &frames[2]);
}

TEST(every_part_of_the_key_makes_a_row)
{
	add();
	a.task = &tasks[1];
	add();
	a.hart = 4;
	add();
	a.event = 1;
	add();
	a.rung = RUNG_CYCLES;
	add();
	a.n_frames = 2;
	add();
	ck_assert_uint_eq(window.n_rows, 6);
	ck_assert_uint_eq(window.n_samples, 6);
}

TEST(truncated_stacks_are_counted)
{
	add();
	a.truncated = true;
	add(), add();
	a.count = 0; /* what a switch delivers is no sample */
	add();
	ck_assert_uint_eq(window.n_rows, 1);
	ck_assert_uint_eq(last_row()->n_truncated, 2);
	ck_assert_uint_eq(last_row()->count, 3);
}

static void set_read(uint32_t i, int event, uint64_t value)
{
	a.read[i].event = event;
	a.read[i].value = value;
	a.read[i].enabled_ns = value * 2;
	a.read[i].running_ns = value;
	if (a.n_reads <= i)
		a.n_reads = i + 1;
}

TEST(group_values_add_up_by_event)
{
	set_read(0, 1, 100), set_read(1, 2, 50);
	add();
	set_read(0, 2, 7), set_read(1, 1, 11); /* order does not matter */
	add();
	const struct window_row *row = last_row();
	ck_assert_uint_eq(row->n_reads, 2);
	ck_assert_int_eq(row->read[0].event, 1);
	ck_assert_uint_eq(row->read[0].value, 111);
	ck_assert_uint_eq(row->read[0].enabled_ns, 222);
	ck_assert_uint_eq(row->read[0].running_ns, 111);
	ck_assert_uint_eq(row->read[1].value, 57);
}

TEST(events_may_join_a_row_later)
{
	add();
	set_read(0, 5, 1);
	add();
	set_read(0, 6, 2), set_read(1, 5, 3), set_read(2, 7, 4);
	add();
	const struct window_row *row = last_row();
	ck_assert_uint_eq(window.n_rows, 1);
	ck_assert_uint_eq(row->n_reads, 3);
	ck_assert_uint_eq(row->read[0].value, 4);
	ck_assert_uint_eq(row->read[1].value, 2);
	ck_assert_uint_eq(row->read[2].value, 4);
}

TEST(largest_group_fits)
{
	for (uint32_t i = 0; i < EVENT_GROUP_MAX; i++)
		set_read(i, (int)i, i);
	add(), add();
	ck_assert_uint_eq(last_row()->n_reads, EVENT_GROUP_MAX);
	ck_assert_uint_eq(last_row()->read[EVENT_GROUP_MAX - 1].value, 2 * (EVENT_GROUP_MAX - 1));
}

TEST(samples_without_counts_are_counted_beside_the_others)
{
	set_read(0, 1, 1000);
	add();
	a.uncounted = 1;
	a.n_reads = 0;
	add(), add();
	ck_assert_uint_eq(window.n_rows, 1);
	ck_assert_uint_eq(last_row()->count, 3);
	ck_assert_uint_eq(last_row()->n_uncounted, 2);
	ck_assert_uint_eq(last_row()->read[0].value, 1000);
}

/* What a switch or an exit delivers is no sample. */
TEST(counts_without_a_sample_weigh_nothing)
{
	a.count = a.weight_ns = a.period = 0;
	a.n_frames = 0;
	set_read(0, 1, 1000);
	add();
	ck_assert_uint_eq(window.n_samples, 0);
	ck_assert_uint_eq(window.n_rows, 1);
	ck_assert_uint_eq(last_row()->key.stack, 0);
	ck_assert_uint_eq(last_row()->read[0].value, 1000);
}

TEST(cleared_window_begins_anew_and_keeps_the_stacks)
{
	set_read(0, 1, 1);
	add();
	uint32_t node = last_row()->key.stack;
	window_clear(&window);
	ck_assert_ptr_null(window.rows);
	ck_assert_uint_eq(window.n_samples, 0);
	add();
	ck_assert_uint_eq(window.n_rows, 1);
	ck_assert_uint_eq(last_row()->count, 1);
	ck_assert_uint_eq(last_row()->key.stack, node);
	window_clear(&window);
	window_clear(&window);
}

TEST(bounds_are_left_to_the_owner)
{
	window.start_ns = 100;
	window.end_ns = 200;
	a.time_ns = 5000;
	add();
	ck_assert_uint_eq(window.start_ns, 100);
	ck_assert_uint_eq(window.end_ns, 200);
}

/* --- odd and full ----------------------------------------------------------------------------- */

TEST(unknown_task_has_a_row)
{
	a.task = NULL;
	add();
	ck_assert_uint_eq(last_row()->key.task, 0);
	ck_assert_ptr_null(last_row()->who);
}

TEST(same_event_twice_in_a_group_is_added)
{
	set_read(0, 1, 3), set_read(1, 1, 4);
	add();
	ck_assert_uint_eq(last_row()->n_reads, 1);
	ck_assert_uint_eq(last_row()->read[0].value, 7);
	add();
	ck_assert_uint_eq(last_row()->n_reads, 1);
	ck_assert_uint_eq(last_row()->read[0].value, 14);
}

TEST(negative_events_are_rows_like_others)
{
	add();
	a.event = -1;
	a.hart = -1;
	add(), add();
	ck_assert_uint_eq(window.n_rows, 2);
	ck_assert_int_eq(last_row()->key.event, -1);
	ck_assert_uint_eq(last_row()->count, 2);
}

TEST(full_window_says_so_and_counts_nothing)
{
	add();
	window.n_rows = WINDOW_ROWS_MAX;
	a.hart = 9;
	ck_assert_int_eq(window_add(&window, &tree, &a), WINDOW_FULL);
	ck_assert_uint_eq(window.n_samples, 1);
	a.hart = 3; /* rows that are there go on counting */
	add();
	ck_assert_uint_eq(last_row()->count, 2);
}

TEST(full_tree_costs_the_callers_not_the_sample)
{
	uint32_t n = STACK_NODES_MAX - STACK_NODES_MAX / 8;

	tree.node = calloc(n + 1, sizeof(*tree.node));
	tree.size = n + 1;
	tree.n_nodes = n;
	add(), add();
	ck_assert_uint_eq(window.n_rows, 1);
	ck_assert_uint_eq(last_row()->count, 2);
	ck_assert_uint_eq(last_row()->key.stack, n + 1);
	ck_assert_ptr_eq(tree.node[n]->frame, &frames[2]);
	ck_assert_uint_eq(tree.node[n]->parent, 0);
	ck_assert_uint_eq(tree.n_refused, 2);
	ck_assert_uint_eq(last_row()->n_truncated, 2);
}

TEST(tree_without_any_room_costs_the_stack_not_the_sample)
{
	tree.n_nodes = STACK_NODES_MAX;
	add();
	ck_assert_uint_eq(last_row()->key.stack, 0);
	ck_assert_uint_eq(last_row()->count, 1);
	ck_assert_uint_eq(tree.n_refused, 1);
	tree.n_nodes = 0;
}
