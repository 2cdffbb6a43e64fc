/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* SQLite's results as outcomes of a roll-up: damage concerns the file, lack of space the disc; all
 * others are fatal.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/rollup/rollup_private.h"

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
		"It is left out of the coarser tiers; intact rows can still be read", text);
}

int rollup_fail_target(struct rollup *r, const char *what)
{
	char text[256];
	snprintf(text, sizeof(text), "is damaged: %s", what);
	return rollup_fail(r, ROLLUP_TARGET_BROKEN, r->target_path,
		"Set it aside; later roll-ups go to a new file", text);
}

/* The file cannot be read now; it need not be damaged. */
static int source_errno(struct rollup *r, sqlite3 *db, int e)
{
	char text[256];
	snprintf(text, sizeof(text), "cannot be read now: %s", sqlite3_errmsg(db));
	rollup_fail(r, 0, r->source_path, "Check its disc", text);
	return -e;
}

int rollup_source_outcome(struct rollup *r, sqlite3 *db, int rc)
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
		return source_errno(r, db, EBUSY);
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_FULL:
	case SQLITE_PERM:
	case SQLITE_PROTOCOL:
		return source_errno(r, db, EIO);
	default:
		/* sum()'s error for more than 64 bits */
		return rollup_fail_source(r, strcmp(sqlite3_errmsg(db), "integer overflow") == 0
						     ? "its counts are out of bounds"
						     : sqlite3_errmsg(db));
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
	case SQLITE_CONSTRAINT: /* one of our ids exists already */
	case SQLITE_ERROR:      /* a table is missing */
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
		/* a later rollback may have changed the one but not the other */
		sqlite3_file_control(r->target, "main", SQLITE_FCNTL_LAST_ERRNO, &of_file);
		return is_full(e) || is_full(of_file)
			       ? fail_full(r)
			       : target_errno(r, e > 0 ? e : EIO, "cannot be written");
	}
}

int rollup_exec(struct rollup *r, const char *sql)
{
	return rollup_target_outcome(r, sqlite3_exec(r->target, sql, NULL, NULL, NULL));
}
