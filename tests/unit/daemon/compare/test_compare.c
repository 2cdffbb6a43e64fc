/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Comparisons of small sides whose truth is plain. How often a comparison is right where it is not is
 * measured by tests/gate.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/compare/compare.h"
#include "daemon/compare/distribution.h"
#include "tests/unit/test.h"

#define N 12 /* functions of a made side */
#define RUNS 16

static double samples[N * RUNS], total[RUNS], weight[RUNS];
static bool candidate[RUNS];
static int64_t begin_ns[RUNS];
static const struct compare_options usual = COMPARE_OPTIONS_DEFAULT;

/* Sides in turns; function f has 1000 / (f + 1) samples, 1 % more or less by chance. */
static struct compare_runs made(void)
{
	struct random_sequence random = {3};
	memset(total, 0, sizeof(total));
	for (size_t r = 0; r < RUNS; r++) {
		candidate[r] = r % 2;
		begin_ns[r] = (int64_t)r;
		for (size_t f = 0; f < N; f++) {
			const double factor = 0.99 + 0.02 * random_unit(&random);
			samples[f * RUNS + r] = 10000.0 / (double)(f + 1) * factor;
			total[r] += samples[f * RUNS + r];
		}
	}
	return (struct compare_runs){N, RUNS, samples, total, candidate, begin_ns};
}

/* The candidate's samples of a function, times a factor; totals follow. */
static void grow(size_t f, double factor)
{
	for (size_t r = 0; r < RUNS; r++) {
		if (!candidate[r])
			continue;
		total[r] += samples[f * RUNS + r] * (factor - 1);
		samples[f * RUNS + r] *= factor;
	}
}

static struct comparison *compared(const struct compare_runs *runs, const struct compare_options *o)
{
	struct comparison *c = NULL;
	ck_assert_int_eq(compare(runs, o, &c), 0);
	return c;
}

TEST(equal_sides_are_within_the_margin)
{
	const struct compare_runs runs = made();
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert_int_eq(c->verdict, COMPARE_WITHIN);
	ck_assert_uint_eq(c->lacks, 0);
	ck_assert_uint_eq(c->n_tested, N);
	ck_assert_uint_eq(c->n_stable, N);
	ck_assert_double_eq_tol(c->total.change, 0, 0.005);
}

TEST(a_function_that_grew_is_named_and_no_other)
{
	const struct compare_runs runs = made();
	grow(2, 1.2);
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert_int_eq(c->verdict, COMPARE_SLOWER);
	for (size_t f = 0; f < N; f++)
		ck_assert_int_eq(c->function[f].is_slower, f == 2);
	ck_assert(!c->function[2].is_stable);
	ck_assert_double_eq_tol(c->function[2].own.change, 0.2, 0.01);
	ck_assert(c->function[2].own.low < 0.2 && c->function[2].own.high > 0.2);
	/* 3333 of 31032: share 10.7 % */
	ck_assert_double_eq_tol(c->function[2].adds, 0.2 * 0.1074, 0.002);
}

static void scale(size_t f, double factor)
{
	for (size_t r = 0; r < RUNS; r++) {
		total[r] += samples[f * RUNS + r] * (factor - 1);
		samples[f * RUNS + r] *= factor;
	}
}

TEST(a_function_of_most_of_the_time_that_grew_is_named_and_no_other)
{
	const struct compare_runs runs = made();
	scale(0, 8); /* 79 % */
	grow(0, 1.1);
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert_int_eq(c->verdict, COMPARE_SLOWER);
	for (size_t f = 0; f < N; f++)
		ck_assert_int_eq(c->function[f].is_slower, f == 0);
	ck_assert_double_eq_tol(c->function[0].own.change, 0.1, 0.01);
}

TEST(what_stands_still_beside_most_of_the_time_that_became_faster_is_not_slower)
{
	for (size_t n = 1; n <= 4; n++) {
		const struct compare_runs runs = made();
		for (size_t f = 0; f < n; f++) {
			scale(f, 8);
			grow(f, 0.4);
		}
		_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
		ck_assert_int_eq(c->verdict, COMPARE_WITHIN);
		for (size_t f = 0; f < N; f++)
			ck_assert(!c->function[f].is_slower);
	}
}

/* The candidate was sampled at another rate: this factor times the samples in the same time. */
static void change_rate(struct compare_runs *runs, double factor)
{
	runs->weight = weight;
	for (size_t r = 0; r < RUNS; r++) {
		weight[r] = candidate[r] ? 1 / factor : 1;
		for (size_t f = 0; f < N && candidate[r]; f++)
			samples[f * RUNS + r] *= factor;
	}
}

TEST(another_rate_changes_no_answer)
{
	static const double rates[] = {0.5, 1, 2};
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct compare_runs runs = made();
		scale(0, 8);
		grow(0, 0.4); /* the total falls */
		grow(3, 1.3);
		change_rate(&runs, rates[i]);
		_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
		ck_assert_int_eq(c->verdict, COMPARE_SLOWER);
		for (size_t f = 0; f < N; f++)
			ck_assert_int_eq(c->function[f].is_slower, f == 3);
	}
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct compare_runs runs = made();
		change_rate(&runs, rates[i]);
		_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
		ck_assert_int_eq(c->verdict, COMPARE_WITHIN);
		/* too few runs for a test, and a row of too few samples */
		runs.n_functions = 1;
		runs.n_runs = 4;
		_cleanup_(comparison_freep) struct comparison *few = compared(&runs, &usual);
		ck_assert(!few->function[0].is_tested);
		ck_assert_double_eq_tol(few->function[0].own.change, 0, 0.03);
	}
}

TEST(what_grew_is_named_where_the_total_fell)
{
	const struct compare_runs runs = made();
	scale(0, 8);
	grow(0, 0.4);
	grow(3, 1.3);
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert_int_eq(c->verdict, COMPARE_SLOWER);
	for (size_t f = 0; f < N; f++)
		ck_assert_int_eq(c->function[f].is_slower, f == 3);
}

TEST(what_became_faster_makes_nothing_else_slower)
{
	const struct compare_runs runs = made();
	grow(0, 0.5);
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert_int_eq(c->verdict, COMPARE_WITHIN);
	for (size_t f = 0; f < N; f++)
		ck_assert(!c->function[f].is_slower);
	ck_assert(!c->function[0].is_stable);
	ck_assert_double_eq_tol(c->function[1].own.change, 0, 0.01);
}

TEST(what_stands_still_does_not_shrink_where_half_of_the_program_grew)
{
	const struct compare_runs runs = made();
	for (size_t f = 2; f < N; f++)
		grow(f, 2); /* 16,032 of 31,032 samples */
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert_int_eq(c->verdict, COMPARE_SLOWER);
	for (size_t f = 0; f < N; f++) {
		ck_assert_int_eq(c->function[f].is_slower, f >= 2);
		ck_assert_double_eq_tol(c->function[f].own.change, f >= 2, 0.05);
	}
}

TEST(what_all_share_is_no_shift_of_single_functions_also_if_it_is_much)
{
	const struct compare_runs runs = made();
	for (size_t f = 0; f < N; f++)
		grow(f, 1.5);
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert_int_eq(c->verdict, COMPARE_SLOWER);
	ck_assert_double_eq_tol(c->total.change, 0.5, 0.01);
	for (size_t f = 0; f < N; f++)
		ck_assert(!c->function[f].is_slower);
}

TEST(what_all_share_is_seen_in_the_total_alone)
{
	const struct compare_runs runs = made();
	for (size_t f = 0; f < N; f++)
		grow(f, 1.1);
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert_int_eq(c->verdict, COMPARE_SLOWER);
	ck_assert_double_eq_tol(c->total.change, 0.1, 0.005);
	for (size_t f = 0; f < N; f++)
		ck_assert(!c->function[f].is_slower);
}

TEST(growth_below_the_margin_does_not_count)
{
	const struct compare_runs runs = made();
	const struct compare_options wide = {.margin = 0.3, .effect = 0.5, .looks = 1};
	grow(2, 1.2);
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &wide);
	ck_assert_int_eq(c->verdict, COMPARE_WITHIN);
	ck_assert(c->function[2].own.p < 0.01);
	ck_assert(!c->function[2].is_slower);
}

TEST(an_allowance_is_taken_from_what_is_seen)
{
	const struct compare_runs runs = made();
	const struct compare_options o = {
		.margin = 0.02, .effect = 0.5, .looks = 1, .allowance = 0.2};
	grow(2, 1.18);
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &o);
	ck_assert(!c->function[2].is_slower);
	ck_assert(c->function[2].own.p > 0.5);
}

TEST(a_function_that_only_the_candidate_has_is_slower)
{
	const struct compare_runs runs = made();
	for (size_t r = 0; r < RUNS; r++)
		if (!candidate[r])
			samples[4 * RUNS + r] = 0;
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert(c->function[4].is_slower);
	ck_assert(isfinite(c->function[4].own.change) && c->function[4].own.change > 100);
	ck_assert_double_eq(c->function[4].share, 0);
}

TEST(a_function_that_only_the_candidate_has_adds_what_it_takes)
{
	const struct compare_runs runs = made();
	for (size_t r = 0; r < RUNS; r++)
		if (!candidate[r]) {
			total[r] -= samples[2 * RUNS + r];
			samples[2 * RUNS + r] = 0;
		}
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert_double_eq(c->function[2].share, 0);
	ck_assert_double_eq_tol(c->function[2].adds, 3333 / 27699.0, 0.01);
}

TEST(so_it_does_where_nothing_is_tested)
{
	static const double counts[] = {100, 100, 100, 100, 0, 0, 50, 50},
			    totals[] = {100, 100, 150, 150};
	static const bool sides[] = {false, false, true, true};
	const struct compare_runs runs = {2, 4, counts, totals, sides, begin_ns, NULL};
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert(!c->function[1].is_tested);
	ck_assert_double_eq_tol(c->function[1].adds, 0.5, 0.01);
	ck_assert_double_eq_tol(c->function[0].adds, 0, 1e-9);
}

TEST(functions_of_few_samples_are_not_tested)
{
	const struct compare_runs runs = made();
	for (size_t r = 0; r < RUNS; r++)
		samples[5 * RUNS + r] = candidate[r] ? 15 : 4; /* 9.5 a run */
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert(!c->function[5].is_tested);
	ck_assert_uint_eq(c->n_tested, N - 1);
}

TEST(sides_one_after_the_other_do_not_decide)
{
	const struct compare_runs runs = made();
	struct compare_options any = usual;
	grow(2, 1.2);
	for (size_t r = 0; r < RUNS; r++)
		begin_ns[r] = (int64_t)r + (candidate[r] ? 100 : 0);
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert_int_eq(c->verdict, COMPARE_UNDECIDED);
	ck_assert_uint_eq(c->lacks & COMPARE_NOT_IN_TURNS, COMPARE_NOT_IN_TURNS);
	any.any_order = true;
	_cleanup_(comparison_freep) struct comparison *d = compared(&runs, &any);
	ck_assert_int_eq(d->verdict, COMPARE_SLOWER);
	ck_assert_uint_eq(d->lacks & COMPARE_NOT_IN_TURNS, COMPARE_NOT_IN_TURNS);
}

TEST(four_runs_of_a_side_are_not_enough)
{
	struct compare_runs runs = made();
	for (size_t r = 0; r < RUNS; r++)
		candidate[r] = r % 4 == 3;
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert_int_eq(c->verdict, COMPARE_UNDECIDED);
	ck_assert_uint_eq(c->lacks, COMPARE_FEW_RUNS);
	ck_assert_uint_eq(c->n_candidate, 4);
}

TEST(one_function_or_none_is_compared_by_what_there_is)
{
	struct compare_runs runs = made();
	grow(0, 1.3);
	runs.n_functions = 1;
	_cleanup_(comparison_freep) struct comparison *one = compared(&runs, &usual);
	ck_assert(one->function[0].is_slower);
	runs.n_functions = 0;
	_cleanup_(comparison_freep) struct comparison *none = compared(&runs, &usual);
	ck_assert_int_eq(none->verdict, COMPARE_SLOWER); /* by the total */
}

/* A loud neighbour makes one run twice as long: the others tell. */
TEST(one_loud_run_does_not_hide_what_all_share)
{
	const struct compare_runs runs = made();
	for (size_t f = 0; f < N; f++)
		grow(f, 1.1);
	total[4] *= 2;
	_cleanup_(comparison_freep) struct comparison *c = compared(&runs, &usual);
	ck_assert_double_eq_tol(c->total.change, 0.1, 0.01);
	ck_assert(c->total.p < 0.01);
}

TEST(the_same_runs_give_the_same_answer)
{
	const struct compare_runs runs = made();
	grow(3, 1.01);
	_cleanup_(comparison_freep) struct comparison *a = compared(&runs, &usual);
	_cleanup_(comparison_freep) struct comparison *b = compared(&runs, &usual);
	for (size_t f = 0; f < N; f++)
		ck_assert_double_eq(a->function[f].own.p, b->function[f].own.p);
}

TEST(more_looks_ask_for_more)
{
	const struct compare_runs runs = made();
	struct compare_options two = usual;
	two.looks = 2;
	_cleanup_(comparison_freep) struct comparison *a = compared(&runs, &usual);
	_cleanup_(comparison_freep) struct comparison *b = compared(&runs, &two);
	ck_assert_double_eq(b->alpha_total, a->alpha_total / 2);
	ck_assert(b->total.seen_from >= a->total.seen_from);
	ck_assert(b->total.runs_needed >= a->total.runs_needed);
}

TEST(what_makes_no_sense_is_refused)
{
	struct compare_runs runs = made();
	struct comparison *c = NULL;
	const struct compare_options bad[] = {{.margin = -1, .effect = 1, .looks = 1},
		{.margin = 0.1, .effect = 1, .looks = 0}, {.margin = NAN, .effect = 1, .looks = 1},
		{.margin = 0.1, .effect = 1, .looks = COMPARE_LOOKS_MAX + 1},
		{.margin = 0.1, .effect = 0.05, .allowance = 0.05, .looks = 1},
		{.margin = 0.1, .effect = NAN, .looks = 1}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		ck_assert_int_eq(compare(&runs, &bad[i], &c), -EINVAL);
	total[3] = 0;
	ck_assert_int_eq(compare(&runs, &usual, &c), -EINVAL);
	total[3] = NAN;
	ck_assert_int_eq(compare(&runs, &usual, &c), -EINVAL);
	runs = made();
	memset(candidate, 0, sizeof(candidate));
	ck_assert_int_eq(compare(&runs, &usual, &c), -EINVAL);
	runs.n_runs = COMPARE_RUNS_MAX + 1;
	ck_assert_int_eq(compare(&runs, &usual, &c), -E2BIG);
	ck_assert_ptr_null(c);
}

/* 1,000 times runs of two values that scatter by 5 %, whose truth differs by 10 %: the interval has it in 95 %,
 * less or more by chance (three standard errors are 2 %). */
TEST(the_interval_of_a_value_has_the_truth_as_often_as_it_says)
{
	struct random_sequence random = {7};
	double value[12];
	bool side[12];
	size_t n_in = 0;
	for (int k = 0; k < 1000; k++) {
		struct compare_change c;
		for (size_t r = 0; r < 12; r++) {
			const double normal = sqrt(-2 * log(random_unit(&random))) *
					      cos(2 * M_PI * random_unit(&random));
			side[r] = r % 2;
			value[r] = 100 * exp(0.05 * normal) * (side[r] ? 1.1 : 1);
		}
		ck_assert_int_eq(compare_value(value, side, 12, &c), 0);
		n_in += c.low <= 0.1 && c.high >= 0.1;
	}
	ck_assert_uint_ge(n_in, 930);
	ck_assert_uint_le(n_in, 970);
}
