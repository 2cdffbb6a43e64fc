/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Opening segments: a sealed one opens, read-only; files of all other kinds are refused by name. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/memory.h"
#include "runtime/abi.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;

static void end(void)
{
	if (*s.folder)
		stored_end(&s);
	memset(&s, 0, sizeof(s));
}

EACH_TEST(.end = end, .seconds = 60);

/* One sample of one named function. */
static void add_one(void)
{
	struct task *t = stored_task(&s, 100, 100, "prog");
	struct frame *f = stored_function(&s, "/bin/prog", "main");
	stored_add(&s, &(struct stored_sample){.task = t, .frame = {f}});
}

static void begin_sealed(void)
{
	stored_begin_clock(&s);
	add_one();
	sqlite3_close(stored_seal(&s));
	s.db = NULL;
}

static int open_path(const char *path, struct segment_error *error)
{
	sqlite3 *db = NULL;
	*error = (struct segment_error){"", ""};
	int r = segment_open(path, &db, error);
	if (r == 0)
		sqlite3_close(db);
	else {
		ck_assert_ptr_null(db);
		ck_assert_msg(
			strstr(error->text, path) != NULL, "\"%s\" names no file", error->text);
		ck_assert_str_ne(error->remedy, "");
	}
	return r;
}

static void write_at(const char *path, off_t at, const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
	close(fd);
}

/* Change the sealed segment by means of SQLite itself, and seal it again. */
static void alter(const char *sql)
{
	sqlite3 *db;
	char *message = NULL;
	ck_assert_int_eq(sqlite3_open(s.path, &db), SQLITE_OK);
	sqlite3_db_config(db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, NULL);
	ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s", message);
	sqlite3_close(db);
	ck_assert_int_eq(trailer_write_path(s.path), 0);
}

TEST(sealed_segment_opens_and_cannot_be_written)
{
	stored_begin_clock(&s);
	add_one();
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(sqlite3_exec(db, "DELETE FROM sample", NULL, NULL, NULL), SQLITE_READONLY);
	ck_assert_int_ne(sqlite3_exec(db, "ATTACH ':memory:' AS x", NULL, NULL, NULL), SQLITE_OK);
}

TEST(path_with_characters_of_a_uri_opens)
{
	struct segment_error error;
	char path[200];
	begin_sealed();
	snprintf(path, sizeof(path), "%s/a?mode=rw#b%%41&c d", s.folder);
	ck_assert_int_eq(rename(s.path, path), 0);
	ck_assert_msg(open_path(path, &error) == 0, "%s", error.text);
}

TEST(segment_opens_through_a_link_and_relative_to_here)
{
	struct segment_error error;
	begin_sealed();
	ck_assert_int_eq(chdir(s.folder), 0);
	ck_assert_int_eq(symlink("segment", "link"), 0);
	ck_assert_int_eq(open_path("link", &error), 0);
	ck_assert_int_eq(open_path(".//segment", &error), 0);
}

TEST(file_that_is_not_there_is_absent)
{
	struct segment_error error;
	ck_assert_int_eq(open_path("/tmp/no such file, surely", &error), SEGMENT_ABSENT);
	ck_assert_int_eq(open_path("/etc/passwd/x", &error), SEGMENT_ABSENT);
}

TEST(file_that_may_not_be_read_is_refused)
{
	struct segment_error error;
	begin_sealed();
	ck_assert_int_eq(chmod(s.folder, 0755), 0);
	if (geteuid() != 0) {
		ck_assert_int_eq(chmod(s.path, 0), 0);
		ck_assert_int_eq(open_path(s.path, &error), SEGMENT_REFUSED);
		return;
	}
	ck_assert_int_eq(seteuid(65534), 0);
	int r = open_path(s.path, &error);
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(r, SEGMENT_REFUSED);
}

TEST(other_files_are_not_ours)
{
	struct segment_error error;
	char path[200];
	stored_begin_clock(&s);
	ck_assert_int_eq(open_path(s.folder, &error), SEGMENT_NOT_OURS);
	ck_assert_int_eq(open_path("/dev/null", &error), SEGMENT_NOT_OURS);
	snprintf(path, sizeof(path), "%s/fifo", s.folder);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(open_path(path, &error), SEGMENT_NOT_OURS);
	snprintf(path, sizeof(path), "%s/empty", s.folder);
	write_at(path, 0, "", 0);
	ck_assert_int_eq(open_path(path, &error), SEGMENT_NOT_OURS);
	ck_assert_ptr_nonnull(strstr(error.text, "empty"));
	write_at(path, 0, "SQLite format 3", 16);
	ck_assert_int_eq(open_path(path, &error), SEGMENT_NOT_OURS);
	ck_assert_int_eq(open_path("/proc/self/exe", &error), SEGMENT_NOT_OURS);
	ck_assert_ptr_nonnull(strstr(error.text, "not an SQLite file"));
}

TEST(what_a_program_that_counts_itself_wrote_names_what_reads_it)
{
	struct segment_error error;
	char path[200];
	const struct mperf_feed_hello hello = {
		.head = {.type = MPERF_HELLO, .bytes = sizeof(hello)},
		.magic = MPERF_FEED_MAGIC,
	};
	stored_begin_clock(&s);
	snprintf(path, sizeof(path), "%s/output", s.folder);
	write_at(path, 0, &hello, sizeof(hello));
	ck_assert_int_eq(open_path(path, &error), SEGMENT_NOT_OURS);
	ck_assert_ptr_nonnull(strstr(error.remedy, "roofline"));
	write_at(path, 0, &(uint16_t){MPERF_THREAD}, sizeof(uint16_t)); /* the type comes first */
	ck_assert_int_eq(open_path(path, &error), SEGMENT_NOT_OURS);
	ck_assert_ptr_null(strstr(error.remedy, "roofline"));
}

TEST(database_of_another_program_is_not_ours)
{
	struct segment_error error;
	begin_sealed();
	alter("PRAGMA application_id=1");
	ck_assert_int_eq(open_path(s.path, &error), SEGMENT_NOT_OURS);
	ck_assert_ptr_nonnull(strstr(error.text, "another program"));
}

TEST(newer_version_is_refused_by_its_number)
{
	struct segment_error error;
	begin_sealed();
	alter("PRAGMA user_version=9");
	ck_assert_int_eq(open_path(s.path, &error), SEGMENT_OTHER_VERSION);
	ck_assert_ptr_nonnull(strstr(error.text, "version 9"));
	alter("PRAGMA user_version=0");
	ck_assert_int_eq(open_path(s.path, &error), SEGMENT_CORRUPT);
}

TEST(segment_being_written_is_unsealed)
{
	struct segment_error error;
	stored_begin_clock(&s);
	ck_assert_int_eq(open_path(s.path, &error), SEGMENT_UNSEALED);
	add_one();
	ck_assert_int_eq(stored_flush(&s, 0, 1000), 0);
	ck_assert_int_eq(open_path(s.path, &error), SEGMENT_UNSEALED);
	/* looking at it did no harm */
	sqlite3 *db = stored_seal(&s);
	ck_assert_int_eq(stored_number(db, "SELECT count(*) FROM sample"), 1);
}

TEST(journal_beside_it_or_a_missing_seal_is_unsealed)
{
	struct segment_error error;
	char wal[200];
	begin_sealed();
	snprintf(wal, sizeof(wal), "%s-wal", s.path);
	write_at(wal, 0, "x", 1);
	ck_assert_int_eq(open_path(s.path, &error), SEGMENT_UNSEALED);
	unlink(wal);
	ck_assert_int_eq(open_path(s.path, &error), 0);
	alter("UPDATE meta SET value = 0 WHERE key = 'sealed'");
	ck_assert_int_eq(open_path(s.path, &error), SEGMENT_UNSEALED);
	alter("DELETE FROM meta");
	ck_assert_int_eq(open_path(s.path, &error), SEGMENT_UNSEALED);
}

TEST(file_cut_off_anywhere_is_refused)
{
	struct segment_error error;
	struct stat st;
	begin_sealed();
	ck_assert_int_eq(stat(s.path, &st), 0);
	for (off_t size = st.st_size - 1; size >= 100; size -= 1021) {
		ck_assert_int_eq(truncate(s.path, size), 0);
		ck_assert_int_eq(open_path(s.path, &error), SEGMENT_CORRUPT);
		bool seal = size > st.st_size - TRAILER_BYTES;
		ck_assert_ptr_nonnull(strstr(error.text, seal ? "its seal is gone" : "cut off"));
	}
	ck_assert_int_eq(truncate(s.path, 99), 0);
	ck_assert_int_eq(open_path(s.path, &error), SEGMENT_NOT_OURS);
}

TEST(damaged_pages_are_found_when_opening_or_reading)
{
	struct segment_error error;
	struct stat st;
	begin_sealed();
	ck_assert_int_eq(stat(s.path, &st), 0);
	uint8_t page[4096];
	char copy[200];
	int n_found = 0;
	snprintf(copy, sizeof(copy), "%s/copy", s.folder);
	for (off_t at = 0; at < st.st_size; at += 4096) {
		char command[500];
		snprintf(command, sizeof(command), "cp %s %s", s.path, copy);
		ck_assert_int_eq(system(command), 0);
		memset(page, 0xa5, sizeof(page));
		write_at(copy, at + 100, page, sizeof(page) - 100);
		sqlite3 *db = NULL;
		if (segment_open(copy, &db, &error) != 0) {
			n_found++;
			continue;
		}
		struct stored_answer *a = calloc(1, sizeof(*a));
		int r = stored_hotspots(db, "function", NULL, a);
		ck_assert(r == 0 || r == QUERY_FAILED);
		if (r == QUERY_FAILED) {
			ck_assert_ptr_nonnull(strstr(a->error.text, "copy is damaged"));
			n_found++;
		}
		free(a);
		sqlite3_close(db);
	}
	ck_assert_int_ge(
		n_found, 8); /* tables that are empty or of no use to this query are not read */
}

TEST(schema_that_acts_is_refused)
{
	struct segment_error error;
	static const char *const hostile[] = {
		"CREATE TRIGGER t AFTER INSERT ON sample BEGIN SELECT 1; END",
		"ALTER TABLE sample RENAME TO s2; CREATE VIEW sample AS SELECT * FROM s2",
		"CREATE INDEX i ON sample(window)",
		"DROP TABLE loss",
		"CREATE TABLE more(x)",
		"ALTER TABLE sample ADD COLUMN evil AS (abs(count))",
		("UPDATE sqlite_schema SET sql = replace(sql, 'count INTEGER', 'c INTEGER') "
		 "WHERE name = 'sample'"),
	};
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		begin_sealed();
		alter(hostile[i]);
		ck_assert_msg(open_path(s.path, &error) == SEGMENT_CORRUPT, "%s", hostile[i]);
		ck_assert_msg(strstr(error.text, "those of mperf") != NULL, "%s", error.text);
		end();
	}
}

TEST(schema_that_does_not_parse_is_refused)
{
	struct segment_error error;
	begin_sealed();
	alter("UPDATE sqlite_schema SET sql = 'CREATE TABLE sample(' WHERE name = 'sample'");
	ck_assert_int_eq(open_path(s.path, &error), SEGMENT_CORRUPT);
}

TEST(comments_of_the_schema_may_change)
{
	struct segment_error error;
	begin_sealed();
	alter("UPDATE sqlite_schema SET sql = replace(sql, '-- process', '-- another word') "
	      "WHERE name = 'task'");
	ck_assert_msg(open_path(s.path, &error) == 0, "%s", error.text);
}

TEST(header_that_makes_no_sense_is_corrupt)
{
	struct segment_error error;
	begin_sealed();
	write_at(s.path, 16, "\x00\x03", 2);
	ck_assert_int_eq(open_path(s.path, &error), SEGMENT_CORRUPT);
	uint8_t page_bytes[2] = {SEGMENT_PAGE_BYTES >> 8, SEGMENT_PAGE_BYTES & 0xff};
	write_at(s.path, 16, page_bytes, 2);
	ck_assert_int_eq(open_path(s.path, &error), 0);
	write_at(s.path, 28, "\xff\xff\xff\xff", 4);
	ck_assert_int_eq(open_path(s.path, &error), SEGMENT_CORRUPT);
}
