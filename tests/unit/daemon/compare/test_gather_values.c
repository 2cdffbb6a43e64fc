/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Values beside samples, of rows made by hand: two runs, and keys of which two are one row.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/compare/renames.h"
#include "daemon/compare/gather_private.h"
#include "tests/unit/test.h"

enum { F, F_COPY, G, LEFT_OUT, N_KEYS };
static const uint32_t row_of_key[N_KEYS] = {[F] = 0, [F_COPY] = 0, [G] = 1, [LEFT_OUT] = KEY_NONE};

static struct gather *g;
static double value[2], error[2];

static void end(void)
{
	g = gather_free(g);
}

EACH_TEST(.end = end);

static void begin(int by)
{
	ck_assert_int_eq(gather_new(by, &g), 0);
	g->n_runs = 2;
}

static void add(uint32_t run, uint32_t key, double ns, double v, double e)
{
	const struct row row = {.run = run, .key = key, .ns = ns};
	const struct answer_value values[] = {{.kind = ANSWER_TEXT, .text = "f"},
		{.kind = ANSWER_REAL, .real = v},
		{.kind = isnan(e) ? ANSWER_ABSENT : ANSWER_REAL, .real = e}};
	ck_assert_int_eq(gather_take_values(g, &row, values), 0);
}

static void metric_columns(void)
{
	const struct answer_column c[] = {
		{"function", "", 0}, {"mpki", "mpki 1/k", 0}, {"mpki_error", "±", 0}};
	gather_find_values(g, c, 3);
}

static void sort(void)
{
	ck_assert_int_eq(gather_sort_values(g, row_of_key, 2), 0);
}

static void near(double is, double wanted)
{
	ck_assert_msg(
		isnan(wanted) ? isnan(is) : fabs(is - wanted) < 1e-9, "%g, not %g", is, wanted);
}

TEST(a_column_with_an_error_is_a_metric_and_others_are_none)
{
	const struct gathered_column *c;
	begin(QUERY_BY_FUNCTION);
	metric_columns();
	ck_assert_uint_eq(gather_value_columns(g, &c), 1);
	ck_assert_str_eq(c[0].name, "mpki");
	ck_assert_str_eq(c[0].title, "mpki 1/k");
	ck_assert(!c[0].is_sum);
	/* another run without it, and the same again: it is one column */
	gather_find_values(g, (struct answer_column[]){{"function", "", 0}}, 1);
	metric_columns();
	ck_assert_uint_eq(gather_value_columns(g, &c), 1);
}

TEST(a_mean_is_by_time_and_so_is_its_error)
{
	begin(QUERY_BY_FUNCTION);
	metric_columns();
	add(1, F_COPY, 30, 8, 0.4);
	add(1, F, 10, 4, 0.3);
	add(0, G, 10, 7, NAN);
	add(0, LEFT_OUT, 10, 100, 1);
	sort();
	gather_values(g, 0, 0, value, error);
	near(value[0], NAN);
	near(value[1], (30 * 8 + 10 * 4) / 40.0);
	near(error[1], hypot(30 * 0.4, 10 * 0.3) / 40);
	gather_values(g, 1, 0, value, error);
	near(value[0], 7);
	near(error[0], NAN);
	near(value[1], NAN);
	ck_assert_uint_eq(gather_value_runs(g, 0), 2);
}

TEST(a_row_without_time_has_its_value)
{
	begin(QUERY_BY_FUNCTION);
	metric_columns();
	add(0, F, 0, 3, 1);
	sort();
	gather_values(g, 0, 0, value, error);
	near(value[0], 3);
	near(error[0], 1);
	ck_assert_uint_eq(gather_value_runs(g, 0), 1);
}

TEST(what_loops_counted_adds_up_and_rates_do_not)
{
	const struct answer_column c[] = {
		{"function", "", 0}, {"bytes", "Bytes", 0}, {"gbytes", "GB/s", 0}};
	const struct gathered_column *columns;
	begin(GATHER_BY_LOOP);
	gather_find_values(g, c, 3);
	ck_assert_uint_eq(gather_value_columns(g, &columns), 2);
	ck_assert(columns[0].is_sum && !columns[1].is_sum);
	add(0, F, 10, 50, 5);
	add(0, F_COPY, 30, 30, 1);
	sort();
	gather_values(g, 0, 0, value, error);
	near(value[0], 80);
	gather_values(g, 0, 1, value, error);
	near(value[0], 2); /* 80 bytes in 40 ns */
}

TEST(more_metrics_than_there_is_room_for_are_noted)
{
	char name[2 * GATHER_VALUES_MAX + 2][32];
	struct answer_column c[2 * GATHER_VALUES_MAX + 2];
	const struct gathered_column *columns;
	begin(QUERY_BY_FUNCTION);
	for (int i = 0; i <= GATHER_VALUES_MAX; i++) {
		snprintf(name[2 * i], sizeof(name[0]), "m%d", i);
		snprintf(name[2 * i + 1], sizeof(name[0]), "m%d_error", i);
		c[2 * i] = (struct answer_column){name[2 * i], "m", 0};
		c[2 * i + 1] = (struct answer_column){name[2 * i + 1], "±", 0};
	}
	gather_find_values(g, c, 2 * GATHER_VALUES_MAX);
	ck_assert_uint_eq(gather_value_columns(g, &columns), GATHER_VALUES_MAX);
	ck_assert(!columns[GATHER_VALUES_MAX - 1].is_cut);
	gather_find_values(g, c, 2 * GATHER_VALUES_MAX + 2);
	ck_assert_uint_eq(gather_value_columns(g, &columns), GATHER_VALUES_MAX);
	ck_assert(columns[GATHER_VALUES_MAX - 1].is_cut);
}

/* --- loops that moved ------------------------------------------------------------------------- */

static uint32_t text(const char *t)
{
	uint32_t id;
	ck_assert_int_eq(text_get(&g->texts, t, &id), 0);
	return id;
}

/* Rows of 20 samples on one side alone, of a function f in a.c. */
static void loops_begin(const char *const (*nest_line)[2], const bool *candidate, size_t n)
{
	begin(GATHER_BY_LOOP);
	g->table = calloc(2 * n, sizeof(*g->table));
	g->time_ns = calloc(2 * n, sizeof(*g->time_ns));
	g->counts = calloc(4 * n, sizeof(*g->counts));
	g->key = calloc(n, sizeof(*g->key));
	g->line = calloc(n, sizeof(*g->line));
	ck_assert(g->table && g->time_ns && g->counts && g->key && g->line);
	g->n_side[0] = g->n_side[1] = 1;
	ck_assert_int_eq(array_grow(&g->run, &g->size_runs, 2, sizeof(*g->run)), 0);
	g->run[0] = (struct run){.samples = 40};
	g->run[1] = (struct run){.samples = 40, .candidate = true};
	for (size_t i = 0; i < n; i++) {
		const struct key key = {{text("f"), text(nest_line[i][0]), text("a.c"), 0}};
		ck_assert_int_eq(key_get(&g->keys, &key, &g->key[i]), 0);
		g->line[g->key[i]] = text(nest_line[i][1]);
		g->table[2 * i + candidate[i]] = 20;
	}
}

TEST(a_loop_of_the_same_line_at_another_place_has_moved)
{
	static const char *const rows[][2] = {
		{"1.2", "10"}, {"1.3", "10"}, {"2", "20"}, {"3", "30"}};
	_cleanup_(freep) struct became *became = NULL;
	loops_begin(rows, (const bool[]){false, true, false, true}, 4);
	ck_assert_int_eq(became_find(g, 4, &became), 0);
	ck_assert_int_eq(became[0].kind, BECAME_MOVED);
	ck_assert_uint_eq(became[0].other, 1);
	ck_assert_uint_eq(became[1].other, 0);
	ck_assert_int_eq(became[2].kind, BECAME_NOTHING); /* another line */
	ck_assert_int_eq(became[3].kind, BECAME_NOTHING);
}

TEST(of_several_loops_of_a_line_nobody_can_tell)
{
	static const char *const rows[][2] = {{"1", "10"}, {"2", "10"}, {"3", "10"}};
	_cleanup_(freep) struct became *became = NULL;
	loops_begin(rows, (const bool[]){false, true, true}, 3);
	ck_assert_int_eq(became_find(g, 3, &became), 0);
	ck_assert_int_eq(became[0].kind, BECAME_NOTHING);
}
