/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Segments whose rows lie: every query answers or says that the file is damaged. */

#include <unistd.h>

#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct stored_answer a;

static void end(void)
{
	if (*s.folder)
		stored_end(&s);
	memset(&s, 0, sizeof(s));
	memset(&a, 0, sizeof(a));
}

EACH_TEST(.end = end, .seconds = 60);

/* A sealed program, changed behind our back, and asked about in every way. */
static int lie(const char *sql)
{
	char *message = NULL;
	sqlite3 *db;
	end();
	stored_begin_group(&s);
	struct task *t = stored_program(&s);
	stored_add(&s, &(struct stored_sample){.task = t,
			       .hart = 1,
			       .n_reads = 2,
			       .read = {{1, 100, 10, 10}, {2, 50, 10, 10}}});
	sqlite3_close(stored_seal(&s));
	ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
	ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s", message);
	sqlite3_close(db);
	ck_assert_int_eq(trailer_write_path(s.path), 0); /* the seal is right */
	struct segment_error error;
	ck_assert_int_eq(segment_open(s.path, &s.db, &error), 0);

	int worst = 0;
	for (int by = 0; by < N_QUERY_BY; by++) {
		memset(&a, 0, sizeof(a));
		int r = stored_hotspots(s.db, query_by_name((enum query_by)by), NULL, &a);
		ck_assert(r == 0 || r == QUERY_FAILED);
		worst = r > worst ? r : worst;
	}
	memset(&a, 0, sizeof(a));
	int r = stored_flamegraph(s.db, NULL, &a);
	ck_assert(r == 0 || r == QUERY_FAILED);
	if (r == QUERY_FAILED)
		ck_assert_ptr_nonnull(strstr(a.error.text, s.path));
	return r > worst ? r : worst;
}

TEST(stack_before_its_caller_is_damage)
{
	ck_assert_int_eq(lie("UPDATE stack SET parent = id"), QUERY_FAILED);
	ck_assert_int_eq(lie("UPDATE stack SET parent = 1000000000"), QUERY_FAILED);
	ck_assert_int_eq(lie("UPDATE stack SET parent = -1"), QUERY_FAILED);
	ck_assert_int_eq(a.error.kind, MPERF__FAILURE_KIND__FAILURE_BROKEN);
}

TEST(ids_beyond_all_bounds_are_damage)
{
	ck_assert_int_eq(lie("INSERT INTO stack VALUES (9000000000000000000, 0, 1)"), QUERY_FAILED);
	ck_assert_int_eq(
		lie("INSERT INTO task SELECT 1 << 40, pid, tid, process, parent, start_ns, "
		    "end_ns, comm, exe, argv, cgroup, uid, kernel_thread, account FROM task LIMIT "
		    "1"),
		QUERY_FAILED);
	ck_assert_int_eq(
		lie("INSERT INTO event VALUES (300, 'x', 0, 0, 0, 0, 0, 'x', 'ns')"), QUERY_FAILED);
}

TEST(ids_that_lead_nowhere_are_unknown)
{
	ck_assert_int_eq(lie("UPDATE sample SET task = 99, stack = 99, event = 99, rung = 99, "
			     "hart = 99999, window = 99"),
		0);
	ck_assert_int_eq(lie("UPDATE sample SET task = -1, stack = -1, event = -1, rung = -1, "
			     "hart = -1, window = -1"),
		0);
	ck_assert_int_eq(lie("UPDATE stack SET frame = 99; UPDATE frame SET file = 99; "
			     "UPDATE place SET function = 99, source = -5, line = -1"),
		0);
	ck_assert_int_eq(lie("UPDATE task SET process = 99, cgroup = 99"), 0);
	ck_assert_int_eq(lie("DELETE FROM stack; DELETE FROM frame; DELETE FROM file"), 0);
	ck_assert_int_eq(lie("DELETE FROM task; DELETE FROM event; DELETE FROM hart; "
			     "DELETE FROM window"),
		0);
}

TEST(figures_that_cannot_be_are_no_trouble)
{
	ck_assert_int_eq(lie("UPDATE sample SET count = 9223372036854775807, "
			     "weight_ns = 9223372036854775807"),
		0);
	ck_assert_int_eq(lie("UPDATE sample SET count = -5, weight_ns = -9223372036854775807"), 0);
	ck_assert_int_eq(
		lie("UPDATE reading SET value = 9223372036854775807, enabled_ns = 1 << 62, "
		    "running_ns = 1"),
		0);
	ck_assert_int_eq(lie("UPDATE reading SET value = -1, running_ns = -7"), 0);
	ck_assert_int_eq(lie("UPDATE window SET start_ns = -9223372036854775807, "
			     "end_ns = 9223372036854775807"),
		0);
	ck_assert_int_eq(lie("UPDATE meta SET value = 'x' WHERE key != 'sealed'"), 0);
	ck_assert_int_eq(lie("UPDATE loop_site SET kind = 1; INSERT INTO loss VALUES "
			     "(1, -1, 'a', 1), (1, 0, 'b', -1), (1, 0, '', 1 << 62)"),
		0);
}

TEST(values_of_other_types_are_no_trouble)
{
	ck_assert_int_eq(lie("UPDATE function SET name = x'00ff00'; UPDATE file SET path = x''; "
			     "UPDATE task SET comm = x'1b5b', argv = 'text'"),
		0);
	ck_assert_int_eq(lie("UPDATE sample SET count = 'many', weight_ns = 1.5, task = 'x'"), 0);
	ck_assert_int_eq(lie("UPDATE task SET argv = zeroblob(100000)"), 0);
	ck_assert_int_eq(lie("UPDATE function SET name = printf('%.*c', 900000, 'x')"), 0);
}

TEST(value_longer_than_any_of_ours_is_damage)
{
	ck_assert_int_eq(lie("UPDATE file SET path = printf('%.*c', 3000000, 'x')"), QUERY_FAILED);
	ck_assert_ptr_nonnull(strstr(a.error.text, "too big"));
}
