/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Two runs of one command, as the answers about them: what is combined, and what is refused.
 */
#include <math.h>

#include "client/roofline/two_phase.h"
#include "tests/unit/test.h"

/* A row as a run tells it; a negative number is absent. */
struct told {
	const char *function, *nest;
	double entries, time_ns, counted, ops, loaded;
};

static Mperf__Value text_value(const char *text)
{
	Mperf__Value v = MPERF__VALUE__INIT;
	if (text) {
		v.is_case = MPERF__VALUE__IS_TEXT;
		v.text = (char *)text;
	}
	return v;
}

static Mperf__Value number_value(double n)
{
	Mperf__Value v = MPERF__VALUE__INIT;
	if (n >= 0) {
		v.is_case = MPERF__VALUE__IS_REAL;
		v.real = n;
	}
	return v;
}

static const char *const names[] = {"function", "nest", "entries", "time_ns", "counted_entries",
	"ops", "bytes_loaded", "bytes_stored"};
#define N_NAMES (sizeof(names) / sizeof(*names))

static void add_columns(struct reply *reply, const char *const *column_names, size_t n)
{
	Mperf__Column column[N_NAMES], *list[N_NAMES];
	for (size_t i = 0; i < n; i++) {
		column[i] = (Mperf__Column)MPERF__COLUMN__INIT;
		column[i].name = column[i].title = (char *)column_names[i];
		list[i] = &column[i];
	}
	Mperf__Columns columns = MPERF__COLUMNS__INIT;
	columns.column = list;
	columns.n_column = n;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_COLUMNS;
	a.columns = &columns;
	ck_assert_int_eq(reply_add(reply, &a), 0);
}

static void add_row(struct reply *reply, const struct told *t)
{
	Mperf__Value value[] = {text_value(t->function), text_value(t->nest),
		number_value(t->entries), number_value(t->time_ns), number_value(t->counted),
		number_value(t->ops), number_value(t->loaded), number_value(0)};
	Mperf__Value *list[N_NAMES];
	for (size_t i = 0; i < N_NAMES; i++)
		list[i] = &value[i];
	Mperf__Row row = MPERF__ROW__INIT;
	row.value = list;
	row.n_value = N_NAMES;
	Mperf__Row *rows[] = {&row};
	Mperf__Rows all = MPERF__ROWS__INIT;
	all.row = rows;
	all.n_row = 1;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_ROWS;
	a.rows = &all;
	ck_assert_int_eq(reply_add(reply, &a), 0);
}

static void tell(struct reply *reply, const struct told *rows, size_t n)
{
	add_columns(reply, names, N_NAMES);
	for (size_t i = 0; i < n; i++)
		add_row(reply, &rows[i]);
}

static double number_of(const struct reply *r, size_t row, const char *column)
{
	double n;
	return reply_number(r, row, reply_column(r, column), &n) ? n : NAN;
}

struct runs {
	struct reply first, second, third, both;
	size_t n_different;
};

static int combine(struct runs *r, uint32_t limit)
{
	const struct two_phase_runs runs = {
		&r->first, &r->second, r->third.columns ? &r->third : NULL};
	return two_phase_combine(&runs, limit, &r->both, &r->n_different);
}

static void clear(struct runs *r)
{
	reply_clear(&r->first);
	reply_clear(&r->second);
	reply_clear(&r->third);
	reply_clear(&r->both);
	*r = (struct runs){0};
}

TEST(time_is_of_the_first_run_and_counts_are_of_the_second)
{
	struct runs r = {0};
	const struct told first = {"triad", "1", 10, 1000, 0, -1, -1};
	const struct told second = {"triad", "1", 10, 1100, 10, 4000, 8000};
	tell(&r.first, &first, 1);
	tell(&r.second, &second, 1);
	ck_assert_int_eq(combine(&r, 0), 0);
	ck_assert_uint_eq(r.n_different, 0);
	ck_assert_uint_eq(r.both.n_rows, 1);
	ck_assert_double_eq(number_of(&r.both, 0, "time_ns"), 1000);
	ck_assert_double_eq(number_of(&r.both, 0, "time_counting_ns"), 1100);
	ck_assert_double_eq(number_of(&r.both, 0, "gops"), 4);
	ck_assert_double_eq(number_of(&r.both, 0, "gbytes"), 8);
	ck_assert_double_eq_tol(number_of(&r.both, 0, "cost_measured"), 0.1, 1e-9);
	ck_assert_ptr_null(reply_text(&r.both, 0, reply_column(&r.both, "refused")));
	clear(&r);
}

TEST(errors_are_how_much_two_equal_runs_differ)
{
	struct runs r = {0};
	const struct told first[] = {
		{"a", "1", 10, 1000, 0, -1, -1}, {"b", "1", 5, 900, 0, -1, -1}};
	const struct told second[] = {
		{"a", "1", 10, 1500, 10, 4000, 8000}, {"b", "1", 5, 900, 5, 1, 1}};
	/* b ran otherwise */
	const struct told third[] = {
		{"b", "1", 6, 999, 0, -1, -1}, {"a", "1", 10, 1200, 0, -1, -1}};
	tell(&r.first, first, 2);
	tell(&r.second, second, 2);
	tell(&r.third, third, 2);
	ck_assert_int_eq(combine(&r, 0), 0);
	ck_assert_double_eq(number_of(&r.both, 0, "time_again_ns"), 1200);
	ck_assert_double_eq_tol(number_of(&r.both, 0, "error"), 0.2 / sqrt(2), 1e-9);
	ck_assert_double_eq_tol(number_of(&r.both, 0, "cost_measured"), 0.5, 1e-9);
	ck_assert_double_eq_tol(number_of(&r.both, 0, "cost_measured_error"), 0.2 * 1.5, 1e-9);
	ck_assert(isnan(number_of(&r.both, 1, "error")));
	ck_assert(isnan(number_of(&r.both, 1, "cost_measured_error")));
	clear(&r);
}

TEST(without_a_third_run_there_are_no_errors)
{
	struct runs r = {0};
	const struct told first = {"triad", "1", 10, 1000, 0, -1, -1};
	const struct told second = {"triad", "1", 10, 1100, 10, 4000, 8000};
	tell(&r.first, &first, 1);
	tell(&r.second, &second, 1);
	ck_assert_int_eq(combine(&r, 0), 0);
	ck_assert(isnan(number_of(&r.both, 0, "error")));
	clear(&r);
	tell(&r.first, &first, 1);
	tell(&r.second, &second, 1);
	tell(&r.third, NULL, 0);
	ck_assert_int_eq(combine(&r, 0), 0);
	ck_assert(isnan(number_of(&r.both, 0, "error")));
	clear(&r);
}

TEST(loops_that_were_entered_differently_are_refused_with_the_reason)
{
	struct runs r = {0};
	const struct told first = {"deal", "1", 10, 1000, 0, -1, -1};
	const struct told second = {"deal", "1", 12, 1100, 12, 4000, 8000};
	tell(&r.first, &first, 1);
	tell(&r.second, &second, 1);
	ck_assert_int_eq(combine(&r, 0), 0);
	ck_assert_uint_eq(r.n_different, 1);
	ck_assert_str_eq(reply_text(&r.both, 0, reply_column(&r.both, "refused")),
		"entered 10 times, then 12");
	ck_assert(isnan(number_of(&r.both, 0, "gops")));
	ck_assert(isnan(number_of(&r.both, 0, "gbytes")));
	ck_assert(isnan(number_of(&r.both, 0, "cost_measured")));
	ck_assert_double_eq(number_of(&r.both, 0, "time_ns"), 1000);
	clear(&r);
}

TEST(what_ran_in_one_run_alone_is_refused)
{
	struct runs r = {0};
	const struct told first[] = {{"a", "1", 1, 10, 0, -1, -1}, {"b", "1", 1, 20, 0, -1, -1}};
	const struct told second[] = {{"b", "1", 1, 20, 1, 5, 5}, {"c", "1", 1, 30, 1, 5, 5}};
	tell(&r.first, first, 2);
	tell(&r.second, second, 2);
	ck_assert_int_eq(combine(&r, 0), 0);
	ck_assert_uint_eq(r.both.n_rows, 3);
	ck_assert_uint_eq(r.n_different, 2);
	for (size_t i = 0; i < 3; i++) {
		const char *function = reply_text(&r.both, i, 0);
		const char *refused = reply_text(&r.both, i, reply_column(&r.both, "refused"));
		if (*function == 'b')
			ck_assert_ptr_null(refused);
		else
			ck_assert_str_eq(refused, *function == 'a'
							  ? "it ran only in the first run"
							  : "it ran only in the second run");
	}
	clear(&r);
}

TEST(loops_inside_a_nest_are_left_to_it)
{
	struct runs r = {0};
	const struct told first = {"matmul", "1", 1, 100, 0, -1, -1};
	const struct told second[] = {
		{"matmul", "1", 1, 110, 1, 50, 50}, {"matmul", "1.1", 64, -1, 1, 50, 50}};
	tell(&r.first, &first, 1);
	tell(&r.second, second, 2);
	ck_assert_int_eq(combine(&r, 0), 0);
	ck_assert_uint_eq(r.both.n_rows, 1);
	ck_assert_uint_eq(r.n_different, 0);
	clear(&r);
}

TEST(a_loop_inside_that_both_runs_count_is_combined)
{
	struct runs r = {0};
	const struct told first[] = {
		{"jumps", "1.1", 5, 50, -1, 7, 7}, {"a", "1", 1, 9, 0, -1, -1}};
	const struct told second[] = {{"jumps", "1.1", 5, 50, -1, 7, 7}, {"a", "1", 1, 9, 1, 1, 1}};
	tell(&r.first, first, 2);
	tell(&r.second, second, 2);
	ck_assert_int_eq(combine(&r, 0), 0);
	ck_assert_uint_eq(r.both.n_rows, 2);
	ck_assert_uint_eq(r.n_different, 0);
	clear(&r);
}

TEST(a_program_of_one_body_is_told_apart)
{
	struct runs r = {0};
	const struct told both = {"triad", "1", 10, 1000, -1, 400, 800};
	tell(&r.first, &both, 1);
	tell(&r.second, &both, 1);
	ck_assert_int_eq(combine(&r, 0), TWO_PHASE_ONE_BODY);
	ck_assert_uint_eq(r.both.n_rows, 0);
	clear(&r);
}

TEST(answers_without_rows_are_of_no_program_of_two_bodies)
{
	struct runs r = {0};
	tell(&r.first, NULL, 0);
	tell(&r.second, NULL, 0);
	ck_assert_int_eq(combine(&r, 0), TWO_PHASE_ONE_BODY);
	clear(&r);
}

TEST(answers_that_lack_entries_are_refused)
{
	struct runs r = {0};
	add_columns(&r.first, names, 2);
	add_columns(&r.second, names, 2);
	ck_assert_int_eq(combine(&r, 0), REPLY_MALFORMED);
	clear(&r);
}

TEST(answers_of_different_columns_are_refused)
{
	struct runs r = {0};
	add_columns(&r.first, names + 1, N_NAMES - 1);
	add_columns(&r.second, names, N_NAMES);
	ck_assert_int_eq(combine(&r, 0), REPLY_MALFORMED);
	clear(&r);
}

TEST(a_limit_cuts_rows_and_not_what_differs)
{
	struct runs r = {0};
	const struct told first[] = {{"a", "1", 1, 10, 0, -1, -1}, {"b", "1", 1, 20, 0, -1, -1}};
	const struct told second[] = {{"a", "1", 2, 10, 1, 5, 5}, {"b", "1", 1, 20, 1, 5, 5}};
	tell(&r.first, first, 2);
	tell(&r.second, second, 2);
	ck_assert_int_eq(combine(&r, 1), 0);
	ck_assert_uint_eq(r.both.n_rows, 1);
	ck_assert_str_eq(reply_text(&r.both, 0, 0), "b"); /* the longer time */
	ck_assert_uint_eq(r.n_different, 1);
	clear(&r);
}

TEST(without_time_there_is_no_rate)
{
	struct runs r = {0};
	const struct told first = {"triad", "1", 10, -1, 0, -1, -1};
	const struct told second = {"triad", "1", 10, 1100, 10, 4000, 8000};
	tell(&r.first, &first, 1);
	tell(&r.second, &second, 1);
	ck_assert_int_eq(combine(&r, 0), 0);
	ck_assert(isnan(number_of(&r.both, 0, "gops")));
	ck_assert(isnan(number_of(&r.both, 0, "cost_measured")));
	ck_assert_double_eq(number_of(&r.both, 0, "ops"), 4000);
	clear(&r);
}
