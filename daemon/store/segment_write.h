/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The writer's own: what a segment under construction remembers
 *
 * Ids in the file are the session's ids. What the file already holds is marked here and not in the
 * structs themselves, so that one session can write several segments, each self-contained. A mark
 * that was set in a transaction is taken back if the transaction is.
 */

#include "daemon/store/segment.h"

/* What is known about each id of one dictionary. */
struct marks {
	uint8_t *mark; /* by id */
	uint32_t size;
};

enum {
	MARK_NONE = 0,
	MARK_STORED = 1,
	MARK_FINAL = 2, /* frames: with its name or the reason for having none; files have
			   their state above the first bit */
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
	UPDATE_TASK,
	UPDATE_FILE,
	UPDATE_FRAME,
	UPDATE_LEADER,
	N_SEGMENT_STATEMENTS,
};

struct segment {
	sqlite3 *db;
	int fd;     /* the file we made; closed last: closing it drops SQLite's locks */
	char *path; /* with its folder resolved */
	sqlite3_stmt *statement[N_SEGMENT_STATEMENTS];

	int n_events;
	int64_t event[EVENTS_MAX]; /* id by the session's index; equal events share one */
	bool clock[EVENTS_MAX];    /* its value is time: needs no reading */

	bool hart_known[HARTS_MAX];
	int32_t hart_leader[HARTS_MAX]; /* session event, -1 none seen yet */
	bool hart_planned[HARTS_MAX];   /* the plan named the leader */

	int64_t n_windows, n_samples; /* last ids */
	struct marks tasks, files, frames, stacks;
	struct names functions, sources;
	uint32_t *unnamed; /* stored frames whose name is still to come */
	size_t n_unnamed, size_unnamed;
	uint64_t (*lost)[N_LOSSES]; /* as of the last committed flush */
	int n_harts;

	struct mark_change *change; /* of the transaction under way */
	size_t n_changes, size_changes;
	struct task **told; /* tasks whose `changed` was taken down in it */
	size_t n_told, size_told;
	int64_t n_windows_before, n_samples_before;
	int32_t hart_leader_before[HARTS_MAX];
};

/* One value to bind. */
struct cell {
	enum { CELL_NULL, CELL_INTEGER, CELL_TEXT, CELL_BLOB } kind;
	int64_t integer; /* or the blob's length */
	const void *bytes;
};

#define CELL_I(v) ((struct cell){.kind = CELL_INTEGER, .integer = (int64_t)(v)})
#define CELL_I_OR_NULL(known, v) ((known) ? CELL_I(v) : (struct cell){.kind = CELL_NULL})
#define CELL_T(v) ((struct cell){.kind = CELL_TEXT, .bytes = (v)}) /* NULL stays NULL */
#define CELL_B(p, n)                                                                               \
	((struct cell){.kind = (p) && (n) ? CELL_BLOB : CELL_NULL, .integer = (n), .bytes = (p)})
#define ROW(g, statement, ...)                                                                     \
	segment_row((g), (statement), (const struct cell[]){__VA_ARGS__},                          \
		sizeof((const struct cell[]){__VA_ARGS__}) / sizeof(struct cell))

/* Run a statement with its values. 0, SEGMENT_NO_SPACE, -errno. */
int segment_row(struct segment *g, enum segment_statement s, const struct cell *cell, size_t n);

/* What an SQLite result means to our callers: 0, SEGMENT_NO_SPACE, -errno. */
int segment_outcome(const struct segment *g, int rc);
int segment_exec(struct segment *g, const char *sql);

/* Transactions. segment_end commits when r is 0 and rolls back otherwise; returns what came of it.
 */
int segment_begin(struct segment *g);
int segment_end(struct segment *g, int r);

uint8_t mark_get(const struct marks *m, uint32_t id);
int mark_set(struct segment *g, struct marks *m, uint32_t id, uint8_t mark);

/* Dictionaries: write what is not in the file yet. 0, SEGMENT_NO_SPACE, -errno. */
int segment_write_task(struct segment *g, const struct segment_flush *f, struct task *task);
int segment_write_stack(struct segment *g, const struct stack_tree *t, uint32_t id);
int segment_write_hart(struct segment *g, int hart, const struct window_row *row);
/* Frames that were named since, changed tasks, file states. */
int segment_write_names(struct segment *g, const struct segment_flush *f);
int segment_write_changed(struct segment *g, const struct segment_flush *f);

/* Grow *array of n elements to at least `need`, zeroed. -ENOMEM. */
int segment_grow(void *array, size_t *size, size_t need, size_t element_bytes);
