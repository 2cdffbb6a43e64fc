/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What is gathered for a page: nodes by function, rows by bucket of time. */

#include "client/report/gather.h"
#include "tests/unit/test.h"

static struct gathered g;
static struct profile p;

/* main calls b and a; b's frame is at two addresses. */
static char *texts[] = {"", "main", "a", "b", "prog", "cpu-clock", "waiting:lock", "worker",
	"/usr/bin/prog", "deep"};
static struct profile_module modules[] = {
	{.kind = PROFILE_UNKNOWN}, {.path = 8, .kind = PROFILE_ELF}};
static struct profile_place places[] = {{0}, {.function = 1}, {.function = 2}, {.function = 3},
	{.function = 3}, {.function = 9}, {.function = 2}};
static struct profile_frame frames[] = {{0}, {.module = 1, .place = 1, .n_places = 1},
	{.module = 1, .place = 2, .n_places = 1},
	{.module = 1, .offset = 1, .place = 3, .n_places = 1},
	{.module = 1, .offset = 2, .place = 4, .n_places = 1},
	{.module = 1, .offset = 3, .place = 5, .n_places = 2}, {.module = 1, .offset = 4}};
/* 1: main; 2: main b; 3: main b at another address; 4: main a; 5: main a with deep inlined; 6: no name */
static struct profile_stack stacks[] = {{0}, {0, 1}, {1, 3}, {1, 4}, {1, 2}, {1, 5}, {0, 6}};
static struct profile_task tasks[] = {{0}, {.pid = 10, .tid = 10, .comm = 4, .process = 4},
	{.pid = 10, .tid = 11, .comm = 7, .process = 4}};
static struct profile_window windows[] = {{0},
	{.realtime_ns = 100000 * MS, .start_ns = 0, .end_ns = 1000 * MS},
	{.realtime_ns = 101000 * MS, .start_ns = 1000 * MS, .end_ns = 2000 * MS}};

static void begin(void)
{
	p = (struct profile){.unit = MPERF__UNIT__UNIT_NS,
		.text = texts,
		.module = modules,
		.frame = frames,
		.place = places,
		.task = tasks,
		.window = windows,
		.stack = stacks,
		.n_texts = 10,
		.n_modules = 2,
		.n_frames = 7,
		.n_places = 7,
		.n_tasks = 3,
		.n_windows = 3,
		.n_stacks = 7};
	ck_assert_int_eq(gather_init(&g), 0);
}

static void end(void)
{
	gather_clear(&g);
}

EACH_TEST(.begin = begin, .end = end);

static void add(uint32_t stack, uint32_t window, int64_t at_ns, uint64_t value)
{
	const struct profile_sample s = {.window = window,
		.task = 1,
		.stack = stack,
		.event = 5,
		.hart = 0,
		.at_ns = at_ns,
		.value = value,
		.count = 1};
	ck_assert_int_eq(gather_sample(&g, &p, &s), 0);
}

static const char *name_of(uint32_t node)
{
	return g.text[g.function[g.node[node].function].name];
}

TEST(addresses_of_one_function_are_one_node)
{
	add(2, 1, 0, 5);
	add(3, 1, 0, 7);
	ck_assert_int_eq(gather_finish(&g), 0);
	ck_assert_uint_eq(g.n_nodes, 3); /* root, main, b */
	ck_assert_uint_eq(g.n_rows, 1);
	ck_assert_uint_eq(g.row[0].value, 12);
	ck_assert_str_eq(name_of(g.row[0].node), "b");
	ck_assert_str_eq(name_of(g.node[g.row[0].node].caller), "main");
}

TEST(callees_stand_behind_their_caller_in_the_order_of_their_names)
{
	add(2, 1, 0, 1);
	add(4, 1, 0, 1);
	add(6, 1, 0, 1);
	ck_assert_int_eq(gather_finish(&g), 0);
	ck_assert_uint_eq(g.n_nodes, 5);
	ck_assert_str_eq(name_of(1), "[prog]"); /* without a name: its module */
	ck_assert_str_eq(name_of(2), "main");
	ck_assert_str_eq(name_of(3), "a");
	ck_assert_str_eq(name_of(4), "b");
	for (uint32_t i = 1; i < g.n_nodes; i++)
		ck_assert_uint_lt(g.node[i].caller, i);
	ck_assert_int_eq(g.function[g.node[1].function].kind, GATHER_UNNAMED);
}

TEST(inlined_functions_are_nodes_of_their_own)
{
	add(5, 1, 0, 1);
	ck_assert_int_eq(gather_finish(&g), 0);
	const uint32_t deep = g.row[0].node, a = g.node[deep].caller;
	ck_assert_str_eq(name_of(deep), "deep");
	ck_assert_int_eq(g.function[g.node[deep].function].kind, GATHER_INLINED);
	ck_assert_str_eq(name_of(a), "a");
	ck_assert_int_eq(g.function[g.node[a].function].kind, GATHER_USER);
}

TEST(rows_stand_in_the_order_of_their_times)
{
	add(4, 2, 500 * MS, 4);
	add(2, 1, 3 * MS, 2);
	add(2, 1, 3 * MS + 10, 3);
	add(2, 1, 250 * MS, 1);
	ck_assert_int_eq(gather_finish(&g), 0);
	ck_assert_int_eq(g.bucket_ns, MS);
	ck_assert_uint_eq(g.n_rows, 3);
	ck_assert_int_eq(g.row[0].at_ns, 0);
	ck_assert_uint_eq(g.row[0].value, 5);
	ck_assert_int_eq(g.row[1].at_ns, 247);
	ck_assert_int_eq(g.row[2].at_ns, 1497);
	ck_assert_uint_eq(g.n_buckets, 1498);
	ck_assert_int_eq(g.coarse_ns, 0);
}

TEST(without_times_a_bucket_is_a_window)
{
	add(2, 1, -1, 1);
	add(2, 2, -1, 1);
	ck_assert_int_eq(gather_finish(&g), 0);
	ck_assert_int_eq(g.bucket_ns, 1000 * MS);
	ck_assert_uint_eq(g.n_buckets, 2);
	ck_assert_int_eq(g.row[1].at_ns, 1);
}

TEST(a_few_without_times_do_not_make_all_coarse)
{
	for (int i = 0; i < 200; i++)
		add(2, 1, i * MS, 1);
	add(2, 1, -1, 1);
	ck_assert_int_eq(gather_finish(&g), 0);
	ck_assert_int_eq(g.bucket_ns, MS);
}

TEST(two_exports_become_one_set)
{
	struct profile_stack other[] = {{0}, {0, 1}, {1, 2}}; /* 2 is now main a */
	add(4, 1, 0, 1);
	gather_next(&g);
	p.stack = other;
	p.n_stacks = 3;
	const struct profile_sample s = {
		.window = 1, .task = 2, .stack = 2, .event = 6, .hart = -1, .value = 9, .count = 1};
	ck_assert_int_eq(gather_sample(&g, &p, &s), 0);
	ck_assert_int_eq(gather_finish(&g), 0);
	ck_assert_uint_eq(g.n_nodes, 3);
	ck_assert_uint_eq(g.n_rows, 2);
	ck_assert_uint_eq(g.row[0].node, g.row[1].node);
	ck_assert_uint_eq(g.n_tasks, 2);
}

TEST(absurd_times_are_survived)
{
	windows[1] = (struct profile_window){INT64_MAX / 4, -(INT64_MAX / 4), INT64_MAX / 4};
	windows[2] = (struct profile_window){-(INT64_MAX / 4), 0, 0};
	add(2, 1, -1, UINT64_MAX / 2);
	add(2, 2, -1, UINT64_MAX / 2);
	ck_assert_int_eq(gather_finish(&g), 0);
	ck_assert_uint_le(g.n_buckets, 5 * GATHER_BUCKETS_MAX);
	windows[1] = (struct profile_window){100000 * MS, 0, 1000 * MS};
	windows[2] = (struct profile_window){101000 * MS, 1000 * MS, 2000 * MS};
}

TEST(samples_without_a_value_are_left_out)
{
	add(2, 1, 0, 0);
	ck_assert_int_eq(gather_finish(&g), 0);
	ck_assert_uint_eq(g.n_rows, 0);
	ck_assert_uint_eq(g.n_buckets, 0);
}
