/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Trees of counts that are there already: which pass a node is of, and why one has no value.
 */
#include "daemon/query/stored_tree.h"

#include <math.h>
#include <string.h>

#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

#define STRETCH_NS 1e8
#define FRONTEND "frontend_bound"

static struct core_case c;
static struct counted counted;
static struct counted_event event[16];
static struct stored_tree tree;
static struct event_error error;

static void begin(void)
{
	c = core_case_riscv(CORE_KUNMINGHU);
	counted = (struct counted){.event = event, .n_cores = 1};
	const char *name = cores_platform(c.cores, 0)->name;
	ck_assert_int_eq(text_get(&counted.texts, name, &counted.core[0].name), 0);
	hart_set_add(&counted.core[0].harts, 0);
}

static void end(void)
{
	stored_tree_clear(&tree);
	text_table_clear(&counted.texts);
	core_case_end(&c);
}

EACH_TEST(.begin = begin, .end = end);

/* An event that counted so much in each stretch, for that part of the time. */
static void add(unsigned pass, const char *name, double each, double part)
{
	struct counted_event *e = &event[counted.n_events++];
	*e = (struct counted_event){.pass = pass, .type = PERF_TYPE_RAW, .config = 0x7777};
	ck_assert_int_eq(text_get(&counted.texts, name, &e->name), 0);
	for (size_t s = 0; s < COUNTED_STRETCHES; s++) {
		e->stretch[s] = (struct counted_sum){each * part, STRETCH_NS, part * STRETCH_NS};
		e->all.value += e->stretch[s].value;
		e->all.enabled_ns += e->stretch[s].enabled_ns;
		e->all.running_ns += e->stretch[s].running_ns;
	}
}

static int make(int levels)
{
	const struct stored_wish wish = {.cores = c.cores, .levels = levels};
	return stored_tree_make(&tree, &counted, 0, &wish, &error);
}

static size_t node(const char *name)
{
	for (size_t i = 0; i < tree.tree->n_nodes; i++)
		if (strcmp(tree.tree->node[i].metric->name, name) == 0)
			return i;
	ck_abort_msg("no node %s", name);
	return 0;
}

/* 600 of 1,000 cycles of six slots, in the second pass alone: the first has no cycles. */
TEST(a_node_is_of_the_first_pass_that_counted_all_its_inputs)
{
	add(0, "Front_Bubble", 60, 0.5);
	add(1, "Front_Bubble", 600, 0.25);
	add(1, "cycles", 1000, 0.25);
	add(2, "Front_Bubble", 6, 0.25);
	add(2, "cycles", 1000, 0.25);
	ck_assert_int_eq(make(0), 0);
	size_t at = node(FRONTEND);
	ck_assert_uint_eq(tree.n_passes, 3);
	ck_assert_int_eq(tree.pass[at], 1);
	ck_assert_double_eq_tol(tree.node[at].value, 10, 1e-9);
	ck_assert_double_eq_tol(tree.node[at].running, 0.25, 1e-9);
	ck_assert_double_eq_tol(tree.node[at].error, 0, 1e-9);
}

TEST(inputs_that_no_pass_counted_together_are_of_several)
{
	add(0, "Front_Bubble", 600, 0.5);
	add(1, "cycles", 1000, 0.25);
	ck_assert_int_eq(make(0), 0);
	size_t at = node(FRONTEND);
	ck_assert_int_eq(tree.pass[at], STORED_ALL_PASSES);
	ck_assert_double_eq_tol(tree.node[at].value, 10, 1e-9);
	ck_assert_double_eq_tol(tree.node[at].running, 0.25, 1e-9);
}

/* Rotation may take a hundredth of each count, or add it, in a pass that was on for half of the time. */
TEST(rotation_is_in_the_interval)
{
	add(0, "Front_Bubble", 600, 0.5);
	add(0, "cycles", 1000, 0.5);
	counted.core[0].rotation[0] = 0.01;
	ck_assert_int_eq(make(0), 0);
	ck_assert_double_eq_tol(tree.node[node(FRONTEND)].error, 10 * 0.005, 1e-9);
}

TEST(what_has_no_value_says_why)
{
	add(0, "cycles", 1000, 0.5);
	add(0, "Front_Bubble", 600, 0);
	add(0, "instructions", 1000, 0.5);
	add(0, "INST_SPEC_AND_RECOVERY", 2000, 0.5);
	ck_assert_int_eq(make(0), 0);
	size_t at = node(FRONTEND);
	ck_assert(isnan(tree.node[at].value));
	ck_assert_str_eq(tree.node[at].reason,
		"Front_Bubble never got a counter: other events used all of them");
	ck_assert(isfinite(tree.node[node("bad_speculation")].value));
	stored_tree_clear(&tree);
	counted.n_events = 0;
	add(0, "cycles", 1000, 0.5);
	ck_assert_int_eq(make(0), METRIC_NO_EVENT);
	ck_assert_msg(strstr(error.text, " was not counted") != NULL, "%s", error.text);
}

/* A tree ends with the level of which anything was counted, unless more is asked for. */
TEST(levels_that_nothing_counted_are_cut)
{
	add(0, "Front_Bubble", 600, 0.5);
	add(0, "cycles", 1000, 0.5);
	ck_assert_int_eq(make(0), 0);
	ck_assert_int_eq(tree.tree->levels, 1);
	ck_assert_int_eq(tree.tree->deepest, 3);
	stored_tree_clear(&tree);
	ck_assert_int_eq(make(2), 0);
	ck_assert_int_eq(tree.tree->levels, 2);
	stored_tree_clear(&tree);
	ck_assert_int_eq(make(4), METRIC_NO_LEVEL);
}
