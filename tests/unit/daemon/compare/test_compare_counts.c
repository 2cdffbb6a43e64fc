/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Cycles, instructions and IPC of two sides of three runs, made as the store has them.
 */
#include <math.h>

#include "daemon/compare/gather.h"
#include "daemon/compare/values.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define RUNS 6

static struct stored run[RUNS];
static struct gather *g;
static const struct compare_runs *runs;

static void end(void)
{
	for (int i = 0; i < RUNS; i++)
		if (*run[i].folder)
			stored_end(&run[i]);
	g = gather_free(g);
	memset(run, 0, sizeof(run));
}

EACH_TEST(.end = end, .seconds = 60);

/* A run of f that counted so much; no cycles: a run without counters. */
static void add_run(int i, uint64_t cycles, uint64_t instructions)
{
	if (cycles)
		stored_begin_group(&run[i]);
	else
		stored_begin_clock(&run[i]);
	stored_add(&run[i], &(struct stored_sample){.task = stored_task(&run[i], 1, 1, "p"),
				    .count = 20,
				    .frame = {stored_function(&run[i], "/bin/prog", "f")},
				    .read = {{.event = 1, .value = cycles},
					    {.event = 2, .value = instructions}},
				    .n_reads = cycles ? 2 : 0});
}

/* The first half of the runs are the baseline's. False: no run counted. */
static bool compare_made(int n, struct answer_value v[static COMPARE_COUNT_COLUMNS])
{
	const struct query_filter all = {0};
	const struct query_question question = {.by = QUERY_BY_FUNCTION, .filter = &all};
	struct row_builder row = {.value = v};
	struct query_error error;
	ck_assert_int_eq(gather_new(QUERY_BY_FUNCTION, &g), 0);
	for (int i = 0; i < n; i++)
		ck_assert_int_eq(
			gather_run(g, i >= n / 2, stored_seal(&run[i]), &question, &error), 0);
	ck_assert_int_eq(gather_table(g, &runs), 0);
	ck_assert_uint_eq(runs->n_functions, 1);
	ck_assert_int_eq(compare_counts(g, runs, 0, &row), 0);
	ck_assert_uint_eq(row.n, COMPARE_COUNT_COLUMNS);
	return gather_has_counts(g);
}

static void is(const struct answer_value *v, double expected)
{
	if (isnan(expected)) {
		ck_assert_int_eq(v->kind, ANSWER_ABSENT);
		return;
	}
	ck_assert_int_eq(v->kind, ANSWER_REAL);
	ck_assert_double_eq_tol(v->real, expected, 1e-6 * fmax(1, fabs(expected)));
}

TEST(means_are_of_all_runs_and_each_change_has_its_interval)
{
	struct answer_value v[COMPARE_COUNT_COLUMNS];
	for (int i = 0; i < 3; i++) {
		add_run(i, 1000 + 10 * (uint64_t)i, 2000 + 20 * (uint64_t)i); /* IPC 2 in each */
		add_run(3 + i, 2000, 3000);                                   /* IPC 1.5 */
	}
	ck_assert(compare_made(6, v));
	is(&v[0], 1010);
	is(&v[1], 2000);
	ck_assert_double_eq_tol(v[2].real, 2000 / 1010.0 - 1, 1e-4); /* of logarithms */
	ck_assert(v[3].real < v[2].real && v[4].real > v[2].real);
	is(&v[5], 2020);
	is(&v[6], 3000);
	is(&v[10], 2);
	is(&v[11], 1.5);
	is(&v[12], -0.25);
	/* the quotient is the same in all runs of a side, so nothing is uncertain */
	is(&v[13], -0.25);
	is(&v[14], -0.25);
}

TEST(one_run_a_side_has_a_change_and_no_interval)
{
	struct answer_value v[COMPARE_COUNT_COLUMNS];
	add_run(0, 1000, 2000);
	add_run(1, 1000, 1000);
	compare_made(2, v);
	is(&v[2], 0);
	is(&v[3], NAN);
	is(&v[12], -0.5);
	is(&v[14], NAN);
}

TEST(a_run_without_counters_takes_no_part)
{
	struct answer_value v[COMPARE_COUNT_COLUMNS];
	add_run(0, 1000, 2000);
	add_run(1, 0, 0);
	add_run(2, 500, 500);
	add_run(3, 500, 500);
	compare_made(4, v);
	is(&v[10], 2);
	is(&v[11], 1);
	is(&v[12], -0.5);
	is(&v[13], NAN);
}

TEST(a_side_without_counters_has_no_change)
{
	struct answer_value v[COMPARE_COUNT_COLUMNS];
	add_run(0, 1000, 2000);
	add_run(1, 0, 0);
	compare_made(2, v);
	is(&v[10], 2);
	is(&v[11], NAN);
	is(&v[12], NAN);
}

TEST(there_are_no_columns_where_nothing_counted)
{
	struct answer_value v[COMPARE_COUNT_COLUMNS];
	add_run(0, 0, 0);
	add_run(1, 0, 0);
	ck_assert(!compare_made(2, v));
}
