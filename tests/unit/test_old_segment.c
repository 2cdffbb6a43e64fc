/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Files of the format's version 1, whose tables of loops had fewer columns and no rows: they are
 * read, rolled up and added to as if they were of today. And files that only say they are old.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/query/roofline.h"
#include "daemon/store/rollup.h"
#include "tests/unit/stored.h"

static const char schema_1[] =
#include "daemon/store/schema_1.sql.inc"
	;

static struct stored old, new;
static struct loop_sites sites;
static struct store_error error;
static struct segment_error broken;
static char target[192];

static void change(const char *path, const char *sql)
{
	sqlite3 *db;
	char *message = NULL;
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	ck_assert_int_ge(trailer_remove(path), 0);
	ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s", message);
	sqlite3_close(db);
}

static void make_old(const char *path)
{
	change(path, schema_1);
	change(path, "PRAGMA user_version=1");
}

/* A process with a sample a minute; in the new one it counts a loop, too. */
static void make(struct stored *s, bool loops)
{
	stored_begin_clock(s);
	struct task *task = stored_task(s, 100, 100, "prog");
	struct frame *frame = stored_function(s, "/bin/prog", "walk");
	const struct loop_site_key key = {.kind = LOOP_SITE_LOOP,
		.line = 10,
		.subprogram = "walk",
		.source = "a.c",
		.nest = "1",
		.inlined_at = ""};
	const struct loop_site_more more = {.line_last = 20};
	struct loop_site *site;
	ck_assert_int_eq(loop_site_get(&sites, &key, NULL, &more, &site), 0);
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t value[N_LOOP_VALUES] = {0};
		value[LOOP_VALUE(LOOP_ITERATIONS, false)] = 7;
		const struct loop_counts c = {.site = site, .value = value};
		stored_add(s, &(struct stored_sample){.task = task, .frame = {frame}});
		if (loops)
			ck_assert_int_eq(loop_window_add(&s->window.loops, &sites, task, &c), 0);
		ck_assert_int_eq(stored_flush(s, i * 60000000000u, (i + 1) * 60000000000u), 0);
	}
	loop_site_unref(&sites, site);
	sqlite3_close(stored_seal(s));
	s->db = NULL;
}

static void begin(void)
{
	make(&old, false);
	make(&new, true);
	make_old(old.path);
	/* a roll-up takes each file once, by its name */
	char name[sizeof new.path];
	snprintf(name, sizeof name, "%s/new", new.folder);
	ck_assert_int_eq(rename(new.path, name), 0);
	memcpy(new.path, name, sizeof name);
	snprintf(target, sizeof target, "%s/target", new.folder);
}

static void end(void)
{
	loop_window_clear(&old.window.loops);
	loop_window_clear(&new.window.loops);
	stored_end(&old);
	stored_end(&new);
	memset(&old, 0, sizeof old);
	memset(&new, 0, sizeof new);
	loop_sites_clear(&sites);
}

static int64_t number(const char *path, const char *sql)
{
	sqlite3 *db;
	ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
	int64_t n = stored_number(db, sql);
	sqlite3_close(db);
	return n;
}

static void roll(const char *path, enum tier tier)
{
	int r = rollup_add(path, target, tier, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
}

static int columns(void *userdata, const struct answer_column *c, size_t n)
{
	(void)userdata, (void)c, (void)n;
	return 0;
}

static int row(void *userdata, const struct answer_value *v, size_t n)
{
	unsigned *n_rows = userdata;
	ck_assert_uint_gt(n, 7);
	ck_assert_str_eq(v[0].text, "walk");
	ck_assert_int_eq(v[7].integer, 21); /* iterations */
	++*n_rows;
	return 0;
}

static int no_loss(void *userdata, const struct answer_provenance *p)
{
	(void)userdata;
	for (size_t i = 0; i < p->n_notes; i++)
		ck_assert_msg(!strstr(p->note[i], "damaged"), "%s", p->note[i]);
	return 0;
}

START_TEST(an_old_file_is_opened_as_it_is)
{
	sqlite3 *db;
	ck_assert_msg(segment_open(old.path, &db, &broken) == 0, "%s", broken.text);
	ck_assert_uint_eq(segment_version(db), 1);
	sqlite3_close(db);
	ck_assert_msg(segment_open_live(old.path, &db, &broken) == 0, "%s", broken.text);
	sqlite3_close(db);
}
END_TEST

START_TEST(questions_over_old_and_new_files_tell_what_the_new_ones_have)
{
	struct query_source source[] = {{.path = old.path}, {.path = new.path}};
	const struct roofline_question question = {.by = ROOFLINE_LOOP};
	struct query_error failure = {"", "", 0};
	for (size_t first = 0; first < 2; first++) {
		unsigned n_rows = 0;
		const struct answer answer = {columns, row, no_loss, &n_rows};
		struct query_source order[] = {source[first], source[1 - first]};
		int r = query_store_roofline(order, 2, &question, &answer, &failure);
		ck_assert_msg(r == 0, "%s", failure.text);
		ck_assert_uint_eq(n_rows, 1);
	}
}
END_TEST

START_TEST(an_old_file_is_rolled_up)
{
	static const enum tier tiers[] = {TIER_MINUTE, TIER_HOUR};
	for (size_t i = 0; i < 2; i++) {
		roll(old.path, tiers[i]);
		roll(new.path, tiers[i]);
		ck_assert_int_eq(number(target, "SELECT sum(count) FROM sample"), 6);
		ck_assert_int_eq(number(target, "SELECT sum(value) FROM loop_count"), 21);
		unlink(target);
	}
}
END_TEST

START_TEST(an_old_roll_up_takes_new_files)
{
	roll(old.path, TIER_MINUTE);
	make_old(target);
	roll(new.path, TIER_MINUTE);
	ck_assert_int_eq(number(target, "PRAGMA user_version"), SEGMENT_VERSION);
	ck_assert_int_eq(number(target, "SELECT sum(count) FROM sample"), 6);
	ck_assert_int_eq(number(target, "SELECT sum(value) FROM loop_count"), 21);
	ck_assert_int_eq(rollup_seal(target, &error), 0);
	sqlite3 *db;
	ck_assert_msg(segment_open(target, &db, &broken) == 0, "%s", broken.text);
	sqlite3_close(db);
	unlink(target);
}
END_TEST

START_TEST(an_old_roll_up_with_loops_is_no_file_of_ours)
{
	roll(old.path, TIER_MINUTE);
	make_old(target);
	change(target, "INSERT INTO loop_count VALUES (1, 1, 1, 1, 1)");
	ck_assert_int_eq(rollup_add(new.path, target, TIER_MINUTE, &error), ROLLUP_TARGET_BROKEN);
	ck_assert_int_eq(number(target, "PRAGMA user_version"), 1);
	unlink(target);
}
END_TEST

static void not_ours(const char *path)
{
	sqlite3 *db;
	ck_assert_int_eq(segment_open(path, &db, &broken), SEGMENT_CORRUPT);
	ck_assert_int_eq(rollup_add(path, target, TIER_MINUTE, &error), ROLLUP_SOURCE_BROKEN);
	unlink(target);
}

START_TEST(tables_and_version_must_fit)
{
	change(old.path, "PRAGMA user_version=2");
	not_ours(old.path);
	change(new.path, "PRAGMA user_version=1");
	not_ours(new.path);
	change(old.path, "PRAGMA user_version=0");
	not_ours(old.path);
	change(old.path, "PRAGMA user_version=1; DROP TABLE loop_metric");
	not_ours(old.path);
	change(new.path, "PRAGMA user_version=3");
	not_ours(new.path); /* it would have a seal */
	change(new.path, "PRAGMA user_version=4");
	sqlite3 *db;
	ck_assert_int_eq(segment_open(new.path, &db, &broken), SEGMENT_NEWER);
}
END_TEST

int main(void)
{
	TCase *c = tcase_create("old_segment");
	tcase_add_checked_fixture(c, begin, end);
	tcase_add_test(c, an_old_file_is_opened_as_it_is);
	tcase_add_test(c, questions_over_old_and_new_files_tell_what_the_new_ones_have);
	tcase_add_test(c, an_old_file_is_rolled_up);
	tcase_add_test(c, an_old_roll_up_takes_new_files);
	tcase_add_test(c, an_old_roll_up_with_loops_is_no_file_of_ours);
	tcase_add_test(c, tables_and_version_must_fit);
	Suite *s = suite_create("old_segment");
	suite_add_tcase(s, c);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	int n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
