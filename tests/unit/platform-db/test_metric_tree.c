/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Trees of metrics: their shape from groups, what is left of a node, and the worst way down.
 */
#include <math.h>
#include <string.h>

#include "platform-db/metric_tree.h"
#include "tests/unit/platform-db/platform_made.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))
#define ORIGIN "\"source\": \"me\", \"verified\": \"no\""
#define PLATFORM(metrics)                                                                          \
	"{\"platform\": \"mine\", \"title\": \"Mine\", \"arch\": \"riscv\", " ORIGIN ",\n"         \
	"\"metrics\": [\n" metrics "]}\n"
#define METRIC(name, groups)                                                                       \
	"{\"MetricName\": \"" name "\", \"MetricExpr\": \"1\", \"MetricGroup\": \"" groups         \
	"\", \"ScaleUnit\": \"100%\", " ORIGIN "}"
/* Children may stand before their parents. */
#define TREE                                                                                       \
	METRIC("a1", "TopdownL2;a_group")                                                          \
	",\n" METRIC("a", "TopdownL1") ",\n" METRIC("a2", "A_GROUP") ",\n" METRIC("good",          \
		"topdownl1;Useful") ",\n" METRIC("a2x", "a2_group") ",\n" METRIC("alone", "Other")

static struct made_folder f;
static struct platform_db *db;

static void setup(void)
{
	f = made_folder_new();
}

static void teardown(void)
{
	db = platform_db_free(db);
	made_folder_remove(&f);
}

EACH_TEST(.begin = setup, .end = teardown);

static const struct platform *made(const char *text)
{
	made_file(&f, "mine.json", text);
	db = made_load(f.path, NULL);
	must_be_clean(db);
	return platform_db_find(db, "mine");
}

static struct metric_tree *tree_of(const struct platform *p, const char *top, int levels)
{
	struct metric_tree *tree = NULL;
	ck_assert_int_eq(metric_tree_new(p, top, levels, &tree), 0);
	return tree;
}

/* "a 1, a1 2, …". */
static const char *shape(const struct metric_tree *tree)
{
	static char text[512];
	size_t at = 0;
	text[0] = '\0';
	for (size_t i = 0; i < tree->n_nodes; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s %d", i ? ", " : "",
			tree->node[i].metric->name, tree->node[i].level);
	return text;
}

TEST(a_metrics_group_makes_its_children)
{
	const struct platform *p = made(PLATFORM(TREE));
	_cleanup_(metric_tree_freep) struct metric_tree *tree = tree_of(p, METRIC_TREE_TOP, 0);
	ck_assert_str_eq(shape(tree), "a 1, a1 2, a2 2, a2x 3, good 1");
	const int parents[] = {-1, 0, 0, 2, -1};
	for (size_t i = 0; i < N(parents); i++)
		ck_assert_int_eq(tree->node[i].parent, parents[i]);
	ck_assert_int_eq(tree->levels, 3);
	ck_assert_int_eq(tree->deepest, 3);
}

TEST(levels_cut_the_tree_and_say_where_it_goes_on)
{
	const struct platform *p = made(PLATFORM(TREE));
	_cleanup_(metric_tree_freep) struct metric_tree *one = tree_of(p, METRIC_TREE_TOP, 1);
	_cleanup_(metric_tree_freep) struct metric_tree *two = tree_of(p, METRIC_TREE_TOP, 2);
	ck_assert_str_eq(shape(one), "a 1, good 1");
	ck_assert(one->node[0].has_more && !one->node[1].has_more);
	ck_assert_str_eq(shape(two), "a 1, a1 2, a2 2, good 1");
	ck_assert(!two->node[0].has_more && !two->node[1].has_more && two->node[2].has_more);
	ck_assert_int_eq(two->levels, 2);
	ck_assert_int_eq(two->deepest, 3);
}

TEST(a_tree_may_begin_at_a_metric_or_at_another_group)
{
	const struct platform *p = made(PLATFORM(TREE));
	_cleanup_(metric_tree_freep) struct metric_tree *metric = tree_of(p, "A2", 0);
	_cleanup_(metric_tree_freep) struct metric_tree *group = tree_of(p, "TopdownL2", 0);
	struct metric_tree *none = NULL;
	ck_assert_str_eq(shape(metric), "a2 1, a2x 2");
	ck_assert_str_eq(shape(group), "a1 1");
	ck_assert_int_eq(metric_tree_new(p, "TopdownL4", 0, &none), METRIC_TREE_NONE);
	ck_assert_int_eq(metric_tree_new(p, "", 0, &none), METRIC_TREE_NONE);
	ck_assert_ptr_null(none);
}

TEST(circles_of_groups_end)
{
	const struct platform *p = made(PLATFORM(
		METRIC("a", "TopdownL1;a_group;b_group") ",\n" METRIC("b", "a_group;TopdownL1")));
	_cleanup_(metric_tree_freep) struct metric_tree *tree = tree_of(p, METRIC_TREE_TOP, 0);
	ck_assert_str_eq(shape(tree), "a 1, b 2");
}

TEST(what_children_leave_of_their_parent)
{
	const struct platform *p = made(PLATFORM(TREE));
	_cleanup_(metric_tree_freep) struct metric_tree *tree = tree_of(p, METRIC_TREE_TOP, 0);
	/* a, a1, a2, a2x, good */
	const double value[] = {60, 25, 40, 10, 40}, lacking[] = {60, 25, NAN, 10, 40};
	ck_assert_double_eq(metric_tree_rest(tree, -1, value), 0);
	ck_assert_double_eq(metric_tree_rest(tree, 0, value), -5);
	ck_assert_double_eq(metric_tree_rest(tree, 2, value), 30);
	ck_assert(isnan(metric_tree_rest(tree, 1, value))); /* it has no children */
	ck_assert(isnan(metric_tree_rest(tree, 0, lacking)));
	ck_assert(isnan(metric_tree_rest(tree, 2, lacking)));
	ck_assert_double_eq(metric_tree_rest(tree, -1, lacking), 0);
}

TEST(children_in_another_unit_leave_nothing_that_means_anything)
{
	const struct platform *p =
		made(PLATFORM(METRIC("a", "TopdownL1") ",\n"
						       "{\"MetricName\": \"b\", \"MetricExpr\": "
						       "\"1\", \"MetricGroup\": \"a_group\", "
						       "\"ScaleUnit\": \"1MPKI\", " ORIGIN "}"));
	_cleanup_(metric_tree_freep) struct metric_tree *tree = tree_of(p, METRIC_TREE_TOP, 0);
	_cleanup_(metric_tree_freep) struct metric_tree *rate = tree_of(p, "b", 0);
	const double value[] = {60, 25};
	ck_assert(isnan(metric_tree_rest(tree, 0, value)));
	ck_assert_double_eq(metric_tree_rest(tree, -1, value), 40);
	ck_assert(isnan(metric_tree_rest(rate, -1, value)));
}

/* -M a, or -M Miss_Ratio: ratios of anything. */
TEST(only_the_first_level_of_a_method_divides_all_slots)
{
	const struct platform *p = made(PLATFORM(TREE ",\n" METRIC("b", "topdown-mine")));
	static const struct {
		const char *top;
		double rest;
	} rows[] = {{"TopdownL1", 80}, {"topdown-mine", 90}, {"a", NAN}, {"TopdownL2", NAN},
		{"Other", NAN}};
	const double value[] = {10, NAN, NAN, NAN, 10};
	for (size_t i = 0; i < N(rows); i++) {
		_cleanup_(metric_tree_freep) struct metric_tree *tree = tree_of(p, rows[i].top, 0);
		double rest = metric_tree_rest(tree, -1, value);
		ck_assert_msg(isnan(rows[i].rest) ? isnan(rest) : rest == rows[i].rest, "%s: %g",
			rows[i].top, rest);
	}
}

TEST(figures_of_a_group_have_no_worst)
{
	const struct platform *p = made(PLATFORM(METRIC("x", "Ratio") ",\n" METRIC("y", "Ratio")));
	_cleanup_(metric_tree_freep) struct metric_tree *group = tree_of(p, "Ratio", 0);
	_cleanup_(metric_tree_freep) struct metric_tree *one = tree_of(p, "y", 0);
	const double value[] = {10, 20};
	ck_assert_int_eq(metric_tree_worst(group, -1, value), -1);
	ck_assert_int_eq(metric_tree_worst(one, -1, value), 0);
}

TEST(the_worst_way_down)
{
	const struct platform *p = made(PLATFORM(TREE));
	_cleanup_(metric_tree_freep) struct metric_tree *tree = tree_of(p, METRIC_TREE_TOP, 0);
	static const struct {
		double value[5]; /* a, a1, a2, a2x, good */
		int of_all, of_a, of_a2;
	} rows[] = {
		{{40, 15, 25, 25, 60}, 0, 2, 3},  /* useful slots are no loss, however many */
		{{10, 5, 5, 5, 20}, 0, 1, 3},     /* of the first level something is always worst */
		{{40, 25, 15, 2, 60}, 0, 1, -1},  /* 13 of 15 are not explained */
		{{40, 10, 10, 10, 60}, 0, -1, 3}, /* 20 of 40 are not */
		{{40, NAN, 25, NAN, 60}, 0, 2, -1},
		{{0, 0, 0, 0, 100}, -1, -1, -1},
		{{NAN, NAN, NAN, NAN, NAN}, -1, -1, -1},
		{{30, -5, -1, 0, 70}, 0, -1, -1},
	};
	for (size_t i = 0; i < N(rows); i++) {
		ck_assert_msg(
			metric_tree_worst(tree, -1, rows[i].value) == rows[i].of_all, "%zu", i);
		ck_assert_msg(metric_tree_worst(tree, 0, rows[i].value) == rows[i].of_a, "%zu", i);
		ck_assert_msg(metric_tree_worst(tree, 2, rows[i].value) == rows[i].of_a2, "%zu", i);
	}
}
