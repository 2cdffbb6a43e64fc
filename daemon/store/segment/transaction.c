/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Rows, marks and transactions of a segment under construction
 *
 * If a transaction fails, our memory of it is undone: marks, names, numbers and the state of tasks
 * are reset to its beginning.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/segment/write.h"
#include "proto/base/array.h"

/* Treat an exceeded quota as a full disc. */
static bool is_full(int error)
{
	return error == ENOSPC || error == EDQUOT;
}

/* SQLite forgets the error of a COMMIT, whose rollback succeeds then and leaves errno.
 * Source: SQLite 3.40, vdbe.c, OP_AutoCommit, which does not pass abort_due_to_error. */
static int error_of(const struct segment *g)
{
	const int e = errno, kept = sqlite3_system_errno(g->db);
	return kept == 0 && (is_full(e) || e == EFBIG) ? e : kept;
}

int segment_outcome(const struct segment *g, int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_FULL:
		return SEGMENT_NO_SPACE;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN: {
		int e = error_of(g);
		if (is_full(e))
			return SEGMENT_NO_SPACE;
		return e == EROFS ? SEGMENT_READ_ONLY : e > 0 && e != ENOENT ? -e : -EIO;
	}
	case SQLITE_READONLY:
		return SEGMENT_READ_ONLY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return SEGMENT_CORRUPT;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return SEGMENT_HELD;
	default:
		return -EIO;
	}
}

int segment_exec(struct segment *g, const char *sql)
{
	return segment_outcome(g, sqlite3_exec(g->db, sql, NULL, NULL, NULL));
}

/* Bind it as parameter i (from 1); text and blobs are borrowed until the statement is bound again
 * or reset. Returns SQLite's result. */
static int cell_bind(sqlite3_stmt *s, int i, const struct cell *cell)
{
	switch (cell->kind) {
	case CELL_INTEGER:
		return sqlite3_bind_int64(s, i, cell->integer);
	case CELL_TEXT:
		return sqlite3_bind_text(s, i, cell->bytes, -1, SQLITE_STATIC);
	case CELL_BLOB:
		return sqlite3_bind_blob(s, i, cell->bytes, (int)cell->integer, SQLITE_STATIC);
	case CELL_NULL:
		break;
	}
	return sqlite3_bind_null(s, i);
}

int segment_row(struct segment *g, enum segment_statement s, const struct cell *cell, size_t n)
{
	sqlite3_stmt *statement = g->statement[s];
	int rc = SQLITE_OK;
	for (size_t i = 0; i < n && rc == SQLITE_OK; i++)
		rc = cell_bind(statement, (int)i + 1, &cell[i]);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(statement);
	int r = segment_outcome(g, rc);
	sqlite3_reset(statement);
	g->n_run++;
	return r;
}

#define MARKS_PAGE (1u << MARKS_PAGE_BITS)

static uint8_t *mark_at(const struct marks *m, uint64_t id)
{
	size_t page = id >> MARKS_PAGE_BITS;
	return page < m->n_pages && m->page[page] ? &m->page[page][id & (MARKS_PAGE - 1)] : NULL;
}

uint8_t mark_get(const struct marks *m, uint64_t id)
{
	const uint8_t *mark = mark_at(m, id);
	return mark ? *mark : MARK_NONE;
}

int mark_set(struct segment *g, struct marks *m, uint64_t id, uint8_t mark)
{
	size_t page = id >> MARKS_PAGE_BITS;
	int r = array_grow_long(&m->page, &m->n_pages, page + 1, sizeof(*m->page));
	if (r < 0)
		return r;
	if (!m->page[page])
		m->page[page] = calloc(MARKS_PAGE, 1);
	if (!m->page[page])
		return -ENOMEM;
	r = array_grow_long(&g->change, &g->size_changes, g->n_changes + 1, sizeof(*g->change));
	if (r < 0)
		return r;
	uint8_t *at = mark_at(m, id);
	g->change[g->n_changes++] = (struct mark_change){m, id, *at};
	*at = mark;
	return 0;
}

int ids_add(struct ids *ids, uint32_t id)
{
	int r = array_grow_long(&ids->id, &ids->size, ids->n + 1, sizeof(*ids->id));
	if (r == 0)
		ids->id[ids->n++] = id;
	return r;
}

void segment_charge(struct segment *g, size_t bytes)
{
	share_charge(g->shares, g->payer, bytes);
}

/* Do what SQLite does by default, and remember the length of the log. */
int segment_watch_log(void *segment, sqlite3 *db, const char *database, int n)
{
	struct segment *g = segment;
	g->wal_pages = n;
	/* a failure here is retried after the next commit; all data is in the log */
	if (n >= SEGMENT_WAL_PAGES)
		sqlite3_wal_checkpoint_v2(db, database, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	return SQLITE_OK;
}

/* A log at its limit: 0 if it will restart, SEGMENT_HELD if a reader still needs it. */
static int judge_log(struct segment *g)
{
	if (!g->live || (uint64_t)g->wal_pages * SEGMENT_PAGE_BYTES < SEGMENT_WAL_BYTES_MAX)
		return 0;
	int n = 0, n_moved = 0;
	int rc = sqlite3_wal_checkpoint_v2(g->db, NULL, SQLITE_CHECKPOINT_RESTART, &n, &n_moved);
	return rc == SQLITE_OK && n == n_moved ? 0
	       : rc == SQLITE_OK               ? SEGMENT_HELD
					       : segment_outcome(g, rc);
}

int segment_begin(struct segment *g)
{
	g->n_changes = 0;
	g->n_written = 0;
	g->functions.n_before = g->functions.n_names;
	g->sources.n_before = g->sources.n_names;
	g->n_windows_before = g->n_windows;
	g->n_samples_before = g->n_samples;
	memcpy(g->hart_leader_before, g->hart_leader, sizeof(g->hart_leader));
	memcpy(g->hart_rungs_before, g->hart_rungs, sizeof(g->hart_rungs));
	g->n_asked_anew_before = g->n_asked_anew;
	g->hz_before = g->hz;
	g->hz_lowest_before = g->hz_lowest;
	g->cut_before = g->cut;
	int r = judge_log(g);
	return r != 0 ? r : segment_row(g, BEGIN_TRANSACTION, NULL, 0);
}

static void names_forget(struct names *names)
{
	struct stored_name *name, *next;
	HASH_ITER (hh, names->by_text, name, next) {
		if (name->id <= names->n_before)
			continue;
		HASH_DEL(names->by_text, name);
		free(name);
	}
	names->n_names = names->n_before;
}

static void take_back(struct segment *g)
{
	/* newest first: an id can have changed twice */
	while (g->n_changes > 0) {
		const struct mark_change *c = &g->change[--g->n_changes];
		*mark_at(c->marks, c->id) = c->before;
	}
	for (size_t i = 0; i < g->n_written; i++)
		g->written[i]->changed = true;
	for (size_t i = 0; i < g->n_living; i++)
		g->living[i].written_hash = 0;
	names_forget(&g->functions);
	names_forget(&g->sources);
	g->n_windows = g->n_windows_before;
	g->n_samples = g->n_samples_before;
	memcpy(g->hart_leader, g->hart_leader_before, sizeof(g->hart_leader));
	memcpy(g->hart_rungs, g->hart_rungs_before, sizeof(g->hart_rungs));
	g->n_asked_anew = g->n_asked_anew_before;
	g->hz = g->hz_before;
	g->hz_lowest = g->hz_lowest_before;
	g->cut = g->cut_before;
}

/* Drop entries that are final, and entries added in a failed transaction. */
static void unnamed_keep_stored(struct segment *g)
{
	struct unnamed *u = &g->unnamed;
	size_t kept = 0;
	for (size_t i = 0; i < u->n; i++)
		if (mark_get(&g->frames, u->frame[i].id) == MARK_STORED)
			u->frame[kept++] = u->frame[i];
	u->n = kept;
}

static void living_keep_stored(struct segment *g)
{
	size_t kept = 0;
	for (size_t i = 0; i < g->n_living; i++)
		if (mark_get(&g->tasks, g->living[i].id) == MARK_STORED)
			g->living[kept++] = g->living[i];
	g->n_living = kept;
}

static void ids_drop_forgotten(struct ids *ids, const struct marks *m)
{
	while (ids->n > 0 && mark_get(m, ids->id[ids->n - 1]) == MARK_NONE)
		ids->n--;
}

int segment_end(struct segment *g, int r)
{
	if (r == 0)
		r = segment_row(g, COMMIT_TRANSACTION, NULL, 0);
	if (r != 0) {
		/* SQLite may have rolled back already, which is as good */
		if (!sqlite3_get_autocommit(g->db))
			sqlite3_exec(g->db, "ROLLBACK", NULL, NULL, NULL);
		take_back(g);
	}
	unnamed_keep_stored(g);
	living_keep_stored(g);
	ids_drop_forgotten(&g->sighted, &g->files);
	return r;
}
