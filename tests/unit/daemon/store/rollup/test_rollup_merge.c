/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What merge.sql makes of values that we never wrote, and that it makes the same of the same. */

#include <unistd.h>

#include "daemon/store/rollup/rollup.h"
#include "daemon/store/segment/trailer.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct store_error error;
static char target[192];
static sqlite3 *rolled;

/* A process and its child, in windows of five seconds over two minutes. */
static void begin(void)
{
	stored_begin_group(&s);
	s.realtime_ns = 277777ull * 3600 * SECOND;
	struct task *one = stored_task(&s, 100, 100, "one"),
		    *two = stored_task(&s, 200, 200, "two");
	struct frame *main_ = stored_function(&s, "/bin/one", "main");
	struct frame *hot = stored_function(&s, "/bin/one", "hot");
	two->parent = one;
	for (uint64_t i = 0; i < 24; i++) {
		stored_add(&s, &(struct stored_sample){.task = i % 2 ? one : two,
				       .hart = (int)i % 3,
				       .frame = {hot, main_},
				       .n_reads = 1,
				       .read = {{1, 100 + i, 1000, 500}}});
		s.lost[1][LOSS_RING]++;
		ck_assert_int_eq(stored_flush(&s, i * 5 * SECOND, (i + 1) * 5 * SECOND), 0);
	}
	stored_seal(&s);
	snprintf(target, sizeof(target), "%s/target", s.folder);
}

static void end(void)
{
	sqlite3_close(rolled);
	rolled = NULL;
	stored_end(&s);
}

EACH_TEST(.begin = begin, .end = end, .seconds = 60);

/* Change the sealed segment with SQL, and seal it again. */
static void change(const char *sql)
{
	sqlite3 *db;
	char *why = NULL;
	ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
	ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s", why);
	sqlite3_close(db);
	ck_assert_int_eq(trailer_write_path(s.path), 0);
}

/* The same, although the schema forbids it, as a hostile file may have it. */
static void change_freely(const char *sql)
{
	change("PRAGMA writable_schema=ON;"
	       "UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '/*NN*/')");
	change(sql);
	change("PRAGMA writable_schema=ON;"
	       "UPDATE sqlite_schema SET sql = replace(sql, '/*NN*/', 'NOT NULL')");
}

static void roll(enum tier tier)
{
	sqlite3_close(rolled);
	unlink(target);
	int r = rollup_add(s.path, target, tier, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	ck_assert_int_eq(sqlite3_open(target, &rolled), SQLITE_OK);
}

static size_t read_target(char *bytes, size_t size)
{
	FILE *f = fopen(target, "r");
	ck_assert_ptr_nonnull(f);
	size_t n = fread(bytes, 1, size, f);
	fclose(f);
	return n;
}

TEST(the_same_source_makes_the_same_file)
{
	static char first[1u << 20], second[1u << 20];
	for (enum tier tier = TIER_MINUTE; tier <= TIER_HOUR; tier++) {
		roll(tier);
		size_t n = read_target(first, sizeof(first));
		roll(tier);
		ck_assert_uint_eq(read_target(second, sizeof(second)), n);
		ck_assert_int_eq(memcmp(first, second, n), 0);
	}
}

/* Numbers are numbers, and texts texts, whatever a source has in their place. */
TEST(values_of_other_types_are_made_what_they_should_be)
{
	change("UPDATE sample SET count = 'many', weight_ns = 1.5 WHERE id = 1;"
	       "UPDATE reading SET value = 2.5, enabled_ns = 'x', running_ns = 'y' WHERE sample = "
	       "2;"
	       "UPDATE task SET comm = x'61620063' WHERE id = 1;"
	       "UPDATE function SET name = x'66ff006e';"
	       "UPDATE loss SET cause = x'6100', count = '3x'");
	for (enum tier tier = TIER_MINUTE; tier <= TIER_HOUR; tier++) {
		roll(tier);
		static const char *const none[] = {
			"SELECT count(*) FROM sample WHERE typeof(count) || typeof(weight_ns) || "
			"typeof(truncated) || typeof(uncounted) <> 'integerintegerintegerinteger'",
			"SELECT count(*) FROM reading WHERE typeof(value) <> 'integer' OR "
			"typeof(enabled_ns) NOT IN ('integer', 'null')",
			"SELECT count(*) FROM task WHERE typeof(comm) <> 'text' OR instr(comm, "
			"char(0))",
			"SELECT count(*) FROM function WHERE typeof(name) <> 'text' OR "
			"length(name) <> 2",
			"SELECT count(*) FROM loss WHERE typeof(cause) <> 'text' OR typeof(count) "
			"<> "
			"'integer'"};
		for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
			ck_assert_msg(stored_number(rolled, none[i]) == 0, "%s", none[i]);
		ck_assert_int_eq(stored_number(rolled, "SELECT sum(count) FROM sample"), 23);
		ck_assert_int_eq(stored_number(rolled, "SELECT sum(count) FROM loss"), 3 * 24);
		ck_assert_int_eq(
			stored_number(rolled, "SELECT count(*) FROM task WHERE comm = 'ab'"), 1);
	}
}

/* What refers to nothing is nobody's, and is counted. */
TEST(references_to_nothing_are_to_nobody)
{
	change("UPDATE sample SET task = 99, stack = 0 WHERE id = 1;"
	       "UPDATE sample SET task = -1 WHERE id = 2;"
	       "UPDATE sample SET task = 9223372036854775807 WHERE id = 3;"
	       "UPDATE stack SET frame = 16777300 WHERE id = 1;"
	       "UPDATE frame SET file = -5; UPDATE place SET function = 77 WHERE frame = 1;"
	       "UPDATE task SET cgroup = 5, process = 12");
	for (enum tier tier = TIER_MINUTE; tier <= TIER_HOUR; tier++) {
		roll(tier);
		ck_assert_int_eq(stored_number(rolled, "SELECT sum(count) FROM sample"), 24);
		ck_assert_int_eq(
			stored_number(rolled, "SELECT sum(count) FROM sample WHERE task = 0"), 3);
		ck_assert_str_eq(stored_string(rolled, "PRAGMA integrity_check"), "ok");
	}
}

/* Add the segment again as it is now, as if it were the next. */
static void add_next(enum tier tier, int n)
{
	char next[192];
	snprintf(next, sizeof(next), "%s/next%d", s.folder, n);
	ck_assert_int_eq(rename(s.path, next), 0);
	ck_assert_int_eq(rollup_add(next, target, tier, &error), 0);
	ck_assert_int_eq(rename(next, s.path), 0);
}

TEST(a_file_is_as_it_was_last_found)
{
	static const char found[] =
		"SELECT group_concat(DISTINCT state || has_symbols || has_debug) FROM file";
	for (enum tier tier = TIER_MINUTE; tier <= TIER_HOUR; tier++) {
		change("UPDATE file SET state = 0, has_symbols = 0, has_debug = 0");
		roll(tier);
		change("UPDATE file SET state = 7");
		add_next(tier, 1);
		ck_assert_str_eq(stored_string(rolled, found), "700");
		change("UPDATE file SET state = 2, has_symbols = 1, has_debug = 2");
		add_next(tier, 2);
		ck_assert_str_eq(stored_string(rolled, found), "212");
		change("UPDATE file SET has_debug = 1");
		add_next(tier, 3);
		ck_assert_str_eq(stored_string(rolled, found), "211");
		change("UPDATE file SET state = 3, has_symbols = 0, has_debug = 0");
		add_next(tier, 4);
		ck_assert_str_eq(stored_string(rolled, found), "211");
	}
}

TEST(processes_that_start_each_other_have_parents_without_a_circle)
{
	change("UPDATE task SET parent = 3 - id");
	roll(TIER_MINUTE);
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM task"), 2);
	ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM task WHERE parent >= id"), 0);
	change("UPDATE task SET parent = id");
	roll(TIER_MINUTE);
	ck_assert_int_eq(stored_number(rolled, "SELECT count(parent) FROM task"), 0);
}

/* The kernel's ids may be any; rows of the target are ours. */
TEST(a_control_group_is_known_by_its_path_whatever_its_id)
{
	static const char grouped[] =
		"SELECT count(*) FROM task JOIN cgroup c ON c.id = task.cgroup WHERE path = '/a'";
	change("INSERT INTO cgroup VALUES (-9223372036854775807, '/a');"
	       "UPDATE task SET cgroup = -9223372036854775807");
	for (enum tier tier = TIER_MINUTE; tier <= TIER_HOUR; tier++) {
		char again[192];
		roll(tier);
		const int64_t n = stored_number(rolled, "SELECT count(*) FROM task");
		ck_assert_int_eq(stored_number(rolled, grouped), n);
		sqlite3_close(rolled);
		rolled = NULL;
		/* another source has the same tasks: they are found again */
		snprintf(again, sizeof(again), "%s/later", s.folder);
		ck_assert_int_eq(rename(s.path, again), 0);
		ck_assert_int_eq(rollup_add(again, target, tier, &error), 0);
		ck_assert_int_eq(rename(again, s.path), 0);
		ck_assert_int_eq(sqlite3_open(target, &rolled), SQLITE_OK);
		ck_assert_int_eq(stored_number(rolled, "SELECT count(*) FROM task"), n);
		ck_assert_int_eq(stored_number(rolled, grouped), n);
	}
}

TEST(a_name_that_is_missing_names_nothing, .times = 4)
{
	static const char *const damage[] = {"UPDATE function SET name = NULL",
		"UPDATE source SET path = NULL", "UPDATE cgroup SET path = NULL",
		"UPDATE label_set SET labels = NULL"};
	change_freely(damage[_i]);
	for (enum tier tier = TIER_MINUTE; tier <= TIER_HOUR; tier++) {
		ck_assert_int_eq(rollup_add(s.path, target, tier, &error), 0);
		ck_assert_int_eq(remove(target), 0);
	}
}

TEST(values_that_no_column_takes_are_damage_of_the_source, .times = 8)
{
	static const char *const damage[] = {"UPDATE sample SET count = NULL",
		"UPDATE reading SET value = NULL", "UPDATE loss SET count = NULL",
		"UPDATE loss SET hart = 'x'", "UPDATE task SET pid = NULL",
		"UPDATE event SET type = NULL", "UPDATE event SET config = 'x' WHERE id = 1",
		"UPDATE file SET path = NULL"};
	change_freely(damage[_i]);
	ck_assert_int_eq(rollup_add(s.path, target, TIER_MINUTE, &error), ROLLUP_SOURCE_BROKEN);
	ck_assert_int_lt(access(target, F_OK), 0);
}

TEST(sums_beyond_a_number_are_damage, .times = 4)
{
	static const char *const damage[] = {
		"UPDATE sample SET count = 9223372036854775807",
		"UPDATE sample SET truncated = 4611686018427387904",
		"UPDATE reading SET value = 9223372036854775807",
		"UPDATE loss SET count = 9223372036854775807",
	};
	change(damage[_i]);
	for (enum tier tier = TIER_MINUTE; tier <= TIER_HOUR; tier++) {
		ck_assert_int_eq(rollup_add(s.path, target, tier, &error), ROLLUP_SOURCE_BROKEN);
		ck_assert_ptr_nonnull(strstr(error.text, "its counts are out of bounds"));
		ck_assert_int_lt(access(target, F_OK), 0);
	}
}
