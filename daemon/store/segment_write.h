/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The writer's own: what a segment under construction remembers
 *
 * Ids in the file are the session's ids. What the file already holds is marked here and not in the
 * structs themselves, so that one session can write several segments, each self-contained. A mark
 * that was set in a transaction is taken back if the transaction is.
 */

#include "daemon/store/segment.h"

/* What is known about each id of one dictionary: by id, in pages that are made when they are
 * needed. A daemon counts ids up for weeks, and a segment sees the few old ones that live on and
 * the latest.
 */
#define MARKS_PAGE_BITS 12
struct marks {
	uint8_t **page; /* of 1 << MARKS_PAGE_BITS marks each; NULL: all MARK_NONE */
	size_t n_pages;
};

/* A task of this segment that may still change, and a hash of what was written of it; 0: to be
 * written again. task.changed cannot tell: several segments may be written from one table. */
struct living {
	uint32_t id;
	uint32_t told;
	uint32_t n_argv; /* bytes of its arguments that were charged */
};

/* Ids to look at again. */
struct ids {
	uint32_t *id;
	size_t n, size;
};

/* Frames whose name is still to come, and whose share it will be charged to. */
struct unnamed {
	struct unnamed_frame {
		uint32_t id;
		uid_t uid;
	} * frame;
	size_t n, size;
};

enum {
	MARK_NONE = 0,
	MARK_STORED = 1,
	MARK_FINAL = 2, /* frames: with its name or the reason for having none; tasks: with
			   their end, and nothing came since; files have their state above the
			   first bit */
};

/* One mark as it was before this transaction. */
struct mark_change {
	struct marks *marks;
	uint32_t id;
	uint8_t before;
};

/* A text that has its row. */
struct stored_name {
	uint32_t id;
	UT_hash_handle hh;
	char text[];
};

/* function or source */
struct names {
	struct stored_name *by_text;
	uint32_t n_names, n_before; /* n_before: when the transaction began */
};

enum segment_statement {
	BEGIN_TRANSACTION,
	COMMIT_TRANSACTION,
	INSERT_META,
	INSERT_EVENT,
	INSERT_HART,
	INSERT_CGROUP,
	INSERT_TASK,
	INSERT_FILE,
	INSERT_FRAME,
	INSERT_FUNCTION,
	INSERT_SOURCE,
	INSERT_PLACE,
	INSERT_STACK,
	INSERT_WINDOW,
	INSERT_SAMPLE,
	INSERT_READING,
	INSERT_LOSS,
	INSERT_LOOP_SITE,
	INSERT_LOOP_METRIC,
	INSERT_LOOP_COUNT,
	UPDATE_TASK,
	UPDATE_FILE,
	UPDATE_FRAME,
	UPDATE_LEADER,
	N_SEGMENT_STATEMENTS,
};

struct segment {
	sqlite3 *db;
	int fd; /* the file we made; closed last: closing it drops SQLite's locks */
	bool live;
	int wal_pages; /* in the log after the last commit */
	char *path;    /* with its folder resolved */
	sqlite3_stmt *statement[N_SEGMENT_STATEMENTS];

	int n_events;
	int64_t event[EVENTS_MAX]; /* id by the session's index; equal events share one */
	bool clock[EVENTS_MAX];    /* its value is time: needs no reading */

	bool hart_known[HARTS_MAX];
	int32_t hart_leader[HARTS_MAX]; /* session event, -1 none seen yet */
	bool hart_planned[HARTS_MAX];   /* the plan named the leader, */
	uint8_t hart_rung[HARTS_MAX];   /* at this rung; */
	uint8_t hart_rungs[HARTS_MAX];  /* bit n: the leader at rung n is told too */
	uint32_t hz_lowest;             /* as told */

	int64_t n_windows, n_samples; /* last ids */
	struct marks tasks, files, frames, stacks, sites, metrics;
	struct names functions, sources;
	struct unnamed unnamed;
	struct ids sighted; /* stored files */
	struct ids chain;   /* nodes of the stack in hand that are to be stored, leaf first */
	struct shares *shares; /* of the flush under way; NULL: no limits */
	uid_t payer;           /* whose row is written */
	struct living *living;
	size_t n_living, size_living;
	uint64_t (*lost)[N_LOSSES]; /* as of the last committed flush */
	int n_harts;

	struct mark_change *change; /* of the transaction under way */
	size_t n_changes, size_changes;
	struct task **told; /* tasks whose `changed` was taken down in it */
	size_t n_told, size_told;
	int64_t n_windows_before, n_samples_before;
	int32_t hart_leader_before[HARTS_MAX];
	uint8_t hart_rungs_before[HARTS_MAX];
	uint32_t hz_lowest_before;
};

/* One value to bind. */
struct cell {
	enum { CELL_NULL, CELL_INTEGER, CELL_TEXT, CELL_BLOB } kind;
	int64_t integer; /* or the blob's length */
	const void *bytes;
};

/* Bind it as parameter i (from 1); text and blobs are borrowed until the statement is bound anew or
 * reset. SQLite's result. */
int cell_bind(sqlite3_stmt *s, int i, const struct cell *cell);

static inline struct cell cell_blob(const void *bytes, int64_t n)
{
	return (struct cell){
		.kind = bytes && n ? CELL_BLOB : CELL_NULL, .integer = n, .bytes = bytes};
}

#define CELL_I(v) ((struct cell){.kind = CELL_INTEGER, .integer = (int64_t)(v)})
#define CELL_I_OR_NULL(known, v) ((known) ? CELL_I(v) : (struct cell){.kind = CELL_NULL})
#define CELL_T(v) ((struct cell){.kind = CELL_TEXT, .bytes = (v)}) /* NULL stays NULL */
#define CELL_B(p, n) cell_blob((p), (n))
#define ROW(g, statement, ...)                                                                     \
	segment_row((g), (statement), (const struct cell[]){__VA_ARGS__},                          \
		sizeof((const struct cell[]){__VA_ARGS__}) / sizeof(struct cell))

/* Run a statement with its values. 0, SEGMENT_NO_SPACE, -errno. */
int segment_row(struct segment *g, enum segment_statement s, const struct cell *cell, size_t n);

/* What an SQLite result means to our callers: 0, SEGMENT_NO_SPACE, -errno. */
int segment_outcome(const struct segment *g, int rc);
int segment_exec(struct segment *g, const char *sql);

/* Finalize what is prepared, and close. 0, SEGMENT_*, -errno. */
int segment_close(struct segment *g);

/* Transactions. segment_end commits when r is 0 and rolls back otherwise; returns what came of it.
 */
int segment_begin(struct segment *g);
int segment_end(struct segment *g, int r);

uint8_t mark_get(const struct marks *m, uint32_t id);
int mark_set(struct segment *g, struct marks *m, uint32_t id, uint8_t mark);

/* Dictionaries: write what is not in the file yet. 0, SEGMENT_NO_SPACE, -errno. */
/* May it be shown at all? NULL: a task that is not known. */
bool segment_may_tell(const struct segment_flush *f, const struct task *task);
int segment_write_task(struct segment *g, const struct segment_flush *f, struct task *task);
int segment_write_stack(struct segment *g, const struct stack_tree *t, uint32_t id);
int segment_write_hart(struct segment *g, int hart, const struct window_row *row);
/* Frames that were named since; changed tasks, file states. Takes as long as there are unnamed
 * frames, living tasks and files in this segment, however many the session has seen. */
int segment_write_names(struct segment *g, const struct segment_flush *f);
int segment_write_changed(struct segment *g, const struct segment_flush *f);

/* What loops counted in the window (segment_loops.c). */
int segment_write_loops(struct segment *g, const struct segment_flush *f);

/* Add an id, for the time after this transaction too if it is committed. -ENOMEM. */
int ids_add(struct ids *ids, uint32_t id);

/* Charge the user whose row is written. */
void segment_charge(struct segment *g, size_t bytes);

/* The log has n pages: see to it that it does not grow for ever. */
int segment_watch_log(void *segment, sqlite3 *db, const char *database, int n);

/* Grow *array of n elements to at least `need`, zeroed. -ENOMEM. */
int segment_grow(void *array, size_t *size, size_t need, size_t element_bytes);
