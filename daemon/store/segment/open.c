/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Opening a segment from an unknown source, or one that we are still writing
 *
 * The file may be anything. We check its header, the first 100 bytes, before SQLite sees it: not a
 * database, another program's, of another version, unfinished, cut off. Then SQLite opens it
 * immutable and read-only, with everything off that could make a schema act, and the schema must be
 * ours, statement by statement. Damage inside pages shows when they are read: SQLite checks each as
 * it goes, and queries report it with the file's name.
 *
 * A file of our own store is checked in the same way, but may have a log, which SQLite then reads
 * with locks that the writer respects.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/loops/message.h"
#include "daemon/store/segment/open.h"
#include "proto/base/memory.h"

DEFINE_CLEANUP(sqlite3 *, sqlite3_close)
DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

/* A reader waits this long for a writer that is sealing, or for another reader that replays the
 * log. */
#define READER_WAIT_MS 2000

int segment_say(struct segment_error *e, int outcome, const char *remedy, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(e->text, sizeof(e->text), format, args);
	va_end(args);
	snprintf(e->remedy, sizeof(e->remedy), "%s", remedy);
	return outcome;
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

int segment_say_errno(struct segment_error *e, const char *path, int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
		return segment_say(e, SEGMENT_ABSENT, "Name a file that `mperfctl record -o` wrote",
			"%s: there is no such file", path);
	case EACCES:
	case EPERM:
	case ELOOP:
		return segment_say(e, SEGMENT_REFUSED, "Ask its owner, or root, to read it",
			"%s may not be read: %s", path, strerror(error));
	case ENOMEM:
		return -ENOMEM;
	default:
		return segment_say(e, SEGMENT_REFUSED, "Check its disc", "%s cannot be read: %s",
			path, strerror(error));
	}
}

static int say_not_ours(struct segment_error *e, const char *path, const char *why)
{
	return segment_say(e, SEGMENT_NOT_OURS, "Name a file that `mperfctl record -o` wrote",
		"%s is not an mperf recording: %s", path, why);
}

static int say_output(struct segment_error *e, const char *path)
{
	return segment_say(e, SEGMENT_NOT_OURS, "Read it with mperfctl roofline or blocks",
		"%s is not an mperf recording: an instrumented program wrote it (MPERF_OUTPUT)",
		path);
}

static int say_unsealed(struct segment_error *e, const char *path)
{
	return segment_say(e, SEGMENT_UNSEALED,
		"Wait until its recording has ended, or record again",
		"%s is unfinished: it is still being written, or its writer died", path);
}

static int say_corrupt(struct segment_error *e, const char *path, const char *why)
{
	return segment_say(e, SEGMENT_CORRUPT, "Copy it again from its source, or record again",
		"%s is damaged: %s", path, why);
}

/* Source of all offsets: https://www.sqlite.org/fileformat.html, "The Database Header". */
static int judge_header(const char *path, const uint8_t h[100], struct segment_header *header,
	struct segment_error *e)
{
	uint32_t version = be32(h + 60), page_bytes = (uint32_t)h[16] << 8 | h[17];
	if (page_bytes == 1)
		page_bytes = 65536;
	header->n_changes = be32(h + 24);
	/* write and read version: 2 is a WAL, which sealing takes away */
	header->log = h[18] != 1 || h[19] != 1;
	if (memcmp(h, "SQLite format 3", 16) != 0)
		return say_not_ours(e, path, "it is not an SQLite file");
	if (be32(h + 68) != SEGMENT_APPLICATION_ID)
		return say_not_ours(e, path, "it is another program's SQLite file");
	if (version == 0)
		return say_corrupt(e, path, "it has no version");
	if (version != SEGMENT_VERSION)
		return segment_say(e, SEGMENT_OTHER_VERSION, "Read it with the mperf that wrote it",
			"%s has version %u of the format, but this mperf reads version %d", path,
			version, SEGMENT_VERSION);
	if (page_bytes < 512 || (page_bytes & (page_bytes - 1)) != 0)
		return say_corrupt(e, path, "its page size is not valid");
	/* with a log, the length in the header may be older or newer than the file */
	if (!header->log && (uint64_t)page_bytes * be32(h + 28) > header->n_bytes)
		return say_corrupt(e, path, "it is cut off");
	return 0;
}

int segment_judge_file(const char *path, struct segment_header *ret_header, struct segment_error *e)
{
	/* do not block on a FIFO */
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return segment_say_errno(e, path, errno);
	struct stat st;
	if (fstat(fd, &st) < 0)
		return segment_say_errno(e, path, errno);
	if (!S_ISREG(st.st_mode))
		return say_not_ours(e, path, "it is not a regular file");
	uint8_t bytes[100];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	if (n < 0)
		return segment_say_errno(e, path, errno);
	*ret_header = (struct segment_header){.n_bytes = (uint64_t)st.st_size};
	if (n == 0)
		return say_not_ours(e, path, "it is empty");
	if (feed_message_begins_file(bytes, (size_t)n))
		return say_output(e, path);
	if ((size_t)n < sizeof(bytes))
		return say_not_ours(e, path, "it is not an SQLite file");
	return judge_header(path, bytes, ret_header, e);
}

/* 1: there is a -wal or -journal beside it; 0; -ENOMEM. */
static int has_neighbours(const char *path)
{
	static const char *const suffix[] = {"-wal", "-journal"};
	for (size_t i = 0; i < 2; i++) {
		_cleanup_(freep) char *name = NULL;
		if (asprintf(&name, "%s%s", path, suffix[i]) < 0) {
			name = NULL;
			return -ENOMEM;
		}
		if (access(name, F_OK) == 0)
			return 1;
	}
	return 0;
}

#define URI_SEALED "?mode=ro&immutable=1"
#define URI_LIVE "?mode=ro"

/* The file: URI of an absolute path; what would end the path in it is escaped. NULL if out of memory. */
static char *make_uri(const char *real, const char *tail)
{
	static const char head[] = "file:";
	char *uri = malloc(sizeof(head) + 3 * strlen(real) + strlen(tail) + 1);
	if (!uri)
		return NULL;
	char *p = stpcpy(uri, head);
	for (const char *c = real; *c; c++) {
		if (*c == '?' || *c == '#' || *c == '%')
			p += sprintf(p, "%%%02X", (unsigned char)*c);
		else
			*p++ = *c;
	}
	stpcpy(p, tail);
	return uri;
}

char *segment_uri_of(sqlite3 *opened)
{
	const char *path = sqlite3_db_filename(opened, "main");
	return make_uri(path, sqlite3_uri_boolean(path, "immutable", 0) ? URI_SEALED : URI_LIVE);
}

void segment_restrain(sqlite3 *db)
{
	static const struct {
		int what, value;
	} config[] =
		{
			{SQLITE_DBCONFIG_DEFENSIVE, 1},
			{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
			{SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
			{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
			{SQLITE_DBCONFIG_ENABLE_VIEW, 0},
			{SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
			{SQLITE_DBCONFIG_DQS_DML, 0},
			{SQLITE_DBCONFIG_DQS_DDL, 0},
		},
	  limit[] = {
		  {SQLITE_LIMIT_LENGTH, SEGMENT_VALUE_BYTES_MAX},
		  {SQLITE_LIMIT_SQL_LENGTH, 65536}, /* our longest has a few hundred bytes */
		  {SQLITE_LIMIT_COLUMN, 64},
		  {SQLITE_LIMIT_EXPR_DEPTH, 32},
		  {SQLITE_LIMIT_COMPOUND_SELECT, 4},
		  {SQLITE_LIMIT_VDBE_OP, 25000},
		  {SQLITE_LIMIT_FUNCTION_ARG, 8},
		  {SQLITE_LIMIT_ATTACHED, 0},
		  {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64},
		  {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
		  {SQLITE_LIMIT_WORKER_THREADS, 0},
	  };
	for (size_t i = 0; i < sizeof(config) / sizeof(*config); i++)
		sqlite3_db_config(db, config[i].what, config[i].value, NULL);
	for (size_t i = 0; i < sizeof(limit) / sizeof(*limit); i++)
		sqlite3_limit(db, limit[i].what, limit[i].value);
}

/* The next byte of a statement without its comments, each run of space as one, and none where a
 * column ends; 0 at the end. Our own schema has neither strings nor C comments, so a text that has
 * them differs anyway. */
static char next_of(const char **p)
{
	bool space = false;
	for (;; (*p)++) {
		if ((*p)[0] == '-' && (*p)[1] == '-')
			*p += strcspn(*p, "\n");
		if (**p != ' ' && **p != '\t' && **p != '\n' && **p != '\r')
			break;
		space = true;
	}
	if (**p == ',' || **p == ')')
		space = false;
	return space ? ' ' : **p ? *(*p)++ : '\0';
}

static bool same_statement(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	for (;;) {
		char x = next_of(&a), y = next_of(&b);
		if (x != y)
			return false;
		if (!x)
			return true;
	}
}

/* Is the row of `ours` about a table that files of earlier versions lack, as this one does? */
static bool is_added(sqlite3_stmt *file, bool has_row, sqlite3_stmt *ours)
{
	const char *table = (const char *)sqlite3_column_text(ours, 2);
	const char *there = has_row ? (const char *)sqlite3_column_text(file, 2) : NULL;

	static const char *const added[] = {"moment", "second", "thread_time"};
	size_t i = 0;
	while (i < sizeof(added) / sizeof(*added) && !(table && strcmp(table, added[i]) == 0))
		i++;
	return i < sizeof(added) / sizeof(*added) && (!there || strcmp(there, table) != 0);
}

/* 0 the same; 1 not ours; an SQLite result code, negated. */
static int compare_schema(sqlite3 *db, sqlite3 *ours)
{
	static const char list[] =
		"SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name";
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *a = NULL, *b = NULL;
	int rc = sqlite3_prepare_v2(db, list, -1, &a, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(ours, list, -1, &b, NULL);
	if (rc != SQLITE_OK)
		return -rc;
	for (;;) {
		int ra = sqlite3_step(a), rb = sqlite3_step(b);
		if (ra != SQLITE_ROW && ra != SQLITE_DONE)
			return -ra;
		if (rb != SQLITE_ROW && rb != SQLITE_DONE)
			return -rb;
		while (rb == SQLITE_ROW && is_added(a, ra == SQLITE_ROW, b))
			rb = sqlite3_step(b);
		if (ra != rb)
			return 1;
		if (ra == SQLITE_DONE)
			return 0;
		for (int i = 0; i < 4; i++)
			if (!same_statement((const char *)sqlite3_column_text(a, i),
				    (const char *)sqlite3_column_text(b, i)))
				return 1;
	}
}

int segment_judge_schema(const char *path, sqlite3 *db, struct segment_error *e)
{
	_cleanup_(sqlite3_closep) sqlite3 *ours = NULL;
	if (sqlite3_open_v2(":memory:", &ours, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL) !=
			SQLITE_OK ||
		sqlite3_exec(ours, segment_schema, NULL, NULL, NULL) != SQLITE_OK)
		return -ENOMEM;
	int r = compare_schema(db, ours);
	if (r < 0)
		return segment_say_sqlite(e, path, db, -r);
	if (r > 0)
		return say_corrupt(e, path, "its tables are not those of mperf");
	return 0;
}

static int judge_seal(const char *path, sqlite3 *db, struct segment_error *e)
{
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *s = NULL;
	int rc =
		sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = 'sealed'", -1, &s, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return segment_say_sqlite(e, path, db, rc);
	if (rc == SQLITE_DONE || sqlite3_column_int(s, 0) != 1)
		return say_unsealed(e, path);
	return 0;
}

int segment_say_sqlite(struct segment_error *e, const char *path, sqlite3 *db, int rc)
{
	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return segment_say(
			e, SEGMENT_HELD, "Try again", "%s is held by another process", path);
	case SQLITE_FULL:
		return segment_say(e, SEGMENT_NO_SPACE, "Make room on its disc",
			"%s: no space is left on its disc", path);
	case SQLITE_READONLY:
		return segment_say(
			e, SEGMENT_READ_ONLY, "Make it writable", "%s cannot be written", path);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_ERROR:
	case SQLITE_SCHEMA:
		return say_corrupt(e, path, sqlite3_errmsg(db));
	default:
		break;
	}
	int error = sqlite3_system_errno(db);
	if (error == ENOSPC || error == EDQUOT || error == EFBIG)
		return segment_say_sqlite(e, path, db, SQLITE_FULL);
	return segment_say(e, SEGMENT_REFUSED, "Check its disc", "%s cannot be read or written: %s",
		path, sqlite3_errmsg(db));
}

static int connect(const char *path, const char *how, sqlite3 **ret_db, struct segment_error *e)
{
	_cleanup_(freep) char *real = realpath(path, NULL);
	if (!real)
		return segment_say_errno(e, path, errno);
	_cleanup_(freep) char *uri = make_uri(real, how);
	if (!uri)
		return -ENOMEM;
	int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
	_cleanup_(sqlite3_closep) sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(uri, &db, flags, NULL);
	if (!db)
		return -ENOMEM;
	if (rc != SQLITE_OK)
		return segment_say(e, SEGMENT_REFUSED, "Make it readable",
			"%s cannot be opened: %s", path, sqlite3_errmsg(db));
	segment_restrain(db);
	/* a cell that claims more than its page is an error, not a read beyond it; and a file that
	 * shrinks under us an error, not a SIGBUS. What is sorted stays in memory: files of a child
	 * that answers have the limit of its answer (offload.h) */
	sqlite3_exec(db, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY",
		NULL, NULL, NULL);
	*ret_db = TAKE_PTR(db);
	return 0;
}

/* 0: it is unchanged since it was sealed, or need not be read again; SEGMENT_UNSEALED without an
 * error text: it has no seal; SEGMENT_CORRUPT; -errno. */
static int judge_trailer(
	const char *path, struct segment_identity *verified, struct segment_error *e)
{
	struct segment_identity now;
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return segment_say_errno(e, path, errno);
	int r = segment_identify(fd, &now);
	if (r == 0 && segment_identity_equal(&now, verified))
		return 0;
	if (r == 0)
		r = trailer_verify(fd);
	if (r == -EIO)
		return segment_say_errno(e, path, EIO);
	if (r == TRAILER_NONE)
		return SEGMENT_UNSEALED;
	if (r == TRAILER_OTHER)
		return say_corrupt(e, path, "it has changed since it was sealed");
	if (r == 0)
		*verified = now;
	return r;
}

int segment_seal_is_whole(const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : trailer_is_there(fd);
}

int segment_open(const char *path, sqlite3 **ret_db, struct segment_error *ret_error)
{
	struct segment_identity nothing = {.bytes = 0};
	return segment_open_known(path, &nothing, ret_db, ret_error);
}

int segment_open_known(const char *path, struct segment_identity *verified, sqlite3 **ret_db,
	struct segment_error *ret_error)
{
	struct segment_header header;
	_cleanup_(sqlite3_closep) sqlite3 *db = NULL;
	int r = segment_judge_file(path, &header, ret_error);
	if (r != 0)
		return r;
	int sealed = judge_trailer(path, verified, ret_error);
	if (sealed != 0 && sealed != SEGMENT_UNSEALED)
		return sealed;
	r = header.log ? say_unsealed(ret_error, path) : 0;
	if (r == 0) {
		r = has_neighbours(path);
		r = r > 0 ? say_unsealed(ret_error, path) : r;
	}
	if (r == 0)
		r = connect(path, URI_SEALED, &db, ret_error);
	if (r == 0)
		r = segment_judge_schema(path, db, ret_error);
	if (r == 0)
		r = judge_seal(path, db, ret_error);
	if (r == 0 && sealed == SEGMENT_UNSEALED)
		r = say_corrupt(ret_error, path, "its seal is gone");
	if (r == 0)
		*ret_db = TAKE_PTR(db);
	return r;
}

int segment_open_live(const char *path, sqlite3 **ret_db, struct segment_error *ret_error)
{
	struct segment_header header;
	_cleanup_(sqlite3_closep) sqlite3 *db = NULL;
	int r = segment_judge_file(path, &header, ret_error);
	if (r == 0)
		r = connect(path, "?mode=ro", &db, ret_error);
	if (r != 0)
		return r;
	sqlite3_busy_timeout(db, READER_WAIT_MS);
	int rc = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
	/* the first read fixes the state that is seen from now on */
	r = rc == SQLITE_OK ? segment_judge_schema(path, db, ret_error)
			    : segment_say_sqlite(ret_error, path, db, rc);
	if (r == 0)
		*ret_db = TAKE_PTR(db);
	return r;
}
