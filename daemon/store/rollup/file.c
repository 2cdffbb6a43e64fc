/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The files of a roll-up: a sealed one that is read, and one of ours that grows
 *
 * The target keeps an ordinary rollback journal, not a WAL: a roll-up appends, and new pages need
 * no journal, so a day's file is written once and not twice. Dirty pages stay in memory until the
 * commit (cache_spill), and readers are locked out only during the commit.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/store/rollup/rollup_private.h"
#include "daemon/store/segment/open.h"
#include "daemon/store/segment/trailer.h"

#ifndef MPERF_VERSION
#define MPERF_VERSION "0"
#endif

/* Longest text or blob, as segment_open has it. */
#define VALUE_BYTES_MAX (1 << 20)

DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

int rollup_open_source(struct rollup *r)
{
	struct segment_error e = {"", ""};
	int outcome = segment_open(r->source_path, &r->source, &e);
	if (outcome == SEGMENT_UNSEALED && r->live)
		outcome = segment_open_live(r->source_path, &r->source, &e);
	if (outcome > 0) {
		snprintf(r->error->text, sizeof(r->error->text), "%s", e.text);
		snprintf(r->error->remedy, sizeof(r->error->remedy), "%s", e.remedy);
		return outcome == SEGMENT_ABSENT    ? -ENOENT
		       : outcome == SEGMENT_REFUSED ? -EACCES
		       : outcome == SEGMENT_HELD    ? -EBUSY
						    : ROLLUP_SOURCE_BROKEN;
	}
	return outcome;
}

/* path with its folder resolved, since SQLITE_OPEN_NOFOLLOW allows no symbolic link in it. */
static int resolve(const char *path, char **ret_path)
{
	const char *slash = strrchr(path, '/');
	_cleanup_(freep) char *folder =
		slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	if (!folder)
		return -ENOMEM;
	_cleanup_(freep) char *real = realpath(folder, NULL);
	if (!real)
		return -errno;
	char *joined;
	if (asprintf(&joined, "%s/%s", strcmp(real, "/") == 0 ? "" : real,
		    slash ? slash + 1 : path) < 0)
		return -ENOMEM;
	*ret_path = joined;
	return 0;
}

static int file_errno(struct rollup *r, int e)
{
	if (e == ENOSPC || e == EDQUOT || e == EFBIG)
		return rollup_target_outcome(r, SQLITE_FULL);
	char text[256];
	snprintf(text, sizeof(text), "cannot be written: %s", strerror(e));
	rollup_fail(r, 0, r->target_path, "Make sure that its folder exists and is writable", text);
	return -e;
}

static void restrain(sqlite3 *db)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
	sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_busy_timeout(db, ROLLUP_WAIT_MS);
}

/* --- a new target ----------------------------------------------------------------------------- */

static int create(struct rollup *r)
{
	char version[128];
	snprintf(version, sizeof(version), "PRAGMA application_id=%d; PRAGMA user_version=%d",
		SEGMENT_APPLICATION_ID, SEGMENT_VERSION);
	int outcome = rollup_exec(r, "BEGIN IMMEDIATE");
	if (outcome == 0)
		outcome = rollup_exec(r, version);
	if (outcome == 0)
		outcome = rollup_exec(r, segment_schema);
	if (outcome == 0)
		outcome = rollup_write_meta(r, "tier", tier_name(r->tier), 0);
	if (outcome == 0)
		outcome = rollup_write_meta(r, "software", "mperfd " MPERF_VERSION, 0);
	r->is_new = true;
	return outcome == 0 ? rollup_write_meta(r, "sealed", NULL, 0) : outcome;
}

/* --- one that is there ------------------------------------------------------------------------ */

int rollup_meta(struct rollup *r, const char *key, int64_t *ret_value)
{
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		r->target, "SELECT value FROM meta WHERE key = ?1", -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	int outcome = rollup_target_outcome(r, rc);
	if (outcome == 0)
		*ret_value = rc == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;
	return outcome;
}

int rollup_write_meta(struct rollup *r, const char *key, const char *text, int64_t number)
{
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		r->target, "INSERT OR REPLACE INTO meta VALUES (?1, ?2)", -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK)
		rc = text ? sqlite3_bind_text(st, 2, text, -1, SQLITE_STATIC)
			  : sqlite3_bind_int64(st, 2, number);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	return rollup_target_outcome(r, rc);
}

/* Is the first column of a statement's first row this text, or if text is NULL, this number? */
static int is(struct rollup *r, const char *sql, int64_t number, const char *text)
{
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(r->target, sql, -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	int outcome = rollup_target_outcome(r, rc);
	if (outcome != 0)
		return outcome;
	const char *found = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
	bool same =
		found && (text ? strcmp(found, text) == 0 : sqlite3_column_int64(st, 0) == number);
	if (same)
		return 0;
	return rollup_fail_target(r, "it belongs to another tier");
}

static int look(struct rollup *r)
{
	int outcome = is(r, "PRAGMA application_id", SEGMENT_APPLICATION_ID, NULL);
	if (outcome == 0)
		outcome = is(r, "PRAGMA user_version", SEGMENT_VERSION, NULL);
	if (outcome == 0 && r->tier != TIER_WINDOW)
		outcome = is(r, "SELECT value FROM meta WHERE key = 'tier'", 0, tier_name(r->tier));
	return outcome;
}

int rollup_open_target(struct rollup *r, const char *path, bool new)
{
	_cleanup_(freep) char *real = NULL;
	int e = resolve(path, &real);
	if (e < 0)
		return file_errno(r, -e);
	if (new) {
		/* readable by the daemon and its group, as other files of the store */
		_cleanup_(closep) int fd =
			open(real, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
		if (fd < 0)
			return file_errno(r, errno);
	}
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW |
		    SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE;
	int rc = sqlite3_open_v2(real, &r->target, flags, NULL);
	if (!r->target)
		return -ENOMEM;
	if (rc != SQLITE_OK)
		return rollup_target_outcome(r, rc);
	restrain(r->target);
	char page_size[64];
	snprintf(page_size, sizeof(page_size), "PRAGMA page_size=%d", rollup_page_bytes(r));
	int outcome = rollup_exec(r, page_size);
	if (outcome == 0)
		outcome = rollup_exec(r, "PRAGMA temp_store=MEMORY;"
					 "PRAGMA cache_spill=OFF; PRAGMA cell_size_check=ON;"
					 "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL");
	if (outcome != 0)
		return outcome;
	if (new)
		return create(r);
	outcome = rollup_exec(r, "BEGIN IMMEDIATE");
	return outcome == 0 ? look(r) : outcome;
}

/* --- versions --------------------------------------------------------------------------------- */

static int copy_bytes(int from, int to)
{
	for (;;) {
		char bytes[65536];
		ssize_t n = read(from, bytes, sizeof(bytes));
		if (n <= 0)
			return n < 0 ? -errno : 0;
		for (ssize_t at = 0, m; at < n; at += m) {
			m = write(to, bytes + at, (size_t)(n - at));
			if (m < 0)
				return -errno;
		}
	}
}

int rollup_copy(struct rollup *r, const char *from, const char *to)
{
	_cleanup_(closep) int in = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (in < 0)
		return file_errno(r, errno);
	/* a new seal would hide that the file has changed */
	int sealed = trailer_verify(in);
	if (sealed == TRAILER_OTHER)
		return rollup_fail_target(r, "it has changed since it was sealed");
	if (sealed < 0)
		return file_errno(r, -sealed);
	_cleanup_(closep) int out =
		open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (out < 0)
		return file_errno(r, errno);
	int e = copy_bytes(in, out);
	if (e == 0)
		e = trailer_remove(to);
	return e < 0 ? file_errno(r, -e) : 0;
}

int rollup_write_seal(struct rollup *r, const char *path)
{
	int e = trailer_write_path(path);
	return e < 0 ? file_errno(r, -e) : 0;
}

int rollup_check_target(struct rollup *r)
{
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(r->target, "PRAGMA quick_check(1)", -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	int outcome = rollup_target_outcome(r, rc);
	const char *says = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
	if (outcome != 0 || (says && strcmp(says, "ok") == 0))
		return outcome;
	return rollup_fail_target(r, says ? says : "SQLite gives no place");
}

int rollup_rename(struct rollup *r, const char *from, const char *to)
{
	if (rename(from, to) < 0)
		return file_errno(r, errno);
	_cleanup_(freep) char *folder = strdup(to);
	if (!folder)
		return -ENOMEM;
	char *slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	_cleanup_(closep) int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* some file systems cannot sync a folder; ignore that */
	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL && errno != ENOTSUP))
		return file_errno(r, errno);
	return 0;
}

int rollup_close_target(struct rollup *r)
{
	int rc = sqlite3_close(r->target);
	if (rc == SQLITE_OK)
		r->target = NULL; /* the connection is closed, and has no error text any more */
	int outcome = rollup_target_outcome(r, rc);
	r->target = NULL;
	return outcome;
}
