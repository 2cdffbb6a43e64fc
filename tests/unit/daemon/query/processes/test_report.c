/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Reports on segments made by hand: which processes are in them, whose they are, and what they spent. */

#include "daemon/query/processes/report.h"

#include <string.h>

#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define JOB "{\"job\":\"build\"}"

static struct stored s;
static struct query_error error;
static struct query_filter filter;
static struct report_of of;
static char told[8192]; /* a line for each row: table, and the cells asked for */
static const char *table;
static int column[4];

static void end(void)
{
	stored_end(&s);
	memset(&s, 0, sizeof(s));
	filter = (struct query_filter){0};
}

EACH_TEST(.end = end, .seconds = 60);

/* --- making ----------------------------------------------------------------------------------- */

static void begin(void)
{
	stored_begin_clock(&s);
}

/* A process from that second to that one, 0: it lives on. It ended in this window. */
static struct task *process(
	pid_t pid, struct task *parent, uint64_t from_s, uint64_t to_s, const char *comm)
{
	struct task *t;
	ck_assert_int_eq(task_add(&s.tasks, pid, pid, from_s * SECOND, &t), 0);
	t->process = t;
	t->uid = t->account = 1000;
	t->parent = parent;
	task_set_comm(t, comm);
	stored_label(&s, t, JOB);
	t->end_ns = to_s * SECOND;
	if (to_s)
		ck_assert_int_eq(window_add_ended(&s.window, t), 0);
	return t;
}

static void worked(struct task *t, int hart, uint64_t seconds)
{
	struct frame *f = stored_function(&s, "/bin/work", "work");
	stored_add(&s, &(struct stored_sample){.task = t,
			       .hart = hart,
			       .count = seconds * 10,
			       .weight_ns = seconds * SECOND,
			       .frame = {f}});
}

/* --- asking ----------------------------------------------------------------------------------- */

static int take_table(void *u, const char *name)
{
	(void)u;
	table = name;
	return 0;
}

static int take_columns(void *u, const struct answer_column *c, size_t n)
{
	static const char *const wanted[] = {"comm", "start_ns", "ns", "chain_ns"};
	(void)u;
	for (size_t k = 0; k < 4; k++) {
		column[k] = -1;
		for (size_t i = 0; i < n; i++)
			if (strcmp(c[i].name, wanted[k]) == 0)
				column[k] = (int)i;
	}
	return 0;
}

/* "chain make 0 3": name, and times in seconds */
static int take_row(void *u, const struct answer_value *v, size_t n)
{
	size_t at = strlen(told);
	(void)u;
	(void)n;
	at += (size_t)snprintf(told + at, sizeof(told) - at, "%s%s", at ? "; " : "", table);
	for (size_t k = 0; k < 4; k++) {
		const struct answer_value *cell = column[k] < 0 ? NULL : &v[column[k]];
		if (cell && cell->kind == ANSWER_TEXT)
			at += (size_t)snprintf(told + at, sizeof(told) - at, " %s", cell->text);
		else if (cell)
			at += (size_t)snprintf(told + at, sizeof(told) - at, " %g",
				(double)cell->integer / (double)SECOND);
	}
	return 0;
}

static int take_provenance(void *u, const struct answer_provenance *p)
{
	(void)u;
	for (size_t i = 0; i < p->n_notes; i++)
		if (strstr(p->note[i], "of its processes have") || strstr(p->note[i], "impossible"))
			snprintf(told + strlen(told), sizeof(told) - strlen(told), "; note %s",
				p->note[i]);
	return 0;
}

static int ask(void)
{
	const struct query_question question = {.filter = &filter};
	struct query_source source = {.path = s.path};
	const struct answer to = {take_columns, take_row, take_provenance, NULL, take_table};
	of.says = "build";
	*told = '\0';
	return query_report(&source, 1, &question, &of, &to, &error);
}

/* The filter of a job. */
static void ask_job(void)
{
	static const struct query_job job = {1000, JOB};
	filter.job = &job;
	filter.n_jobs = 1;
}

static void seal(uint64_t until_s)
{
	ck_assert_int_eq(stored_flush(&s, 1 * SECOND, until_s * SECOND), 0);
	stored_seal(&s);
	ask_job();
	of = (struct report_of){.begin_boot_ns = 1 * SECOND};
}

/* make starts cc, which works, and ld */
static void store_build(void)
{
	begin();
	struct task *make = process(10, NULL, 1, 11, "make");
	struct task *cc = process(11, make, 2, 7, "cc");
	process(12, make, 3, 5, "cc"); /* without a sample */
	process(13, make, 7, 10, "ld");
	worked(cc, 0, 4);
}

TEST(processes_without_samples_are_there)
{
	store_build();
	seal(20);
	ck_assert_int_eq(ask(), 0);
	ck_assert_str_eq(told,
		"run 10; chain make 0 1; chain cc 1 5; chain ld 6 3; chain make 9 1; "
		"program cc 5; program ld 3; program make 2");
}

TEST(of_another_user_nothing_is_told)
{
	store_build();
	seal(20);
	filter.only_uid = true;
	filter.uid = 1001;
	ck_assert_int_eq(ask(), QUERY_FAILED);
	ck_assert_str_eq(told, "");
	ck_assert_msg(strstr(error.text, "no processes"), "%s", error.text);
}

TEST(a_parent_of_another_user_gives_no_name)
{
	begin();
	struct task *root = process(10, NULL, 1, 11, "secret");
	root->uid = 0;
	struct task *cc = process(11, root, 2, 7, "cc");
	process(12, root, 7, 9, "ld");
	worked(cc, 0, 4);
	seal(20);
	filter.only_uid = true;
	filter.uid = 1000;
	ck_assert_int_eq(ask(), 0);
	ck_assert_msg(!strstr(told, "secret"), "%s", told);
	ck_assert_str_eq(told,
		"run 8; chain (none of its processes) 0 1; chain cc 1 5; chain ld 6 2; "
		"program cc 5; program ld 2; program (none of its processes) 1");
}

TEST(an_exec_gives_the_last_name)
{
	begin();
	struct task *sh = process(10, NULL, 1, 11, "sh"), *forked = process(11, sh, 2, 3, "sh"),
		    *after;
	worked(forked, 0, 1);
	ck_assert_int_eq(task_add(&s.tasks, 11, 11, 2 * SECOND, &after), 0);
	after->process = after;
	after->uid = after->account = 1000;
	after->parent = sh;
	after->end_ns = 10 * SECOND;
	task_set_comm(after, "cc");
	stored_label(&s, after, JOB);
	ck_assert_int_eq(window_add_ended(&s.window, after), 0);
	seal(20);
	ck_assert_int_eq(ask(), 0);
	ck_assert_str_eq(told,
		"run 10; chain sh 0 1; chain cc 1 8; chain sh 9 1; program cc 8; program sh 2");
}

TEST(what_runs_on_lasts_until_now_and_is_said)
{
	begin();
	struct task *sh = process(10, NULL, 1, 0, "sh");
	worked(process(11, sh, 2, 0, "cc"), 0, 1);
	worked(sh, 1, 1);
	seal(20);
	of.unfinished = true;
	ck_assert_int_eq(ask(), 0);
	ck_assert_msg(strstr(told, "chain sh 0 1; chain cc 1 18;") != NULL, "%s", told);
	ck_assert_msg(
		strstr(told, "note 2 of its processes have no known end") != NULL, "%s", told);
}

TEST(a_shell_counts_from_the_begin_of_its_job)
{
	begin();
	struct task *sh = process(10, NULL, 1, 15, "sh");
	worked(process(11, sh, 8, 12, "cc"), 0, 2);
	seal(20);
	of.begin_boot_ns = 7 * SECOND;
	ck_assert_int_eq(ask(), 0);
	ck_assert_msg(strncmp(told, "run 8; chain sh 0 1; chain cc 1 4; chain sh 5 3;", 48) == 0,
		"%s", told);
}

TEST(a_recording_of_everything_needs_a_job)
{
	store_build();
	seal(20);
	filter.n_jobs = 0;
	of = (struct report_of){.is_recording = true};
	ck_assert_int_eq(ask(), QUERY_FAILED);
	ck_assert_msg(strstr(error.text, "whole system") != NULL, "%s", error.text);
}

/* --- forged files ----------------------------------------------------------------------------- */

static void forge(const char *sql)
{
	store_build();
	ck_assert_int_eq(stored_flush(&s, 1 * SECOND, 20 * SECOND), 0);
	ck_assert_int_eq(sqlite3_exec(s.segment->db, sql, NULL, NULL, NULL), SQLITE_OK);
	stored_seal(&s);
	ask_job();
	of = (struct report_of){.begin_boot_ns = 1 * SECOND};
}

TEST(parents_in_a_circle_end)
{
	forge("UPDATE task SET parent = CASE id WHEN 2 THEN 3 WHEN 3 THEN 2 ELSE parent END, "
	      "start_ns = 2000000000 "
	      "WHERE id IN (2, 3)");
	ck_assert_int_eq(ask(), 0);
	ck_assert_msg(strstr(told, "note 2 processes with impossible times are left out") != NULL,
		"%s", told);
}

TEST(impossible_times_and_parents_are_survived)
{
	static const char *const sql[] = {"UPDATE task SET start_ns = -9223372036854775807 - 1",
		"UPDATE task SET start_ns = 9223372036854775807",
		"UPDATE task SET end_ns = 9223372036854775807",
		"UPDATE task SET end_ns = -9223372036854775807 - 1",
		"UPDATE task SET end_ns = start_ns - 1000000000", "UPDATE task SET parent = id",
		"UPDATE task SET parent = 9223372036854775807",
		"UPDATE task SET pid = 10, start_ns = 1000000000",
		"UPDATE task SET pid = -5 WHERE pid = 11",
		"UPDATE window SET start_ns = -9223372036854775807, end_ns = 9223372036854775807",
		"UPDATE window SET start_ns = 9223372036854775807, end_ns = -9223372036854775807"};
	for (size_t i = 0; i < sizeof(sql) / sizeof(*sql); i++) {
		forge(sql[i]);
		const int r = ask();
		ck_assert_msg(r == 0 || (r == QUERY_FAILED && *error.text), "%s: %d", sql[i], r);
		end();
	}
}
