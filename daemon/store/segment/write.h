/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The writer's internals: the state of a segment under construction
 *
 * Ids in the file are the session's ids. What the file already holds is marked here and not in the
 * structs themselves, so that one session can write several segments, each self-contained. Marks
 * set in a transaction are undone if it is rolled back.
 */

#include "daemon/store/segment/segment.h"
#include "daemon/store/segment/trailer.h"

/* Marks of the ids of one dictionary, in pages that are allocated on demand. A daemon's ids grow
 * for weeks, and a segment uses the latest and a few old ones. */
#define MARKS_PAGE_BITS 12
struct marks {
	uint8_t **page; /* of 1 << MARKS_PAGE_BITS marks each; NULL: all MARK_NONE */
	size_t n_pages;
};

/* A task of this segment that may still change, and a hash of what was written of it; 0: write it
 * again. task.changed is not enough: several segments may be written from one table. */
struct living {
	uint32_t id;
	uint32_t written_hash;
	uint32_t n_argv; /* charged bytes of its arguments */
};

/* Places of OpenMP whose frame has no name yet. */
struct unnamed_sites {
	struct unnamed_site {
		uint64_t site;
		uint32_t frame; /* ids */
	} *site;
	size_t n, size;
};

/* Ids to check again. */
struct ids {
	uint32_t *id;
	size_t n, size;
};

/* Frames whose name is still to come, and the user to charge for it. */
struct unnamed {
	struct unnamed_frame {
		uint32_t id;
		uid_t uid;
	} *frame;
	size_t n, size;
	size_t n_awaited; /* of them awaited, at the last look */
};

enum {
	MARK_NONE = 0,
	MARK_STORED = 1,
	/* frames: with their name; tasks: with their end, and unchanged since; files have their state above the
	 * first bit */
	MARK_FINAL = 2,
	MARK_NAMELESS = 3, /* frames: with the reason for having no name; one may come later */
};

/* The value of a mark before this transaction. */
struct mark_change {
	struct marks *marks;
	uint64_t id;
	uint8_t before;
};

/* A text that has a row. */
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
	INSERT_LABEL_SET,
	INSERT_TASK_LABEL_SET,
	INSERT_FILE,
	INSERT_FRAME,
	INSERT_FUNCTION,
	INSERT_SOURCE,
	INSERT_PLACE,
	INSERT_STACK,
	INSERT_WINDOW,
	INSERT_SAMPLE,
	INSERT_READING,
	INSERT_THREAD_TIME,
	INSERT_MOMENT,
	INSERT_SECOND,
	INSERT_LOSS,
	INSERT_LOOP_SITE,
	INSERT_LOOP_METRIC,
	INSERT_LOOP_COUNT,
	UPDATE_LOOP_SITE,
	UPDATE_TASK,
	UPDATE_FILE,
	UPDATE_FRAME,
	UPDATE_LEADER,
	N_SEGMENT_STATEMENTS,
};

/* Moments of the samples of the window that is written (moments.c). */
struct moments {
	uint16_t *at;    /* parts of the window, by row, ascending; NULL: there are none */
	uint32_t *first; /* by row's number, and one more */
	uint8_t *out;    /* of the rows written so far */
	size_t n_out, size_out;
};

struct segment {
	sqlite3 *db;
	int fd; /* the file we created; closed last, since closing it drops SQLite's locks */
	bool live;
	int wal_pages; /* in the log after the last commit */
	char *path;    /* with its folder resolved */
	char *labels;  /* labels of all processes in it, as JSON; NULL: none */
	uid_t labels_uid;
	sqlite3_stmt *statement[N_SEGMENT_STATEMENTS];

	int n_events;
	int64_t event[EVENTS_MAX];   /* id by the session's index; equal events share one */
	bool clock[EVENTS_MAX];      /* its value is time: it needs no reading */
	int64_t counted[EVENTS_MAX]; /* ids of the events that harts count, in their list */
	int n_counted;
	int64_t counted_row; /* id of the event that rows of such counts have; 0: there are none */
	uint32_t counted_serial;

	bool hart_known[HARTS_MAX];
	int32_t hart_leader[HARTS_MAX]; /* session event, -1 none seen yet */
	bool hart_planned[HARTS_MAX];   /* the plan named the leader, */
	uint8_t hart_rung[HARTS_MAX];   /* at this rung; */
	uint8_t hart_rungs[HARTS_MAX];  /* bit n: the leader at rung n is written too */
	uint32_t hz, hz_lowest;         /* as written */
	unsigned cut;                   /* the same */

	int64_t n_windows, n_samples; /* last ids */
	struct marks tasks, files, frames, stacks, sites, metrics;
	struct names functions, sources;
	struct unnamed unnamed;
	uint64_t n_asked_anew, n_asked_anew_before; /* of the file table, at the last look */
	struct unnamed_sites unnamed_sites;
	struct ids sighted;    /* stored files */
	struct ids chain;      /* nodes of the current stack to store, leaf first */
	struct shares *shares; /* of the current flush; NULL: no limits */
	uid_t payer;           /* whose row is written */
	struct living *living;
	size_t n_living, size_living;
	uint64_t (*lost)[N_LOSSES]; /* as of the last committed flush */
	int n_harts;

	struct trailer_writer *trailer;    /* while it is sealed */
	uint64_t n_run, run_max;           /* statements run so far; limit of this step */
	const struct window_row *next_row; /* of the current flush; NULL: none left */
	const struct loop_row *next_loop;
	uint32_t next_ended; /* of the flush, of the processes that ended */
	struct moments moments;

	struct mark_change *change; /* of the current transaction */
	size_t n_changes, size_changes;
	struct task **written; /* tasks whose `changed` was cleared in it */
	size_t n_written, size_written;
	int64_t n_windows_before, n_samples_before;
	int32_t hart_leader_before[HARTS_MAX];
	uint8_t hart_rungs_before[HARTS_MAX];
	uint32_t hz_before, hz_lowest_before;
	unsigned cut_before;
};

/* A value to bind. */
struct cell {
	enum { CELL_NULL, CELL_INTEGER, CELL_TEXT, CELL_BLOB } kind;
	int64_t integer; /* or the blob's length */
	const void *bytes;
};

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

/* --- transaction.c ---------------------------------------------------------------------------- */

/* Run a statement with its values. 0, SEGMENT_NO_SPACE, -errno. */
int segment_row(struct segment *g, enum segment_statement s, const struct cell *cell, size_t n);

/* Has this step reached its limit? */
static inline bool segment_step_is_over(const struct segment *g)
{
	return g->n_run >= g->run_max;
}

/* Outcome for our callers of an SQLite result: 0, SEGMENT_*, -errno. */
int segment_outcome(const struct segment *g, int rc);
int segment_exec(struct segment *g, const char *sql);

/* segment_end commits if r is 0 and rolls back otherwise; returns the outcome. */
int segment_begin(struct segment *g);
int segment_end(struct segment *g, int r);

uint8_t mark_get(const struct marks *m, uint64_t id);
int mark_set(struct segment *g, struct marks *m, uint64_t id, uint8_t mark);

/* Add an id; it stays after this transaction if that is committed. -ENOMEM. */
int ids_add(struct ids *ids, uint32_t id);

/* Charge the owner of the row being written. */
void segment_charge(struct segment *g, size_t bytes);

/* SQLite's hook: the log has n pages; keeps it from growing without limit. */
int segment_watch_log(void *segment, sqlite3 *db, const char *database, int n);

/* --- dictionary.c, loops.c: write what is not in the file yet; 0, SEGMENT_NO_SPACE, -errno -- */

/* May the task be shown at all? NULL: an unknown task. */
bool segment_may_write(const struct segment_flush *f, const struct task *task);
int segment_write_task(struct segment *g, const struct segment_flush *f, struct task *task);
int segment_write_frame(struct segment *g, const struct frame *frame);
int segment_write_stack(struct segment *g, const struct stack_tree *t, uint32_t id);
int segment_write_hart(struct segment *g, int hart, const struct window_row *row);
/* Write newly named frames, changed tasks and file states. Cost: linear in the unnamed frames,
 * living tasks and files of this segment, not of the session. */
int segment_write_names(struct segment *g, const struct segment_flush *f);
int segment_write_changed(struct segment *g, const struct segment_flush *f);

/* places.c: a place is at that frame, and gets its name together with the frame. */
int segment_name_site(struct segment *g, uint64_t site, const struct frame *frame);
/* The frame has got its final state. */
int segment_name_sites(struct segment *g, const struct frame *frame);
/* Write the loops' counts of the window, from next_loop until the step ends (loops.c). */
int segment_write_loops(struct segment *g, const struct segment_flush *f);

/* moments.c: before the first row, with each that is written, and after the last. 0, SEGMENT_NO_SPACE, -errno. */
int segment_begin_moments(struct segment *g, const struct window *w);
int segment_take_moments(struct segment *g, const struct window_row *row);
int segment_write_moments(struct segment *g);
void segment_clear_moments(struct segment *g);

/* seconds.c: the seconds of the window's harts and processes, after its last row. As the other writers. */
int segment_write_seconds(struct segment *g, const struct segment_flush *f);

/* --- create.c --------------------------------------------------------------------------------- */

/* Finalize prepared statements, and close. 0, SEGMENT_*, -errno. */
int segment_close(struct segment *g);

/* Store the labels of a task that is written. As the other writers. (labels.c) */
int segment_write_labels(struct segment *g, const struct task *task);
