/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Contents of a file of the store, and the files next to it
 *
 * A name gives tier and start, so a folder can be listed without opening anything. The end of a
 * file, and whether it is sealed, are only in its content, which is read once, when the file is
 * entered. A window file beside its log is never opened here: its writer may be this very process,
 * and closing any descriptor of a file drops the locks that the process has on it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/segment/open.h"
#include "daemon/store/store_private.h"
#include "proto/base/memory.h"

/* Suffixes of what SQLite and we put beside a file: its log, its index, its journal, its next
 * version. */
static const char *const neighbours[] = {"-wal", "-shm", "-journal", ".new", ".new-journal"};
#define N_NEIGHBOURS (sizeof(neighbours) / sizeof(*neighbours))

DEFINE_CLEANUP(sqlite3 *, sqlite3_close)
DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

char *store_path(const struct store *s, const char *name)
{
	char *path;
	return asprintf(&path, "%s/%s", s->path, name) < 0 ? NULL : path;
}

static bool beside(const struct store *s, const char *name, const char *suffix, struct stat *st)
{
	char path[STORE_NAME_BYTES + 32];
	snprintf(path, sizeof(path), "%s%s", name, suffix);
	return fstatat(s->fd, path, st, AT_SYMLINK_NOFOLLOW) == 0;
}

int store_look_size(const struct store *s, struct store_file *f)
{
	struct stat st;
	if (fstatat(s->fd, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? STORE_GONE : -errno;
	uint64_t bytes = (uint64_t)st.st_size;
	for (size_t i = 0; i < N_NEIGHBOURS; i++)
		if (beside(s, f->name, neighbours[i], &st))
			bytes += (uint64_t)st.st_size;
	f->bytes = bytes;
	return 0;
}

int store_unlink(const struct store *s, const char *name)
{
	int r = unlinkat(s->fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	for (size_t i = 0; i < N_NEIGHBOURS && r == 0; i++) {
		char path[STORE_NAME_BYTES + 32];
		snprintf(path, sizeof(path), "%s%s", name, neighbours[i]);
		if (unlinkat(s->fd, path, 0) < 0 && errno != ENOENT)
			r = -errno;
	}
	return r;
}

bool store_is_orphan(const struct store *s, const char *name)
{
	struct stat st;
	size_t n = strlen(name);
	for (size_t i = 0; i < N_NEIGHBOURS; i++) {
		size_t n_suffix = strlen(neighbours[i]);
		char owner[STORE_NAME_BYTES];
		enum tier tier;
		int64_t start_ns;
		if (n <= n_suffix || strcmp(name + n - n_suffix, neighbours[i]) != 0)
			continue;
		snprintf(owner, sizeof(owner), "%.*s", (int)(n - n_suffix), name);
		if (store_name_parse(owner, &tier, &start_ns))
			return neighbours[i][0] == '.' ||
			       fstatat(s->fd, owner, &st, AT_SYMLINK_NOFOLLOW) < 0;
	}
	return false;
}

/* Read the seal and the time range from the file's rows. 0 or an SQLite result. */
static int read_content(sqlite3 *db, struct store_file *f)
{
	static const char sql[] =
		"SELECT (SELECT value FROM meta WHERE key = 'sealed'), min(realtime_ns), "
		"max(realtime_ns + end_ns - start_ns) FROM window";
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc != SQLITE_ROW)
		return rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
	f->sealed = sqlite3_column_int(q, 0) == 1;
	/* a coarse file is named after its period, and begins when its first source began; without
	 * rows it covers no time */
	if (f->tier != TIER_WINDOW && sqlite3_column_int64(q, 1) > f->start_ns)
		f->start_ns = sqlite3_column_int64(q, 1);
	f->end_ns = sqlite3_column_int64(q, 2);
	if (f->end_ns < f->start_ns)
		f->end_ns = f->start_ns;
	return SQLITE_OK;
}

/* A killed roll-up left a journal, which only a writer can replay. */
static void replay_journal(const char *path)
{
	_cleanup_(sqlite3_closep) sqlite3 *db = NULL;
	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
		SQLITE_OK)
		return;
	segment_restrain(db);
	sqlite3_exec(db, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL);
}

static int look_inside(const char *path, struct store_file *f, struct store_error *e)
{
	struct segment_error error = {"", ""};
	_cleanup_(sqlite3_closep) sqlite3 *db = NULL;
	const struct store_file before = *f;
	f->sealed = false;
	(void)store_name_parse(f->name, &f->tier, &f->start_ns);
	int whole = segment_seal_is_whole(path);
	int r = segment_open_live(path, &db, &error);
	if (r == 0) {
		int rc = read_content(db, f);
		r = rc == SQLITE_OK ? 0 : segment_say_sqlite(&error, path, db, rc);
		f->sealed = f->sealed && whole == 1;
	}
	if (r == 0 && whole < 0)
		r = SEGMENT_REFUSED;
	snprintf(e->text, sizeof(e->text), "%s", error.text);
	snprintf(e->remedy, sizeof(e->remedy), "%s", error.remedy);
	switch (r) {
	case SEGMENT_ABSENT:
		return STORE_GONE;
	case SEGMENT_CORRUPT:
	case SEGMENT_NOT_OURS:
		return STORE_CORRUPT;
	case SEGMENT_OTHER_VERSION:
		f->other_version = f->sealed = true;
		f->end_ns = f->start_ns + (int64_t)tier_period_ns(f->tier);
		return 0;
	case 0:
		return 0;
	default:
		/* held or refused for now, or the disc does not answer: its state stays as known
		 * */
		*f = before;
		f->unread = true;
		return r < 0 ? r : 0;
	}
}

int store_look(struct store *s, struct store_file *f, struct store_error *e)
{
	struct stat st;
	int64_t start_ns;
	int r = store_look_size(s, f);
	if (r != 0)
		return r;
	f->unread = false;
	if (!store_name_parse(f->name, &f->tier, &start_ns))
		return 0; /* below corrupt/ */
	if (f->tier == TIER_WINDOW && beside(s, f->name, "-wal", &st)) {
		f->sealed = false;
		f->end_ns = 0;
		return 0;
	}
	if (f->tier != TIER_WINDOW && f->end_ns == 0)
		f->end_ns = f->start_ns;
	_cleanup_(freep) char *path = store_path(s, f->name);
	if (!path)
		return -ENOMEM;
	if (f->tier != TIER_WINDOW && beside(s, f->name, "-journal", &st))
		replay_journal(path);
	return look_inside(path, f, e);
}

static void mark(struct store *s, const char *source, enum tier tier)
{
	char name[2 * STORE_NAME_BYTES];
	snprintf(name, sizeof(name), "%s/%.*s", tier_name(TIER_WINDOW), STORE_NAME_BYTES, source);
	size_t at = store_find(s, name);
	if (at < s->n_files)
		s->file[at].rolled |= (uint8_t)(1u << tier);
}

void store_mark_sources(struct store *s, const struct store_file *f)
{
	struct segment_error error;
	_cleanup_(sqlite3_closep) sqlite3 *db = NULL;
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
	_cleanup_(freep) char *path = store_path(s, f->name);
	if (!path || f->tier == TIER_WINDOW || f->corrupt || f->other_version ||
		segment_open_live(path, &db, &error) != 0)
		return;
	/* ';' follows ':' */
	static const char sql[] = "SELECT key FROM meta WHERE key >= 'source:' AND key < 'source;'";
	_Static_assert(sizeof(STORE_SOURCE_KEY) == sizeof("source:"), "as in the statement");
	if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
		return;
	for (int n = 0; n < STORE_FILES_MAX && sqlite3_step(q) == SQLITE_ROW; n++) {
		const char *key = (const char *)sqlite3_column_text(q, 0);
		if (key)
			mark(s, key + strlen(STORE_SOURCE_KEY), f->tier);
	}
}

int store_recover(struct store *s, struct store_file *f, struct store_error *e)
{
	struct segment_error error = {"", ""};
	_cleanup_(freep) char *path = store_path(s, f->name);
	if (!path)
		return -ENOMEM;
	int r = segment_recover(path, &error);
	snprintf(e->text, sizeof(e->text), "%s", error.text);
	snprintf(e->remedy, sizeof(e->remedy), "%s", error.remedy);
	switch (r) {
	case 0:
		return store_look(s, f, e);
	case SEGMENT_UNBORN:
		r = store_unlink(s, f->name);
		return r < 0 ? r : STORE_GONE;
	case SEGMENT_ABSENT:
		return STORE_GONE;
	case SEGMENT_CORRUPT:
	case SEGMENT_NOT_OURS:
		return STORE_CORRUPT;
	case SEGMENT_OTHER_VERSION:
		f->other_version = true;
		return 0;
	case SEGMENT_NO_SPACE:
		return STORE_NO_SPACE;
	case SEGMENT_READ_ONLY:
		return STORE_READ_ONLY;
	default:
		return r < 0 ? r : STORE_BUSY;
	}
}
