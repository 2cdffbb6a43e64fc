/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Rows of an untrusted file
 *
 * A table's rows come in the order of its key; a damaged or forged tree can send the reader round
 * in circles, so that an id recurs. So every scan checks that its ids rise, which bounds it by the
 * number of ids. Errors that SQLite finds are reported with the file's name.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/query/load.h"
#include "daemon/query/load_part.h"

int query_fail(struct query_error *error, Mperf__FailureKind kind, const char *remedy,
	const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	snprintf(error->remedy, sizeof(error->remedy), "%s", remedy);
	error->kind = kind;
	return QUERY_FAILED;
}

static int fail_damaged(struct query_error *error, const char *path, const char *what)
{
	return query_fail(error, MPERF__FAILURE_KIND__FAILURE_BROKEN,
		"copy it again from its source, or record again", "%s is damaged: %s", path, what);
}

int query_fail_damaged(const struct loaded *l, const char *what)
{
	return fail_damaged(l->error, l->path, what);
}

int query_fail_full(const struct loaded *l, int r)
{
	if (r != KEY_TABLE_FULL)
		return r;
	return query_fail(l->error, MPERF__FAILURE_KIND__FAILURE_LIMIT,
		"narrow the question with --since, --until or --pid",
		"%s has more distinct names or stacks than one answer can hold", l->path);
}

int query_fail_sqlite(struct query_error *error, const char *path, sqlite3 *db, int rc)
{
	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
	case SQLITE_FULL:
	case SQLITE_PERM:
		return query_fail(error, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			"check its disc, and ask again", "%s cannot be read now: %s", path,
			sqlite3_errmsg(db));
	default:
		return fail_damaged(error, path, sqlite3_errmsg(db));
	}
}

static int fail_sqlite(const struct loaded *l, int rc)
{
	return query_fail_sqlite(l->error, l->path, l->db, rc);
}

int cursor_open(struct cursor *c, struct loaded *l, const char *sql)
{
	*c = (struct cursor){.loaded = l};
	int rc = sqlite3_prepare_v2(l->db, sql, -1, &c->statement, NULL);
	return rc == SQLITE_OK ? 0 : fail_sqlite(l, rc);
}

int cursor_bind(struct cursor *c, int64_t first, int64_t second)
{
	sqlite3_reset(c->statement);
	c->begun = false;
	int rc = sqlite3_bind_int64(c->statement, 1, first);
	if (rc == SQLITE_OK && sqlite3_bind_parameter_count(c->statement) > 1)
		rc = sqlite3_bind_int64(c->statement, 2, second);
	return rc == SQLITE_OK ? 0 : fail_sqlite(c->loaded, rc);
}

int cursor_next(struct cursor *c)
{
	int rc = sqlite3_step(c->statement);
	if (rc == SQLITE_DONE)
		return CURSOR_END;
	if (rc != SQLITE_ROW)
		return fail_sqlite(c->loaded, rc);
	int64_t id = cursor_integer(c, 0), pair = c->pairs ? cursor_integer(c, 1) : 0;
	bool again = id == c->last && (!c->pairs || pair <= c->last_pair);
	if (c->begun && !c->ties && (id < c->last || again))
		return query_fail_damaged(c->loaded, "its rows are out of order");
	c->begun = true;
	c->last = id;
	c->last_pair = pair;
	return 0;
}

void cursor_close(struct cursor *c)
{
	sqlite3_finalize(c->statement);
	c->statement = NULL;
}

uint32_t cursor_id(const struct cursor *c, int column, uint32_t max)
{
	int64_t id = cursor_integer(c, column);
	return id > 0 && id <= max ? (uint32_t)id : 0;
}

int cursor_text(const struct cursor *c, int column, uint32_t *ret_text)
{
	const char *text = (const char *)sqlite3_column_text(c->statement, column);
	return query_fail_full(c->loaded, text_get(c->loaded->texts, text, ret_text));
}

int load_array(
	struct loaded *l, const char *sql, void *array, uint32_t *ret_n, size_t element_bytes)
{
	struct cursor c;
	int r = cursor_open(&c, l, sql);
	if (r == 0)
		r = cursor_next(&c);
	int64_t n = r == 0 ? cursor_integer(&c, 0) : 0;
	cursor_close(&c);
	if (r != 0)
		return r;
	if (n < 0 || n > QUERY_IDS_MAX)
		return query_fail_damaged(l, "an id is out of bounds");
	void *p = calloc((size_t)n + 1, element_bytes);
	if (!p)
		return -ENOMEM;
	*(void **)array = p;
	*ret_n = (uint32_t)n;
	return 0;
}

int load_each(struct loaded *l, const char *sql, bool pairs, load_take *take)
{
	struct cursor c;
	int r = cursor_open(&c, l, sql);
	c.pairs = pairs;
	while (r == 0) {
		r = cursor_next(&c);
		if (r == 0)
			r = take(l, &c);
	}
	cursor_close(&c);
	return r == CURSOR_END ? 0 : r;
}
