/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Rows of a roll-up's two files: one statement per table and direction
 *
 * The source is asked for one entry of a dictionary when a sample first needs it, so that nothing
 * is held of it but translations; samples, readings and losses are walked in the order of their
 * keys. Whatever SQLite says is turned into one of the roll-up's outcomes here: damage is the
 * file's, want of room the disc's, the rest is fatal.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/rollup/rollup_private.h"
#include "daemon/store/segment/open.h"

/* Of a row in a page: its place, its length, its header. Of a number: ids of a day's file. Source:
 * https://www.sqlite.org/fileformat.html, "B-tree Pages" and "Record Format". */
#define ROW_BYTES 6
#define INTEGER_BYTES 3

static const char *const read_text[N_ROLLUP_READS] = {
	[READ_META] = "SELECT value FROM meta WHERE key = ?1",
	[READ_EVENT] = "SELECT id, pmu, type, config, config1, config2, modifiers, name, unit "
		       "FROM event WHERE id > ?1 ORDER BY id",
	[READ_HART] = "SELECT id, rung, reason, leader, user_only FROM hart WHERE id > ?1 "
		      "ORDER BY id",
	[READ_NOTE] = "SELECT key, value FROM meta WHERE ?1 AND (key BETWEEN 'note:' AND 'note;' "
		      "OR key BETWEEN 'leader:' AND 'leader;' OR key = 'hz_lowest' "
		      "OR key BETWEEN 'core:' AND 'core;' OR key BETWEEN 'turn:' AND 'turn;')",
	[READ_CGROUP] = "SELECT path FROM cgroup WHERE id = ?1",
	[READ_TASK] =
		"SELECT pid, tid, process, parent, start_ns, end_ns, comm, exe, argv, cgroup, "
		"uid, kernel_thread, label_set, account FROM task "
		"LEFT JOIN task_label_set ON task = id WHERE id = ?1",
	[READ_LABELS] = "SELECT uid || ' ' || labels FROM label_set WHERE id = ?1",
	[READ_FILE] = "SELECT kind, path, build_id, major, minor, inode, deleted, state, "
		      "has_symbols, has_debug FROM file WHERE id = ?1",
	[READ_FRAME] = "SELECT file, offset, state FROM frame WHERE id = ?1",
	[READ_FUNCTION] = "SELECT name FROM function WHERE id = ?1",
	[READ_SOURCE] = "SELECT path FROM source WHERE id = ?1",
	[READ_PLACE] = "SELECT depth, function, source, line, inlined FROM place WHERE frame = ?1 "
		       "ORDER BY depth",
	[READ_STACK] = "SELECT parent, frame FROM stack WHERE id = ?1",
	[READ_WINDOW] = "SELECT id, start_ns, end_ns, realtime_ns FROM window WHERE id > ?1 "
			"ORDER BY id",
	[READ_SAMPLE] = "SELECT id, window, hart, task, stack, event, rung, count, weight_ns, "
			"truncated, uncounted FROM sample WHERE id > ?1 ORDER BY id",
	[READ_READING] = "SELECT sample, event, value, enabled_ns, running_ns FROM reading "
			 "WHERE sample > ?1 ORDER BY sample, event",
	[READ_LOSS] = "SELECT window, hart, cause, count FROM loss WHERE window > ?1 "
		      "ORDER BY window, hart, cause",
	[READ_LOOP_SITE] = "SELECT kind, build_id, subprogram, source, line, nest, inlined_at, "
			   "parent, line_last, column, flags FROM loop_site WHERE id = ?1",
	[READ_LOOP_METRIC] = "SELECT name, unit FROM loop_metric WHERE id = ?1",
	[READ_LOOP_COUNT] = "SELECT window, task, loop, region, metric, value FROM loop_count "
			    "WHERE window > ?1 ORDER BY window, task, loop, region, metric",
};

static const char *const write_text[N_ROLLUP_WRITES] = {
	[WRITE_META] = "INSERT OR REPLACE INTO meta VALUES (?, ?)",
	[WRITE_EVENT] = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[WRITE_HART] = "INSERT OR REPLACE INTO hart VALUES (?, ?, ?, ?, ?)",
	[WRITE_CGROUP] = "INSERT INTO cgroup VALUES (?, ?)",
	[WRITE_TASK] =
		"INSERT INTO task VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
		"ON CONFLICT (id) DO UPDATE SET end_ns = excluded.end_ns, comm = excluded.comm, "
		"exe = coalesce(excluded.exe, exe), argv = coalesce(excluded.argv, argv), "
		"cgroup = coalesce(excluded.cgroup, cgroup)",
	[WRITE_LABELS] = "INSERT INTO label_set VALUES (?1, "
			 "CAST(substr(?2, 1, instr(?2, ' ') - 1) AS INTEGER), "
			 "substr(?2, instr(?2, ' ') + 1))",
	[WRITE_TASK_LABELS] = "INSERT OR REPLACE INTO task_label_set VALUES (?, ?)",
	[WRITE_FILE] = "INSERT INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[WRITE_FRAME] = "INSERT INTO frame VALUES (?, ?, ?, ?)",
	[WRITE_FUNCTION] = "INSERT INTO function VALUES (?, ?)",
	[WRITE_SOURCE] = "INSERT INTO source VALUES (?, ?)",
	[WRITE_PLACE] = "INSERT INTO place VALUES (?, ?, ?, ?, ?, ?)",
	[WRITE_STACK] = "INSERT INTO stack VALUES (?, ?, ?)",
	[WRITE_WINDOW] = "INSERT INTO window VALUES (?, ?, ?, ?)",
	[WRITE_SAMPLE] = "INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[WRITE_READING] = "INSERT INTO reading VALUES (?, ?, ?, ?, ?)",
	[WRITE_LOSS] = "INSERT INTO loss VALUES (?, ?, ?, ?)",
	[WRITE_LOOP_SITE] = "INSERT INTO loop_site VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[WRITE_LOOP_METRIC] = "INSERT INTO loop_metric VALUES (?, ?, ?)",
	[WRITE_LOOP_COUNT] = "INSERT INTO loop_count VALUES (?, ?, ?, ?, ?, ?)",
};

/* --- outcomes --------------------------------------------------------------------------------- */

int rollup_fail(
	struct rollup *r, int outcome, const char *path, const char *remedy, const char *what)
{
	snprintf(r->error->text, sizeof(r->error->text), "%s %s", path, what);
	snprintf(r->error->remedy, sizeof(r->error->remedy), "%s", remedy);
	return outcome;
}

int rollup_fail_source(struct rollup *r, const char *what)
{
	char text[256];
	snprintf(text, sizeof(text), "is damaged: %s", what);
	return rollup_fail(r, ROLLUP_SOURCE_BROKEN, r->source_path,
		"It is left out of the coarser tiers; what is intact can still be read", text);
}

int rollup_fail_target(struct rollup *r, const char *what)
{
	char text[256];
	snprintf(text, sizeof(text), "is damaged: %s", what);
	return rollup_fail(r, ROLLUP_TARGET_BROKEN, r->target_path,
		"Set it aside; later roll-ups go to a new file", text);
}

/* Nothing is known of the file but that it cannot be read now. */
static int source_errno(struct rollup *r, int e)
{
	char text[256];
	snprintf(text, sizeof(text), "cannot be read now: %s", sqlite3_errmsg(r->source));
	rollup_fail(r, 0, r->source_path, "Check its disc", text);
	return -e;
}

int rollup_source_outcome(struct rollup *r, int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return source_errno(r, EBUSY);
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_FULL:
	case SQLITE_PERM:
	case SQLITE_PROTOCOL:
		return source_errno(r, EIO);
	default:
		return rollup_fail_source(r, sqlite3_errmsg(r->source));
	}
}

static bool is_full(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

static int fail_full(struct rollup *r)
{
	return rollup_fail(r, STORE_NO_SPACE, r->target_path,
		"Make room on its disc, or give the store a smaller budget",
		"cannot grow: its disc is full");
}

static int target_errno(struct rollup *r, int e, const char *what)
{
	char text[256];
	snprintf(text, sizeof(text), "%s: %s", what, strerror(e));
	rollup_fail(r, 0, r->target_path, "Make sure that its disc works and is writable", text);
	return -e;
}

int rollup_target_outcome(struct rollup *r, int rc)
{
	int e = r->target ? sqlite3_system_errno(r->target) : 0, of_file = 0;
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return fail_full(r);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_CONSTRAINT: /* an id of ours that is there already */
	case SQLITE_ERROR:      /* a table that is not there */
	case SQLITE_SCHEMA:
		return rollup_fail_target(r, sqlite3_errmsg(r->target));
	case SQLITE_READONLY:
		return target_errno(r, EROFS, "cannot be written");
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return target_errno(r, EACCES, "cannot be written");
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return target_errno(r, EBUSY, "is always being read");
	default:
		/* what was rolled back since may have changed the one, but not the other */
		sqlite3_file_control(r->target, "main", SQLITE_FCNTL_LAST_ERRNO, &of_file);
		return is_full(e) || is_full(of_file)
			       ? fail_full(r)
			       : target_errno(r, e > 0 ? e : EIO, "cannot be written");
	}
}

int rollup_table_outcome(struct rollup *r, int outcome)
{
	return outcome == KEY_TABLE_FULL
		       ? rollup_fail_source(r, "it has more names or stacks than one file can hold")
		       : outcome;
}

/* --- statements ------------------------------------------------------------------------------- */

static int prepare(sqlite3 *db, const char *const *text, size_t n, sqlite3_stmt **st)
{
	int rc = SQLITE_OK;
	for (size_t i = 0; i < n && rc == SQLITE_OK; i++)
		rc = sqlite3_prepare_v3(db, text[i], -1, SQLITE_PREPARE_PERSISTENT, &st[i], NULL);
	return rc;
}

int rollup_prepare_source(struct rollup *r)
{
	return rollup_source_outcome(r, prepare(r->source, read_text, N_ROLLUP_READS, r->read));
}

int rollup_prepare_target(struct rollup *r)
{
	return rollup_target_outcome(r, prepare(r->target, write_text, N_ROLLUP_WRITES, r->write));
}

int rollup_next(struct rollup *r, enum rollup_read s)
{
	int rc = sqlite3_step(r->read[s]);
	if (rc == SQLITE_ROW)
		return 0;
	return rc == SQLITE_DONE ? ROLLUP_NO_ROW : rollup_source_outcome(r, rc);
}

int rollup_get(struct rollup *r, enum rollup_read s, int64_t id)
{
	sqlite3_reset(r->read[s]);
	int rc = sqlite3_bind_int64(r->read[s], 1, id);
	return rc == SQLITE_OK ? rollup_next(r, s) : rollup_source_outcome(r, rc);
}

int rollup_text(struct rollup *r, sqlite3_stmt *st, int column, uint32_t *ret_text)
{
	const char *text = (const char *)sqlite3_column_text(st, column);
	return rollup_table_outcome(r, text_get(&r->texts, text, ret_text));
}

/* What a row takes: its key and its lengths, numbers as they mostly are, strings. */
static void charge(struct rollup *r, const struct cell *cell, size_t n)
{
	uint64_t bytes = ROW_BYTES;
	for (size_t i = 0; i < n; i++)
		bytes += cell[i].kind == CELL_INTEGER                 ? INTEGER_BYTES
			 : cell[i].kind == CELL_BLOB                  ? (uint64_t)cell[i].integer
			 : cell[i].kind == CELL_TEXT && cell[i].bytes ? strlen(cell[i].bytes)
								      : 0;
	share_charge(r->shares, r->payer, bytes);
}

int rollup_put(struct rollup *r, enum rollup_write s, const struct cell *cell, size_t n)
{
	/* samples and readings are charged when it is decided which there are */
	if (r->has_payer && s != WRITE_SAMPLE && s != WRITE_READING)
		charge(r, cell, n);
	sqlite3_stmt *st = r->write[s];
	int rc = SQLITE_OK;
	for (size_t i = 0; i < n && rc == SQLITE_OK; i++)
		rc = cell_bind(st, (int)i + 1, &cell[i]);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	int outcome = rollup_target_outcome(r, rc);
	sqlite3_reset(st);
	return outcome;
}

int rollup_exec(struct rollup *r, const char *sql)
{
	return rollup_target_outcome(r, sqlite3_exec(r->target, sql, NULL, NULL, NULL));
}
