/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Values beside samples, of runs made by hand.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/compare/gather_private.h"
#include "daemon/compare/renames.h"
#include "tests/unit/test.h"

static struct gather *g;
static const struct compare_runs *runs;
static double value[2], error[2];

static void end(void)
{
	g = gather_free(g);
}

EACH_TEST(.end = end);

static void begin(int by)
{
	ck_assert_int_eq(gather_new(by, &g), 0);
}

static void begin_run(const struct sums_column *column, size_t n)
{
	static const struct answer_column function = {"function", "Function", 0};
	const struct sums_reader to = gather_reader(g);
	ck_assert_int_eq(gather_begin(g, false, 0), 0);
	ck_assert_int_eq(to.columns(to.userdata, &function, 1, column, n), 0);
}

static void begin_metric_run(void)
{
	begin_run(&(struct sums_column){"mpki", "mpki 1/k", false}, 1);
}

/* A row of as many samples as a row of the table needs. */
static void add_values(const char *function, double ns, const struct sums_value *v)
{
	const struct answer_value name = {.kind = ANSWER_TEXT, .text = function};
	const struct sums_reader to = gather_reader(g);
	const struct sums row = {.name = &name,
		.samples = COMPARE_SAMPLES_MIN,
		.ns = ns,
		.cycles = -1,
		.instructions = -1,
		.value = v};
	ck_assert_int_eq(to.row(to.userdata, &row), 0);
}

static void add(const char *function, double ns, double v, double e)
{
	add_values(function, ns, &(struct sums_value){v, e});
}

static void table(void)
{
	ck_assert_int_eq(gather_table(g, &runs), 0);
}

static void near(double is, double wanted)
{
	ck_assert_msg(
		isnan(wanted) ? isnan(is) : fabs(is - wanted) < 1e-9, "%g, not %g", is, wanted);
}

TEST(a_column_of_two_runs_is_one_column)
{
	const struct gathered_column *c;
	begin(QUERY_BY_FUNCTION);
	begin_metric_run();
	ck_assert_uint_eq(gather_value_columns(g, &c), 1);
	ck_assert_str_eq(c[0].name, "mpki");
	ck_assert_str_eq(c[0].title, "mpki 1/k");
	ck_assert(!c[0].is_sum);
	begin_run(NULL, 0);
	begin_metric_run();
	ck_assert_uint_eq(gather_value_columns(g, &c), 1);
}

TEST(a_mean_is_by_time_and_so_is_its_error)
{
	begin(QUERY_BY_FUNCTION);
	begin_metric_run();
	add("g", 10, 7, NAN);
	begin_metric_run();
	add("f.cold", 30, 8, 0.4); /* a copy of f is f */
	add("f", 10, 4, 0.3);
	table();
	gather_values(g, 1, 0, value, error);
	near(value[0], NAN);
	near(value[1], (30 * 8 + 10 * 4) / 40.0);
	near(error[1], hypot(30 * 0.4, 10 * 0.3) / 40);
	gather_values(g, 0, 0, value, error);
	near(value[0], 7);
	near(error[0], NAN);
	near(value[1], NAN);
	ck_assert_uint_eq(gather_value_runs(g, 0), 2);
}

TEST(a_row_without_time_has_its_value)
{
	begin(QUERY_BY_FUNCTION);
	begin_metric_run();
	add("f", 0, 3, 1);
	table();
	gather_values(g, 0, 0, value, error);
	near(value[0], 3);
	near(error[0], 1);
	ck_assert_uint_eq(gather_value_runs(g, 0), 1);
}

TEST(a_value_that_is_not_known_is_none)
{
	begin(QUERY_BY_FUNCTION);
	begin_metric_run();
	add("f", 10, NAN, NAN);
	add("f.cold", 30, 8, 0.4);
	begin_metric_run();
	add("f", 10, NAN, NAN);
	table();
	gather_values(g, 0, 0, value, error);
	near(value[0], 8);
	near(value[1], NAN);
	ck_assert_uint_eq(gather_value_runs(g, 0), 1);
}

TEST(what_loops_counted_adds_up_and_rates_do_not)
{
	const struct sums_column c[] = {{"bytes", "Bytes", true}, {"gbytes", "GB/s", false}};
	const struct gathered_column *columns;
	begin(GATHER_BY_LOOP);
	begin_run(c, 2);
	ck_assert_uint_eq(gather_value_columns(g, &columns), 2);
	ck_assert(columns[0].is_sum && !columns[1].is_sum);
	add_values("f", 10, (struct sums_value[]){{50, NAN}, {5, NAN}});
	add_values("f.cold", 30, (struct sums_value[]){{30, NAN}, {1, NAN}});
	table();
	gather_values(g, 0, 0, value, error);
	near(value[0], 80);
	gather_values(g, 0, 1, value, error);
	near(value[0], 2); /* 80 bytes in 40 ns */
}

TEST(more_metrics_than_there_is_room_for_are_noted)
{
	char name[GATHER_VALUES_MAX + 1][32];
	struct sums_column c[GATHER_VALUES_MAX + 1];
	const struct gathered_column *columns;
	begin(QUERY_BY_FUNCTION);
	for (int i = 0; i <= GATHER_VALUES_MAX; i++) {
		snprintf(name[i], sizeof(name[0]), "m%d", i);
		c[i] = (struct sums_column){name[i], "m", false};
	}
	begin_run(c, GATHER_VALUES_MAX);
	ck_assert_uint_eq(gather_value_columns(g, &columns), GATHER_VALUES_MAX);
	ck_assert(!columns[GATHER_VALUES_MAX - 1].is_cut);
	begin_run(c + 1, GATHER_VALUES_MAX);
	ck_assert_uint_eq(gather_value_columns(g, &columns), GATHER_VALUES_MAX);
	ck_assert(columns[GATHER_VALUES_MAX - 1].is_cut);
	/* the value without a column is left out, and the others stay in their places */
	add_values("f", 1, (struct sums_value[GATHER_VALUES_MAX]){{1, 0}, {2, 0}, {0, 0}});
	table();
	gather_values(g, 0, 2, value, error);
	near(value[1], 2);
}

/* --- loops that moved ------------------------------------------------------------------------- */

static struct answer_value text(const char *t)
{
	return (struct answer_value){.kind = ANSWER_TEXT, .text = t};
}

/* Rows of 20 samples on one side alone, of a function f in a.c. */
struct loop {
	const char *nest;
	int64_t line;
	bool candidate;
};

static void loops_begin(const struct loop *loop, size_t n)
{
	static const struct answer_column names[] = {
		{"function", "", 0}, {"nest", "", 0}, {"source", "", 0}, {"line", "", 0}};
	const struct answer_provenance all = {.event = "", .rung = "", .samples = 40};
	begin(GATHER_BY_LOOP);
	const struct sums_reader to = gather_reader(g);
	for (int side = 0; side < 2; side++) {
		ck_assert_int_eq(gather_begin(g, side, 0), 0);
		ck_assert_int_eq(to.columns(to.userdata, names, 4, NULL, 0), 0);
		ck_assert_int_eq(to.provenance(to.userdata, &all), 0);
		for (size_t i = 0; i < n; i++) {
			const struct answer_value name[] = {text("f"), text(loop[i].nest),
				text("a.c"), {.kind = ANSWER_INTEGER, .integer = loop[i].line}};
			const struct sums row = {.name = name, .samples = 20};
			if (loop[i].candidate == side)
				ck_assert_int_eq(to.row(to.userdata, &row), 0);
		}
	}
	table();
}

static size_t row_of(const char *nest)
{
	const char *names[GATHER_PARTS];
	for (size_t i = 0; i < runs->n_functions; i++) {
		gather_names(g, i, names);
		if (strcmp(names[1], nest) == 0)
			return i;
	}
	ck_abort_msg("no row %s", nest);
}

TEST(a_loop_of_the_same_line_at_another_place_has_moved)
{
	_cleanup_(freep) struct function_rename *renames = NULL;
	loops_begin((const struct loop[]){{"1.2", 10, false}, {"1.3", 10, true}, {"2", 20, false},
			    {"3", 30, true}},
		4);
	ck_assert_int_eq(renames_find(g, 4, &renames), 0);
	ck_assert_int_eq(renames[row_of("1.2")].kind, RENAME_MOVED);
	ck_assert_uint_eq(renames[row_of("1.2")].other, row_of("1.3"));
	ck_assert_uint_eq(renames[row_of("1.3")].other, row_of("1.2"));
	ck_assert_int_eq(renames[row_of("2")].kind, RENAME_NONE); /* another line */
	ck_assert_int_eq(renames[row_of("3")].kind, RENAME_NONE);
}

TEST(of_several_loops_of_a_line_nobody_can_tell)
{
	_cleanup_(freep) struct function_rename *renames = NULL;
	loops_begin((const struct loop[]){{"1", 10, false}, {"2", 10, true}, {"3", 10, true}}, 3);
	ck_assert_int_eq(renames_find(g, 3, &renames), 0);
	ck_assert_int_eq(renames[row_of("1")].kind, RENAME_NONE);
}
