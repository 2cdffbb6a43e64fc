/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Answers about metrics as rows of a roofline: what was counted, what was not, and what only seems to be.
 */
#include <math.h>
#include <string.h>

#include "client/roofline/roofline_counters.h"
#include "client/roofline/roofline_plot.h"
#include "tests/unit/client/answers.h"
#include "tests/unit/test.h"

static struct reply answer, rows;
static char reason[COUNTERS_REASON_BYTES];

static void begin(void)
{
	answer = rows = (struct reply){0};
}

static void end(void)
{
	reply_clear(&answer);
	reply_clear(&rows);
}

EACH_TEST(.begin = begin, .end = end);

static int add(void *r, const Mperf__Answer *a)
{
	return reply_add(r, a);
}

/* --- of stat ---------------------------------------------------------------------------------- */

static const struct answers_column of_stat[] = {{"event", "", 0}, {"value", "", 0},
	{"scaled", "", 0}, {"running_share", "", 0}, {"reason", "", 0}, {"formula", "", 0},
	{"error", "", 0}, {"harts", "", 0}};

static void begin_stat(bool apart)
{
	ck_assert_int_eq(answers_columns(add, &answer, of_stat, apart ? 8 : 7), 0);
}

static void add_row(Mperf__Value *v)
{
	ck_assert_int_eq(answers_row(add, &answer, v, answer.columns->n_column), 0);
}

/* Of an event: no formula. */
static void add_event(const char *name, int64_t count)
{
	Mperf__Value v[] = {answers_text(name), answers_integer(count), answers_real((double)count),
		answers_real(1), answers_absent(), answers_absent(), answers_absent(),
		answers_text("0-3")};
	add_row(v);
}

/* NAN: none, because. */
static void add_metric(
	const char *name, double value, double error, double running, const char *harts)
{
	bool known = isfinite(value);
	Mperf__Value v[] = {answers_text(name), answers_absent(),
		known ? answers_real(value) : answers_absent(),
		known ? answers_real(running) : answers_absent(),
		known ? answers_absent() : answers_text("it cannot be"), answers_text("a / b"),
		isfinite(error) ? answers_real(error) : answers_absent(), answers_text(harts)};
	add_row(v);
}

static double number(size_t row, const char *column)
{
	double n;
	return reply_number(&rows, row, reply_column(&rows, column), &n) ? n : NAN;
}

TEST(metrics_of_a_program_are_one_row)
{
	begin_stat(false);
	add_event("fp_gflops", 7); /* is none of the metric, though it is called so */
	add_metric("fp_gflops", 4, 0.1, 0.5, "");
	add_metric("dram_gbytes", 2, 0.2, 1, "");
	add_metric("fp_per_dram_byte", 2, 0.05, 0.5, "");
	add_metric("fp_dp_share", 25, 1, 0.5, "");
	ck_assert_int_eq(roofline_counters_of_stat(&answer, NULL, "make -j2", &rows, reason), 0);
	ck_assert_uint_eq(rows.n_rows, 1);
	ck_assert_str_eq(reply_text(&rows, 0, reply_column(&rows, "program")), "make -j2");
	ck_assert_double_eq(number(0, "gops"), 4);
	ck_assert_double_eq(number(0, "gops_error"), 0.1);
	ck_assert_double_eq(number(0, "dram_gbytes"), 2);
	ck_assert_double_eq(number(0, "ops_per_dram_byte"), 2);
	ck_assert_double_eq(number(0, "ops_per_dram_byte_error"), 0.05);
	ck_assert_double_eq(number(0, "dp_share"), 0.25);
	ck_assert_double_eq(number(0, "counted"), 0.5); /* the least */
	ck_assert_int_eq(reply_column(&rows, "harts"), -1);
}

TEST(each_kind_of_core_has_a_row)
{
	begin_stat(true);
	add_metric("fp_gflops", 4, NAN, 1, "0-3");
	add_metric("dram_gbytes", 2, NAN, 1, "0-3");
	add_metric("fp_per_dram_byte", 2, NAN, 1, "0-3");
	add_metric("fp_gflops", 1, NAN, 1, "4-7");
	add_metric("dram_gbytes", NAN, NAN, 1, "4-7");
	add_metric("fp_per_dram_byte", NAN, NAN, 1, "4-7");
	ck_assert_int_eq(roofline_counters_of_stat(&answer, "fp", "make", &rows, reason), 0);
	ck_assert_uint_eq(rows.n_rows, 2);
	ck_assert_str_eq(reply_text(&rows, 1, reply_column(&rows, "harts")), "4-7");
	ck_assert_double_eq(number(1, "gops"), 1);
	ck_assert(isnan(number(1, "dram_gbytes")) && isnan(number(1, "ops_per_dram_byte")));
	ck_assert(isnan(number(0, "gops_error")));
}

/* A rate alone is no place in a roofline; nor is nothing at all. */
TEST(what_was_not_counted_is_the_reason)
{
	begin_stat(false);
	add_metric("fp_gflops", 4, 0.1, 1, "");
	add_metric("dram_gbytes", NAN, NAN, 1, "");
	add_metric("fp_per_dram_byte", NAN, NAN, 1, "");
	ck_assert_int_eq(
		roofline_counters_of_stat(&answer, "fp", "x", &rows, reason), COUNTERS_NONE);
	ck_assert_str_eq(reason, "there is no dram_gbytes: it cannot be");
}

/* Nothing came from memory: a rate of 0, and no intensity. */
TEST(no_miss_is_no_division)
{
	begin_stat(false);
	add_metric("fp_gflops", 4, 0.1, 1, "");
	add_metric("dram_gbytes", 0, 0, 1, "");
	add_metric("fp_per_dram_byte", NAN, NAN, 1, "");
	ck_assert_int_eq(roofline_counters_of_stat(&answer, "fp", "x", &rows, reason), 0);
	ck_assert_double_eq(number(0, "dram_gbytes"), 0);
	ck_assert(isnan(number(0, "ops_per_dram_byte")));
}

TEST(one_precision_has_metrics_of_its_own)
{
	const char *const *dp = roofline_counters_metrics("dp", false);
	ck_assert_str_eq(dp[0], "dp_gflops");
	ck_assert_str_eq(dp[1], "dram_gbytes");
	ck_assert_str_eq(dp[2], "dp_per_dram_byte");
	ck_assert_ptr_null(dp[3]);
	ck_assert_str_eq(roofline_counters_metrics(NULL, false)[3], "Roofline");
	ck_assert_ptr_null(roofline_counters_metrics("fp", true)[3]); /* fewer counters */
	begin_stat(false);
	add_metric("dp_gflops", 3, 0.1, 1, "");
	add_metric("dram_gbytes", 1, 0, 1, "");
	add_metric("dp_per_dram_byte", 3, 0.1, 1, "");
	ck_assert_int_eq(roofline_counters_of_stat(&answer, "dp", "x", &rows, reason), 0);
	ck_assert_double_eq(number(0, "gops"), 3);
	ck_assert_str_eq(rows.columns->column[reply_column(&rows, "gops")]->title, "DP GFLOP/s");
}

/* --- of samples ------------------------------------------------------------------------------- */

TEST(functions_keep_their_names_and_shares)
{
	static const struct answers_column columns[] = {{"function", "", 0}, {"module", "", 0},
		{"self", "", 0}, {"self_ns", "", 0}, {"fp_gflops", "", 0},
		{"fp_gflops_error", "", 0}, {"dram_gbytes", "", 0}, {"dram_gbytes_error", "", 0},
		{"fp_per_dram_byte", "", 0}, {"fp_per_dram_byte_error", "", 0}};
	Mperf__Value hot[] = {answers_text("solve"), answers_text("/bin/x"), answers_real(0.75),
		answers_integer(3000), answers_real(4), answers_real(1), answers_real(2),
		answers_real(0.5), answers_real(2), answers_real(0.1)};
	Mperf__Value cold[] = {answers_text("read"), answers_text("/bin/x"), answers_real(0.25),
		answers_integer(1000), answers_absent(), answers_absent(), answers_absent(),
		answers_absent(), answers_absent(), answers_absent()};
	ck_assert_int_eq(answers_columns(add, &answer, columns, 10), 0);
	add_row(hot);
	add_row(cold);
	ck_assert_int_eq(roofline_counters_of_samples(&answer, "fp", &rows, reason), 0);
	ck_assert_uint_eq(rows.n_rows, 2);
	ck_assert_str_eq(reply_text(&rows, 0, reply_column(&rows, "function")), "solve");
	ck_assert_double_eq(number(0, "share"), 0.75);
	ck_assert_double_eq(number(0, "time_ns"), 3000);
	ck_assert_double_eq(number(0, "gops_error"), 1);
	ck_assert(isnan(number(1, "gops")));
	ck_assert_int_eq(reply_column(&rows, "program"), -1);
	ck_assert_int_eq(reply_column(&rows, "comm"), -1);
}

TEST(samples_without_counts_are_none)
{
	static const struct answers_column columns[] = {{"comm", "", 0}, {"pid", "", 0}};
	Mperf__Value v[] = {answers_text("make"), answers_integer(7)};
	ck_assert_int_eq(answers_columns(add, &answer, columns, 2), 0);
	add_row(v);
	ck_assert_int_eq(roofline_counters_of_samples(&answer, "fp", &rows, reason), COUNTERS_NONE);
	ck_assert_ptr_nonnull(strstr(reason, "fp_gflops"));
}

/* --- drawn ------------------------------------------------------------------------------------ */

/* Mostly in single precision: its peak is twice that of doubles, and L1 says nothing of it. */
TEST(rows_are_compared_with_memory_and_the_peak_of_their_precision)
{
	struct plot_roof roof[] = {{.is_memory = true, .name = "DRAM", .value = 10},
		{.is_memory = true, .name = "L1", .value = 100},
		{.name = "vector fma", .value = 40, .precision = PLOT_F64},
		{.name = "vector fma", .value = 80, .precision = PLOT_F32}};
	const struct roofline_roofs roofs = {.roof = roof, .n = 4};
	const struct options o = {.from = (char *)"counters"};
	const struct reply *runs[] = {&rows};
	struct roofline_plot p;
	begin_stat(false);
	add_metric("fp_gflops", 4, 0.2, 1, "");
	add_metric("dram_gbytes", 8, 0.2, 1, "");
	add_metric("fp_per_dram_byte", 0.5, 0.05, 1, "");
	add_metric("fp_dp_share", 25, 1, 1, "");
	ck_assert_int_eq(roofline_counters_of_stat(&answer, NULL, "make", &rows, reason), 0);
	ck_assert_int_eq(roofline_plot_make(&o, runs, 1, &roofs, &p), 0);
	ck_assert_int_eq(roofline_plot_extend(&p, &rows), 0);
	const struct plot_dot *d = &p.plot.dot[0];
	ck_assert_str_eq(d->name, "make");
	ck_assert_int_eq(d->precision, PLOT_F32);
	ck_assert(plot_dot_has_dram_place(d) && !plot_dot_has_place(d));
	ck_assert_double_eq_tol(d->of_dram_roof, 4 / 5.0, 1e-12);
	ck_assert_double_eq_tol(d->error, 0.05, 1e-12);
	ck_assert_double_eq_tol(number(0, "of_dram_roof"), 0.8, 1e-12);
	ck_assert(isnan(number(0, "of_roof")));
	const struct plot_set *s = &p.sets.set[p.sets.shown];
	ck_assert_uint_eq(s->n_memory, 1);
	ck_assert_str_eq(s->memory[0]->name, "DRAM");
	roofline_plot_clear(&p);
}
