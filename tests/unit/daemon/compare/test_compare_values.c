/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * How values of rows changed, of runs made by hand.
 */
#include <math.h>
#include <stdio.h>

#include "daemon/compare/gather_private.h"
#include "daemon/compare/values.h"
#include "tests/unit/test.h"

enum { BASELINE, CANDIDATE, CHANGE, LOW, HIGH };

static struct gather *g;
static const struct compare_runs *runs;
static struct compare_value_names names;
static struct answer_value v[COMPARE_VALUE_COLUMNS];

static void end(void)
{
	g = gather_free(g);
}

EACH_TEST(.end = end);

/* Runs of one row, the first half the baseline's; NAN: not counted. */
static void compare_made(size_t n, const double *value, const double *error)
{
	static const struct sums_column mpki = {"mpki", "mpki", false};
	static const struct answer_column function = {"function", "Function", 0};
	const struct answer_value name = {.kind = ANSWER_TEXT, .text = "f"};
	ck_assert_int_eq(gather_new(QUERY_BY_FUNCTION, &g), 0);
	const struct sums_reader to = gather_reader(g);
	for (size_t r = 0; r < n; r++) {
		const struct sums_value of = {value[r], error[r]};
		const struct sums row = {
			.name = &name, .samples = COMPARE_SAMPLES_MIN, .ns = 1, .value = &of};
		ck_assert_int_eq(gather_begin(g, r >= n / 2, 0), 0);
		ck_assert_int_eq(to.columns(to.userdata, &function, 1, &mpki, 1), 0);
		ck_assert_int_eq(to.row(to.userdata, &row), 0);
	}
	ck_assert_int_eq(gather_table(g, &runs), 0);
	ck_assert_int_eq(compare_values(g, runs, 0, &names, &(struct row_builder){.value = v}), 0);
}

static void near(int at, double wanted)
{
	if (isnan(wanted)) {
		ck_assert_int_eq(v[at].kind, ANSWER_ABSENT);
		return;
	}
	ck_assert_int_eq(v[at].kind, ANSWER_REAL);
	ck_assert_msg(fabs(v[at].real - wanted) < 1e-6, "%d: %g, not %g", at, v[at].real, wanted);
}

TEST(columns_are_named_after_the_value)
{
	struct answer_column c[COMPARE_VALUE_COLUMNS];
	struct row_builder head = {.column = c}, beside = {.column = c};
	compare_made(2, (double[]){1, 2}, (double[]){0, 0});
	ck_assert_int_eq(compare_values(g, runs, 0, &names, &head), 0);
	ck_assert_uint_eq(head.n, 5);
	ck_assert_str_eq(c[BASELINE].name, "baseline_mpki");
	ck_assert_str_eq(c[HIGH].name, "mpki_high");
	ck_assert_int_eq(c[CHANGE].unit, MPERF__UNIT__UNIT_SHARE);
	ck_assert_int_eq(
		compare_values_side_by_side(g, runs, (const size_t[]){0, 0}, &names, &beside), 0);
	ck_assert_uint_eq(beside.n, 2);
	ck_assert_str_eq(c[1].name, "mpki_b");
}

TEST(of_several_runs_the_interval_is_by_their_spread)
{
	compare_made(6, (double[]){4, 4, 4, 5, 5, 5}, (double[]){1, 1, 1, 1, 1, 1});
	near(BASELINE, 4);
	near(CANDIDATE, 5);
	near(CHANGE, 0.25);
	near(LOW, 0.25); /* runs of a side are all the same */
	near(HIGH, 0.25);
}

TEST(of_one_run_a_side_the_interval_is_by_the_errors_of_the_estimates)
{
	compare_made(2, (double[]){4, 5}, (double[]){0.4, 0.5}); /* 10 % each: 14.1 % together */
	near(CHANGE, 0.25);
	near(LOW, 1.25 * exp(-0.1 * sqrt(2)) - 1);
	near(HIGH, 1.25 * exp(0.1 * sqrt(2)) - 1);
}

TEST(without_errors_one_run_a_side_has_no_interval)
{
	compare_made(2, (double[]){4, 5}, (double[]){0.4, NAN});
	near(CHANGE, 0.25);
	near(LOW, NAN);
	near(HIGH, NAN);
}

TEST(a_side_that_did_not_count_has_no_change_and_is_noted)
{
	char text[200];
	compare_made(2, (double[]){4, NAN}, (double[]){0.4, NAN});
	near(BASELINE, 4);
	near(CANDIDATE, NAN);
	near(CHANGE, NAN);
	ck_assert(compare_value_note(g, 2, 0, text, sizeof(text)));
	ck_assert_str_eq(text, "1 of 2 runs did not count the events of mpki");
	ck_assert(!compare_value_note(g, 2, 1, text, sizeof(text)));
}

TEST(a_value_that_no_run_counted_is_noted)
{
	char text[200];
	compare_made(2, (double[]){NAN, NAN}, (double[]){NAN, NAN});
	ck_assert(compare_value_note(g, 2, 0, text, sizeof(text)));
	ck_assert_str_eq(text, "mpki is n/a, since no run counted its events");
}

TEST(side_by_side_a_row_can_have_another_name_on_each)
{
	compare_made(2, (double[]){4, 5}, (double[]){0, 0});
	ck_assert_int_eq(compare_values_side_by_side(g, runs, (const size_t[]){0, 0}, &names,
				 &(struct row_builder){.value = v}),
		0);
	near(0, 4);
	near(1, 5);
}
