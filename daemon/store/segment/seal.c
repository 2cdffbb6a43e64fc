/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The end of a segment: sealed by its writer, or by the process that finds it later
 *
 * Sealing moves the log into the file and turns the journal back to an ordinary one, so a file
 * whose header names a log is unfinished. At whatever moment a writer dies, the next process can
 * seal the file: SQLite replays the committed transactions, and the remaining steps are the same.
 * The last step appends the hash to the pages; without it a file counts as unsealed, whatever its
 * meta says. Only a file that never had a log is skipped: the log begins when the tables are made,
 * so nothing was stored.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/segment/open.h"
#include "daemon/store/segment/write.h"
#include "proto/base/memory.h"

/* In larger files we do not check all pages before sealing: that would take a second and more. A
 * broken page is found when it is read. */
#define CHECKED_BYTES_MAX (256u << 20)
/* Changes of a file that was made and never had a log: its first transaction. */
#define CHANGES_UNBORN 1

DEFINE_CLEANUP(sqlite3 *, sqlite3_close)
DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

static int sync_folder(const char *path)
{
	_cleanup_(freep) char *folder = strdup(path);
	if (!folder)
		return -ENOMEM;
	char *slash = strrchr(folder, '/');
	slash[slash == folder] = '\0';
	_cleanup_(closep) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* some file systems cannot sync a folder; ignore that */
	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL && errno != ENOTSUP))
		return -errno;
	return 0;
}

/* Run a pragma and check that its first column is the expected value. */
static int pragma_gives(struct segment *g, const char *pragma, const char *wanted)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(g->db, pragma, -1, &s, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	int r = segment_outcome(g, rc);
	if (r == 0) {
		const char *text =
			rc == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
		r = text && strcmp(text, wanted) == 0 ? 0 : SEGMENT_HELD;
	}
	sqlite3_finalize(s);
	return r;
}

static int write_seal(struct segment *g, uint64_t end_monotonic_ns)
{
	int r = segment_begin(g);
	if (r == 0)
		r = ROW(g, INSERT_META, CELL_T("end_ns"), CELL_I(end_monotonic_ns));
	if (r == 0)
		r = ROW(g, INSERT_META, CELL_T("sealed"), CELL_I(1));
	return segment_end(g, r);
}

/* Do all but append the hash: make it one file, mark it as sealed in meta, and close it. */
static int make_one_file(struct segment *g, uint64_t end_monotonic_ns)
{
	int r = write_seal(g, end_monotonic_ns);
	for (int i = 0; i < N_SEGMENT_STATEMENTS; i++) {
		sqlite3_finalize(g->statement[i]);
		g->statement[i] = NULL;
	}
	if (r == 0)
		r = pragma_gives(g, "PRAGMA wal_checkpoint(TRUNCATE)", "0");
	if (r == 0)
		r = pragma_gives(g, "PRAGMA journal_mode=DELETE", "delete");
	return r == 0 ? segment_close(g) : r;
}

/* r of a step; the segment is closed, whatever it is. */
static int seal_end(struct segment *g, int r)
{
	if (r == 0 && fsync(g->fd) < 0)
		r = -errno;
	if (r == -ENOSPC || r == -EDQUOT)
		r = SEGMENT_NO_SPACE;
	if (r == 0)
		r = sync_folder(g->path);
	segment_abandon(g, false);
	return r;
}

int segment_seal_begin(struct segment *g, uint64_t end_monotonic_ns)
{
	int r = make_one_file(g, end_monotonic_ns);
	if (r == 0)
		r = trailer_begin(g->fd, &g->trailer);
	return r == 0 ? 0 : seal_end(g, r);
}

int segment_seal_step(struct segment *g, uint64_t n_bytes)
{
	int r = trailer_step(g->trailer, n_bytes);
	return r == TRAILER_MORE ? SEGMENT_MORE : seal_end(g, r);
}

int segment_seal(struct segment *g, uint64_t end_monotonic_ns)
{
	int r = segment_seal_begin(g, end_monotonic_ns);
	return r == 0 ? segment_seal_step(g, 0) : r;
}

/* The first column of the first row, as a number; 0 where there is none. */
static int number(sqlite3 *db, const char *sql, int64_t *ret_n)
{
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return rc;
	*ret_n = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
	return SQLITE_OK;
}

static int check_pages(const char *path, sqlite3 *db, struct segment_error *e)
{
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &s, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc != SQLITE_ROW)
		return segment_say_sqlite(e, path, db, rc == SQLITE_DONE ? SQLITE_CORRUPT : rc);
	const char *says = (const char *)sqlite3_column_text(s, 0);
	if (!says || strcmp(says, "ok") != 0)
		return segment_say(e, SEGMENT_CORRUPT,
			"It is set aside; no other file depends on it", "%s is damaged: %s", path,
			says ? says : "SQLite gives no place");
	return 0;
}

/* Write that it has ended; keep the end if its writer has written it. */
static int write_end(sqlite3 *db)
{
	static const char sql[] =
		"BEGIN IMMEDIATE;"
		"INSERT INTO meta SELECT 'recovered', 1 FROM meta WHERE key = 'sealed' AND value = "
		"0 "
		"ON CONFLICT DO NOTHING;"
		"INSERT INTO meta SELECT 'end_ns', ifnull((SELECT max(end_ns) FROM window), value) "
		"FROM meta WHERE key = 'monotonic_ns' ON CONFLICT DO NOTHING;"
		"INSERT INTO meta VALUES ('sealed', 1) ON CONFLICT DO UPDATE SET value = 1;"
		"COMMIT";
	int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
	if (rc != SQLITE_OK && !sqlite3_get_autocommit(db))
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}

/* 0 with nothing in it: SEGMENT_UNBORN. */
static int judge_content(const char *path, sqlite3 *db, struct segment_error *e)
{
	int64_t any = 0, n_bytes = 0;
	int r = segment_judge_schema(path, db, e);
	if (r != 0)
		return r;
	int rc = number(db, "SELECT 1 FROM window LIMIT 1", &any);
	if (rc == SQLITE_OK)
		rc = number(db,
			"SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
			&n_bytes);
	if (rc != SQLITE_OK)
		return segment_say_sqlite(e, path, db, rc);
	if (!any)
		return segment_say(e, SEGMENT_UNBORN, "It can be removed",
			"%s has no samples: its writer died before it wrote any", path);
	return n_bytes <= CHECKED_BYTES_MAX ? check_pages(path, db, e) : 0;
}

static int finish(const char *path, sqlite3 *db, struct segment_error *e)
{
	int64_t busy = 0;
	int rc = write_end(db);
	if (rc == SQLITE_OK)
		rc = number(db, "PRAGMA wal_checkpoint(TRUNCATE)", &busy);
	if (rc == SQLITE_OK && busy)
		rc = SQLITE_BUSY;
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
	return rc == SQLITE_OK ? 0 : segment_say_sqlite(e, path, db, rc);
}

/* A file that never had a log was sealed, or never had contents. */
static int judge_leftover(const char *path, struct segment_error *e)
{
	struct segment_header header = {.n_bytes = 1}; /* check only regular files */
	int r = segment_judge_file(path, &header, e);
	if ((r == SEGMENT_NOT_OURS && header.n_bytes == 0) ||
		(r == SEGMENT_CORRUPT && !header.log && header.n_changes <= CHANGES_UNBORN))
		return segment_say(e, SEGMENT_UNBORN, "It can be removed",
			"%s has no samples: its writer died while making it", path);
	return r;
}

int segment_recover(const char *path, struct segment_error *ret_error)
{
	_cleanup_(sqlite3_closep) sqlite3 *db = NULL;
	int r = judge_leftover(path, ret_error);
	if (r != 0)
		return r;
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
	int rc = sqlite3_open_v2(path, &db, flags, NULL);
	if (rc != SQLITE_OK)
		return db ? segment_say_sqlite(ret_error, path, db, rc) : -ENOMEM;
	segment_restrain(db);
	sqlite3_exec(db, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY",
		NULL, NULL, NULL);
	r = judge_content(path, db, ret_error);
	if (r == 0)
		r = finish(path, db, ret_error);
	sqlite3_close(TAKE_PTR(db));
	if (r == 0)
		r = trailer_write_path(path);
	if (r < 0 && r != -ENOMEM)
		return segment_say_errno(ret_error, path, -r);
	return r == 0 ? sync_folder(path) : r;
}
