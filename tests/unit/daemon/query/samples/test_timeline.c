/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Timelines of segments made by hand: with moments, with seconds, with neither, and forged. */

#include "daemon/query/samples/timeline.h"

#include <math.h>

#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define STRETCHES 64u
#define ROWS 64u

static struct stored s;

/* The last answer. */
static struct {
	char table[24], label[ROWS][32], kind[ROWS][16], cause[ROWS][48], note[2048];
	double begin_ns, every_ns, value[ROWS][STRETCHES], mark_ns[ROWS], mark_count[ROWS];
	size_t n_rows, n_stretches, n_marks;
	struct query_error error;
} a;

static void end(void)
{
	if (*s.folder)
		stored_end(&s);
	memset(&s, 0, sizeof(s));
	memset(&a, 0, sizeof(a));
}

EACH_TEST(.end = end, .seconds = 60);

/* --- asking ----------------------------------------------------------------------------------- */

static int take_table(void *u, const char *name)
{
	(void)u;
	snprintf(a.table, sizeof(a.table), "%s", name);
	return 0;
}

static int take_columns(void *u, const struct answer_column *c, size_t n)
{
	(void)u, (void)c, (void)n;
	return 0;
}

static int take_row(void *u, const struct answer_value *v, size_t n)
{
	(void)u;
	if (strcmp(a.table, "mark") == 0) {
		ck_assert_uint_lt(a.n_marks, ROWS);
		a.mark_ns[a.n_marks] = (double)v[1].integer - (double)s.realtime_ns;
		a.mark_count[a.n_marks] = (double)v[3].integer;
		snprintf(a.cause[a.n_marks++], sizeof(a.cause[0]), "%s", v[4].text);
		return 0;
	}
	ck_assert_uint_lt(a.n_rows, ROWS);
	snprintf(a.label[a.n_rows], sizeof(a.label[0]), "%s", v[0].text);
	snprintf(a.kind[a.n_rows], sizeof(a.kind[0]), "%s", v[1].text);
	a.begin_ns = (double)v[5].integer - (double)s.realtime_ns;
	a.every_ns = (double)v[6].integer;
	const struct answer_series *series = &v[n - 1].series;
	ck_assert_int_eq(v[n - 1].kind, ANSWER_SERIES);
	a.n_stretches = series->n;
	ck_assert_uint_le(series->n, STRETCHES);
	for (size_t i = 0; i < series->n; i++)
		a.value[a.n_rows][i] = (double)series->value[i];
	a.n_rows++;
	return 0;
}

static int take_provenance(void *u, const struct answer_provenance *p)
{
	(void)u;
	for (uint32_t i = 0; i < p->n_notes; i++) {
		strncat(a.note, p->note[i], sizeof(a.note) - strlen(a.note) - 1);
		strncat(a.note, "\n", sizeof(a.note) - strlen(a.note) - 1);
	}
	return 0;
}

static int try(enum query_by by, uint64_t every_ns, struct query_filter filter, uint32_t limit)
{
	const struct answer to = {
		take_columns, take_row, take_provenance, NULL, .table = take_table};
	const struct query_question question = {.by = by, .filter = &filter, .limit = limit};
	const struct timeline_of of = {.every_ns = (int64_t)every_ns, .n_stretches = STRETCHES};
	memset(&a, 0, sizeof(a));
	return query_timeline(&(struct query_source){.db = s.db}, 1, &question, &of, &to, &a.error);
}

static void ask(enum query_by by, uint64_t every_ns)
{
	int r = try(by, every_ns, (struct query_filter){0}, 0);
	ck_assert_msg(r == 0, "%d: %s", r, a.error.text);
}

static const double *row_of(const char *label)
{
	for (size_t i = 0; i < a.n_rows; i++)
		if (strcmp(a.label[i], label) == 0)
			return a.value[i];
	ck_abort_msg("no row %s", label);
}

static void check(const char *label, const double *want, size_t n, double tolerance)
{
	const double *value = row_of(label);
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(fabs(value[i] - want[i]) <= tolerance, "%s[%zu]: %g, not %g", label,
			i, value[i], want[i]);
}
#define CHECK(label, tolerance, ...)                                                               \
	check(label, (const double[]){__VA_ARGS__},                                                \
		sizeof((const double[]){__VA_ARGS__}) / sizeof(double), tolerance)

/* --- segments --------------------------------------------------------------------------------- */

static void run(struct task *t, int hart, uint64_t from_ms, uint64_t to_ms)
{
	for (uint64_t ms = from_ms + 10; ms <= to_ms; ms += 10)
		stored_add(&s,
			&(struct stored_sample){
				.task = t, .hart = hart, .time_ns = ms * MS, .weight_ns = 10 * MS});
}

/* In 8 s: busy on two harts for 2 s, asleep for 2 s, busy on one for 2 s, asleep; beside it one that runs all the time. */
static void phases(bool keeps_moments, bool keeps_seconds)
{
	stored_begin_clock(&s);
	s.window.keeps_moments = keeps_moments;
	s.window.seconds.are_kept = keeps_seconds;
	struct task *busy = stored_task(&s, 100, 100, "phases");
	struct task *other = stored_task(&s, 100, 101, "phases");
	struct task *even = stored_task(&s, 200, 200, "even");
	busy->uid = other->uid = 1000;
	run(busy, 0, 0, 2000);
	run(other, 1, 0, 2000);
	run(busy, 0, 4000, 6000);
	run(even, 2, 0, 8000);
	s.lost[1][LOSS_THROTTLE] = 3;
	s.lost[1][LOSS_ARGV] = 3;
	ck_assert_int_eq(stored_flush(&s, 0, 8 * SECOND), 0);
	stored_seal(&s);
}

TEST(of_a_recording_it_is_of_the_moments)
{
	phases(true, false);
	ask(QUERY_BY_PROCESS, 500 * MS);
	ck_assert_uint_eq(a.n_stretches, 16);
	CHECK("phases", 0.001, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0);
	CHECK("even", 0.001, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
	ck_assert_str_eq(a.note, "");
	ask(QUERY_BY_HART, 1000 * MS);
	CHECK("0", 0.001, 1, 1, 0, 0, 1, 1, 0, 0);
	CHECK("1", 0.001, 1, 1, 0, 0, 0, 0, 0, 0);
}

TEST(of_the_service_it_is_of_the_seconds_in_which_load_changed)
{
	phases(false, true);
	ck_assert_int_eq(stored_number(s.db, "SELECT count(*) FROM moment"), 0);
	ck_assert_int_eq(stored_number(s.db, "SELECT count(*) FROM second WHERE hart >= 0"), 2);
	/* the other one runs evenly */
	ck_assert_int_eq(stored_number(s.db, "SELECT count(*) FROM second WHERE hart < 0"), 1);
	ck_assert_str_eq(
		stored_string(s.db, "SELECT hex(at) FROM second WHERE hart < 0"), "FFFF00008080");
	ask(QUERY_BY_PROCESS, 1000 * MS);
	CHECK("phases", 0.01, 2, 2, 0, 0, 1, 1, 0, 0);
	CHECK("even", 0.01, 1, 1, 1, 1, 1, 1, 1, 1);
	ck_assert_ptr_nonnull(strstr(a.note, "by the second"));
	ask(QUERY_BY_HART, 1000 * MS);
	CHECK("0", 0.01, 1, 1, 0, 0, 1, 1, 0, 0);
	CHECK("1", 0.01, 1, 1, 0, 0, 0, 0, 0, 0);
	CHECK("2", 0.01, 1, 1, 1, 1, 1, 1, 1, 1);
}

TEST(what_is_not_known_is_spread_evenly)
{
	phases(false, false);
	ask(QUERY_BY_PROCESS, 1000 * MS);
	CHECK("phases", 0.001, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75);
}

TEST(a_file_without_the_table_is_read)
{
	phases(false, true);
	sqlite3_close(s.db);
	s.db = NULL;
	ck_assert_int_eq(sqlite3_open(s.path, &s.db), SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(s.db, "DROP TABLE second", NULL, NULL, NULL), SQLITE_OK);
	ask(QUERY_BY_PROCESS, 1000 * MS);
	CHECK("phases", 0.001, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75);
	ck_assert_ptr_nonnull(strstr(a.note, "spread evenly"));
}

TEST(a_stretch_may_be_longer_than_the_whole)
{
	phases(true, false);
	ask(QUERY_BY_PROCESS, 60 * SECOND);
	ck_assert_uint_eq(a.n_stretches, 1);
	CHECK("phases", 0.001, 0.75);
}

TEST(it_chooses_round_stretches)
{
	phases(true, false);
	ask(QUERY_BY_PROCESS, 0);
	ck_assert_double_eq(a.every_ns, 200.0 * MS);
	ck_assert_uint_eq(a.n_stretches, 40);
}

TEST(losses_have_marks_and_what_costs_no_sample_has_none)
{
	phases(true, false);
	ask(QUERY_BY_PROCESS, 0);
	ck_assert_uint_eq(a.n_marks, 1);
	ck_assert_str_eq(a.cause[0], "throttled");
	ck_assert_double_eq(a.mark_count[0], 3);
	ck_assert_double_eq(a.mark_ns[0], 0);
}

TEST(rows_beyond_the_limit_are_one)
{
	phases(true, false);
	ck_assert_int_eq(try(QUERY_BY_PROCESS, 1000 * MS, (struct query_filter){0}, 1), 0);
	ck_assert_uint_eq(a.n_rows, 2);
	ck_assert_str_eq(a.kind[1], "others");
	CHECK("(other processes)", 0.001, 2, 2, 0, 0, 1, 1, 0, 0);
}

/* Of a hart, somebody who sees only some of its processes sees when these ran. */
TEST(a_user_sees_only_the_time_of_own_processes)
{
	phases(false, true);
	const struct query_filter own = {.only_uid = true, .uid = 1000};
	ck_assert_int_eq(try(QUERY_BY_HART, 1000 * MS, own, 0), 0);
	ck_assert_uint_eq(a.n_rows, 2);
	/* the process's seconds, on whichever hart */
	CHECK("0", 0.01, 4 * 2 / 6.0, 4 * 2 / 6.0, 0, 0, 4 / 6.0, 4 / 6.0, 0, 0);
	ck_assert_int_eq(try(QUERY_BY_PROCESS, 1000 * MS,
				 (struct query_filter){.only_uid = true, .uid = 1}, 0),
		0);
	ck_assert_uint_eq(a.n_rows, 0);
}

TEST(time_outside_the_question_is_left_out)
{
	phases(true, false);
	const struct query_filter some = {.since_ns = (int64_t)(s.realtime_ns + 1000 * MS),
		.until_ns = (int64_t)(s.realtime_ns + 5000 * MS)};
	ck_assert_int_eq(try(QUERY_BY_PROCESS, 1000 * MS, some, 0), 0);
	ck_assert_uint_eq(a.n_stretches, 4);
	ck_assert_double_eq(a.begin_ns, 1000.0 * MS);
	CHECK("phases", 0.001, 2, 0, 0, 1);
}

TEST(too_many_stretches_are_refused)
{
	phases(true, false);
	ck_assert_int_eq(try(QUERY_BY_PROCESS, 1000, (struct query_filter){0}, 0), QUERY_FAILED);
	ck_assert_ptr_nonnull(strstr(a.error.text, "too many"));
}

/* --- what a window may cost ------------------------------------------------------------------- */

TEST(processes_beyond_the_room_are_counted)
{
	enum { N = 40 };
	stored_begin_clock(&s);
	s.window.seconds.are_kept = true;
	for (int i = 0; i < N; i++) {
		struct task *t = stored_task(&s, 100 + i, 100 + i, "short");
		run(t, i % 4, (uint64_t)i * 100, (uint64_t)i * 100 + 200 + (uint64_t)i * 10);
	}
	ck_assert_int_eq(stored_flush(&s, 0, 8 * SECOND), 0);
	stored_seal(&s);
	const int64_t n =
		stored_number(s.db, "SELECT count(*) FROM second WHERE hart < 0 AND task > 0");
	const int64_t left_out =
		stored_number(s.db, "SELECT at FROM second WHERE hart = -1 AND task = 0");
	ck_assert_int_gt(n, 0);
	ck_assert_int_lt(n, N);
	ck_assert_int_eq(n + left_out, N);
	ask(QUERY_BY_PROCESS, 1000 * MS);
	ck_assert_ptr_nonnull(strstr(a.note, "There was no room"));
}

TEST(a_window_of_a_second_has_no_seconds)
{
	stored_begin_clock(&s);
	s.window.seconds.are_kept = true;
	run(stored_task(&s, 100, 100, "short"), 0, 0, 300);
	ck_assert_int_eq(stored_flush(&s, 0, SECOND), 0);
	stored_seal(&s);
	ck_assert_int_eq(stored_number(s.db, "SELECT count(*) FROM second"), 0);
}

/* --- forged ----------------------------------------------------------------------------------- */

static void forge(const char *sql)
{
	phases(false, true);
	sqlite3_close(s.db);
	s.db = NULL;
	ck_assert_int_eq(sqlite3_open(s.path, &s.db), SQLITE_OK);
	char *error = NULL;
	int r = sqlite3_exec(s.db, sql, NULL, NULL, &error);
	ck_assert_msg(r == SQLITE_OK, "%s: %s", sql, error);
}

TEST(forged_seconds_read_as_none)
{
	static const char *const sql[] = {
		"UPDATE second SET at = x''",
		"UPDATE second SET at = zeroblob(8)",
		"UPDATE second SET at = 'text'",
		"UPDATE second SET at = zeroblob(100000)",
		"UPDATE second SET at = 9223372036854775807",
		"UPDATE second SET task = task + 1000000",
		"UPDATE second SET window = 7",
		"UPDATE second SET hart = 100000 + hart",
		"UPDATE second SET hart = -7 - hart",
	};
	for (size_t i = 0; i < sizeof(sql) / sizeof(*sql); i++) {
		forge(sql[i]);
		ask(QUERY_BY_PROCESS, 1000 * MS);
		CHECK("phases", 0.01, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75);
		ask(QUERY_BY_HART, 1000 * MS);
		CHECK("1", 0.01, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25);
		end();
	}
}

TEST(seconds_beyond_the_window_are_its_end)
{
	forge("UPDATE second SET at = "
	      "x'0000000000000000000000000000000000000000000000000000000000000000ff'");
	ask(QUERY_BY_PROCESS, 500 * MS);
	CHECK("even", 0.01, 1, 1, 1, 1, 1, 1, 1, 1);
	CHECK("phases", 0.01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12);
}

TEST(windows_with_impossible_times_have_no_time)
{
	forge("UPDATE window SET start_ns = -9223372036854775807, end_ns = 9223372036854775807");
	ask(QUERY_BY_PROCESS, 1000 * MS);
	ck_assert_uint_le(a.n_stretches, 1);
	end();
	forge("UPDATE window SET realtime_ns = 9223372036854775807");
	ask(QUERY_BY_PROCESS, 1000 * MS);
	end();
	forge("UPDATE window SET end_ns = 9223372036854775806 - realtime_ns");
	ck_assert_int_eq(
		try(QUERY_BY_PROCESS, 1000 * MS, (struct query_filter){0}, 0), QUERY_FAILED);
	end();
	forge("UPDATE window SET end_ns = 9223372036854775806 - realtime_ns");
	ask(QUERY_BY_HART, 0);
}
