/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Call trees as rows: main → (a 30 → leaf 5, b → leaf 60), main itself 5; and a function that calls itself. */

#include <errno.h>

#include "client/flamegraph/call_tree.h"
#include "tests/unit/client/answers.h"
#include "tests/unit/test.h"

static const struct answers_column columns[] = {
	{"node", "", MPERF__UNIT__UNIT_NONE},
	{"parent", "", MPERF__UNIT__UNIT_NONE},
	{"function", "", MPERF__UNIT__UNIT_NONE},
	{"module", "", MPERF__UNIT__UNIT_NONE},
	{"kind", "", MPERF__UNIT__UNIT_NONE},
	{"value", "", MPERF__UNIT__UNIT_COUNT},
};
#define N_COLUMNS (sizeof(columns) / sizeof(*columns))

static struct flame *flame;
static struct call_tree tree;

static int add(void *f, const Mperf__Answer *a)
{
	return flame_add(f, a);
}

static void add_node(int64_t id, int64_t parent, const char *name, double value)
{
	Mperf__Value v[] = {answers_integer(id), answers_integer(parent), answers_text(name),
		answers_text("prog"), answers_text("user"), answers_real(value)};
	ck_assert_int_eq(answers_row(add, flame, v, N_COLUMNS), 0);
}

static void begin(void)
{
	ck_assert_int_eq(flame_new(&flame), 0);
	ck_assert_int_eq(answers_columns(add, flame, columns, N_COLUMNS), 0);
	add_node(1, 0, "main", 5);
	add_node(2, 1, "a", 30);
	add_node(3, 1, "b", 0);
	add_node(4, 2, "leaf", 5);
	add_node(5, 3, "leaf", 60);
}

static void end(void)
{
	call_tree_clear(&tree);
	flame_free(flame);
}

EACH_TEST(.begin = begin, .end = end);

static int make(enum call_tree_way way, const char *function, double least)
{
	ck_assert_int_eq(flame_finish(flame), 0);
	return call_tree_make(&tree, flame, way, function, least);
}

static void row_is(size_t i, uint32_t depth, const char *name, double self, double total)
{
	ck_assert_uint_lt(i, tree.n_rows);
	ck_assert_str_eq(tree.row[i].node->function, name);
	ck_assert_uint_eq(tree.row[i].depth, depth);
	ck_assert_double_eq(tree.row[i].self, self);
	ck_assert_double_eq(tree.row[i].total, total);
}

TEST(a_caller_stands_before_its_callees_the_largest_first)
{
	ck_assert_int_eq(make(CALL_TREE_DOWN, NULL, 0), 0);
	ck_assert_uint_eq(tree.n_rows, 5);
	ck_assert_double_eq(tree.whole, 100);
	row_is(0, 0, "main", 5, 100);
	row_is(1, 1, "b", 0, 60);
	row_is(2, 2, "leaf", 60, 60);
	row_is(3, 1, "a", 30, 35);
	row_is(4, 2, "leaf", 5, 5);
}

TEST(small_rows_are_left_out_and_counted)
{
	ck_assert_int_eq(make(CALL_TREE_DOWN, NULL, 0.1), 0);
	ck_assert_uint_eq(tree.n_rows, 4);
	ck_assert_uint_eq(tree.n_left_out, 1);
}

TEST(callers_carry_what_came_through_them)
{
	ck_assert_int_eq(make(CALL_TREE_CALLERS, "leaf", 0), 0);
	ck_assert_uint_eq(tree.n_rows, 5);
	row_is(0, 0, "leaf", 65, 65);
	row_is(1, 1, "b", 0, 60);
	row_is(2, 2, "main", 0, 60);
	row_is(3, 1, "a", 0, 5);
	row_is(4, 2, "main", 0, 5);
}

TEST(callees_of_all_places_are_one)
{
	add_node(6, 3, "a", 0);
	add_node(7, 6, "leaf", 3);
	ck_assert_int_eq(make(CALL_TREE_CALLEES, "a", 0), 0);
	ck_assert_uint_eq(tree.n_rows, 2);
	row_is(0, 0, "a", 30, 38);
	row_is(1, 1, "leaf", 8, 8);
}

TEST(a_function_that_calls_itself_counts_once)
{
	add_node(6, 4, "leaf", 10);
	ck_assert_int_eq(make(CALL_TREE_CALLERS, "leaf", 0), 0);
	row_is(0, 0, "leaf", 75, 75);
	row_is(3, 1, "a", 0, 15);
	call_tree_clear(&tree);
	ck_assert_int_eq(call_tree_make(&tree, flame, CALL_TREE_CALLEES, "leaf", 0), 0);
	ck_assert_uint_eq(tree.n_rows, 2);
	row_is(1, 1, "leaf", 10, 10);
}

TEST(no_such_function_and_those_that_are_alike)
{
	const char *name[3];
	ck_assert_int_eq(make(CALL_TREE_CALLERS, "lea", 0), -ENOENT);
	ck_assert_uint_eq(call_tree_like(flame, "lea", name, 3), 1);
	ck_assert_str_eq(name[0], "leaf");
	ck_assert_uint_eq(call_tree_like(flame, "a", name, 3), 3);
	ck_assert_str_eq(name[0], "main");
	ck_assert_uint_eq(call_tree_like(flame, "nothing", name, 3), 0);
}
