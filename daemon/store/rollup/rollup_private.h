/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The roll-up's internals
 *
 * rollup.c walks the source's windows, file.c opens the files, rows.c reads and writes their rows,
 * names.c, tasks.c and stacks.c match dictionaries, sum.c and loops.c add rows up, fold.c makes them fewer
 * and window.c writes them. extract.c has the same done for one job's rows of window files.
 *
 * Content has an index (key_table, text_table), and an index gets a row in the target when a row
 * needs it. What the target already holds is entered first, with its rows; ids of the source are
 * translated to indices when first used.
 */

#include "daemon/store/key.h"
#include "daemon/store/rollup/rollup.h"
#include "daemon/store/segment/write.h" /* struct cell */

/* Maximum ids of a source, as in a query. */
#define ROLLUP_IDS_MAX (1u << 24)
/* Maximum events of a file, as in a query. */
#define ROLLUP_EVENTS_MAX 255
/* The row of an event for which the target has no room, since earlier sources had as many. Its counts are left out,
 * and its samples counted as not stored. */
#define ROLLUP_NO_EVENT (ROLLUP_EVENTS_MAX + 1)

enum rollup_read {
	READ_META,
	READ_EVENT,
	READ_HART,
	READ_NOTE,
	READ_CGROUP,
	READ_TASK,
	READ_LABELS,
	READ_FILE,
	READ_FRAME,
	READ_FUNCTION,
	READ_SOURCE,
	READ_PLACE,
	READ_STACK,
	READ_WINDOW,
	READ_SAMPLE,
	READ_READING,
	READ_LOSS,
	READ_LOOP_SITE,
	READ_LOOP_METRIC,
	READ_LOOP_COUNT,
	N_ROLLUP_READS,
};

enum rollup_write {
	WRITE_META,
	WRITE_EVENT,
	WRITE_HART,
	WRITE_CGROUP,
	WRITE_TASK,
	WRITE_LABELS,
	WRITE_TASK_LABELS,
	WRITE_FILE,
	WRITE_FRAME,
	WRITE_FUNCTION,
	WRITE_SOURCE,
	WRITE_PLACE,
	WRITE_STACK,
	WRITE_WINDOW,
	WRITE_SAMPLE,
	WRITE_READING,
	WRITE_LOSS,
	WRITE_LOOP_SITE,
	WRITE_LOOP_METRIC,
	WRITE_LOOP_COUNT,
	N_ROLLUP_WRITES,
};

/* Rows in the target by index of their content; 0: no row yet. */
struct rows {
	uint32_t *row;
	uint32_t size;
	uint32_t n_rows; /* the highest row */
};

/* In the place of an index: the task is of another job than the one that is extracted. */
#define ROLLUP_OTHER_JOB UINT32_MAX

/* One dictionary. */
struct entries {
	struct key_table keys;
	struct rows rows;
	uint32_t *origin; /* by index: id in the source, while it has no row; 0: made by us */
	uint32_t size_origin;
};

/* Ids of the source as index + 1; 0: not used yet. */
struct translation {
	uint32_t *index;
	uint32_t n_ids;
};

/* The sums of one row of the target. */
struct sum {
	int64_t count, weight_ns, truncated, uncounted;
	uint32_t reading; /* index + 1 in readings; 0 none */
};
struct sum_reading {
	uint32_t event; /* row in the target */
	uint32_t next;
	int64_t value, enabled_ns, running_ns;
	bool whole; /* all were sums of periods */
};
struct sum_rows {
	struct key_table keys; /* SUM_KEY */
	struct sum *sum;
	uint32_t size;
};
struct sums {
	struct sum_rows rows;
	struct sum_reading *reading;
	uint32_t n_readings, size_readings;
	struct key_table losses; /* hart, cause (text) */
	int64_t *loss;
	uint32_t size_loss;
};
/* task and stack: index + 1, 0 none; event: row; hart as in the target. */
#define SUM_KEY(task, stack, event, rung, hart)                                                    \
	((struct key){{(uint64_t)(task) << 32 | (stack), (uint64_t)(event) << 32 | (rung),         \
		(uint64_t)(hart)}})

struct rollup_hart {
	bool known;
	uint8_t rung, user_only;
	uint32_t leader; /* row of the event, 0 none */
};

struct rollup {
	enum tier tier;
	const char *source_path, *target_path; /* as the caller has them */
	struct store_error *error;
	sqlite3 *source, *target;
	sqlite3_stmt *read[N_ROLLUP_READS], *write[N_ROLLUP_WRITES];
	uint32_t stacks_max;   /* of the tier */
	struct shares *shares; /* NULL: no limits */
	bool has_payer;        /* rows are charged to: */
	uid_t payer;
	/* TIER_WINDOW: an extract, which has the rows of one job as they are. Its text in `labels`; a
	 * task of the source with others is ROLLUP_OTHER_JOB in `task`. */
	uint32_t only;
	bool live; /* the source need not be sealed */

	struct text_table texts; /* of all kinds, the source's and the target's */
	uint32_t boot;           /* text: the target's */
	/* by text; one of labels is "UID JSON" */
	struct rows functions, sources, cgroups, labels;
	struct entries files, frames, stacks, tasks;
	uint32_t n_events, event_text[ROLLUP_EVENTS_MAX + 1]; /* by row */
	int64_t n_windows, n_samples;

	struct translation task, file, frame, stack, function, source_name, cgroup, label_set;
	uint32_t event[ROLLUP_EVENTS_MAX + 1]; /* source's id → row */
	struct rollup_hart hart[HARTS_MAX];    /* the target's */
	uint32_t core[HARTS_MAX];              /* of the source: text, the platform; 0: not known */
	int16_t hart_as[HARTS_MAX];            /* what a hart of the source counts as */
	struct sums sums;
	struct rollup_loops *loops;
	bool reading; /* READ_READING is on a row */
	struct {
		uint32_t id;
		int64_t frame;
	} * path; /* of the current stack, leaf first */
	uint32_t size_path;
};

/* --- rows.c, file.c: outcomes, statements, the target's life ---------------------------------- */

/* Set the error about a file; returns the outcome. */
int rollup_fail(
	struct rollup *r, int outcome, const char *path, const char *remedy, const char *what);
int rollup_fail_source(struct rollup *r, const char *what);
int rollup_fail_target(struct rollup *r, const char *what);
/* What a result of SQLite means: 0 for OK, ROW and DONE. */
int rollup_source_outcome(struct rollup *r, int rc);
int rollup_target_outcome(struct rollup *r, int rc);
/* Outcome of a key or text table: KEY_TABLE_FULL becomes a broken source, which cannot be added. */
int rollup_table_outcome(struct rollup *r, int outcome);

/* Step a statement of the source with `id` bound to ?1: 0 on a row, ROLLUP_NO_ROW, …. The row stays
 * valid until the statement is used again. */
enum { ROLLUP_NO_ROW = 64 };
int rollup_get(struct rollup *r, enum rollup_read s, int64_t id);
int rollup_next(struct rollup *r, enum rollup_read s);
static inline int64_t rollup_integer(const struct rollup *r, enum rollup_read s, int column)
{
	return sqlite3_column_int64(r->read[s], column);
}
/* A column as text's id in r->texts; 0 for NULL. */
int rollup_text(struct rollup *r, sqlite3_stmt *st, int column, uint32_t *ret_text);

/* Run a statement of the target with these values. */
int rollup_put(struct rollup *r, enum rollup_write s, const struct cell *cell, size_t n);
#define PUT(r, statement, ...)                                                                     \
	rollup_put((r), (statement), (const struct cell[]){__VA_ARGS__},                           \
		sizeof((const struct cell[]){__VA_ARGS__}) / sizeof(struct cell))

int rollup_prepare_source(struct rollup *r);
int rollup_prepare_target(struct rollup *r);

/* Open the source and prepare its statements. 0, ROLLUP_SOURCE_BROKEN, -errno. */
int rollup_open_source(struct rollup *r);
/* Open the target, or make a new one at path, in a transaction. */
int rollup_open_target(struct rollup *r, const char *path, bool new);
int rollup_exec(struct rollup *r, const char *sql);
/* A number in the target's meta; `otherwise` if it is missing. */
int rollup_meta(struct rollup *r, const char *key, int64_t otherwise, int64_t *ret_value);
/* A text in it; 0 if it is missing. */
int rollup_meta_text(struct rollup *r, const char *key, uint32_t *ret_text);
/* Copy a sealed file, without its seal, to a new name, which must not exist. 0,
 * ROLLUP_TARGET_BROKEN: it has changed since; STORE_NO_SPACE, -errno. */
int rollup_copy(struct rollup *r, const char *from, const char *to);
/* Write the seal of a closed file. 0, STORE_NO_SPACE, -errno. */
int rollup_write_seal(struct rollup *r, const char *path);
/* Check all pages. 0, ROLLUP_TARGET_BROKEN, -errno. */
int rollup_check_target(struct rollup *r);
int rollup_rename(struct rollup *r, const char *from, const char *to);
/* Close the target; uncommitted changes are rolled back. 0, ROLLUP_*, -errno. */
int rollup_close_target(struct rollup *r);

/* --- names.c, tasks.c, stacks.c: dictionaries ---------------------------------------------------------- */

/* Enter what the target holds. 0, ROLLUP_TARGET_BROKEN, -errno. */
int rollup_load_names(struct rollup *r);
int rollup_load_tasks(struct rollup *r); /* after the names */
int rollup_load_stacks(struct rollup *r);
/* Run `take` on each row of a statement of the target. */
int rollup_each(struct rollup *r, const char *sql,
	int (*take)(struct rollup *r, sqlite3_stmt *st, void *userdata), void *userdata);
void rollup_forget_names(struct rollup *r);
void rollup_forget_stacks(struct rollup *r);
void entries_clear(struct entries *e);
/* Translate events and harts of the source, all at once. */
int rollup_take_events(struct rollup *r);
int rollup_take_harts(struct rollup *r);
/* Which core each hart of the source is. Call it before the above. */
int rollup_take_cores(struct rollup *r);
/* What its meta says of them: notes, leaders of other rungs, the lowest rate. Call after both. */
int rollup_take_notes(struct rollup *r);

/* The index + 1 of a source's task (0 for 0, for a missing one, and in an extract for one of another job)
 * or stack. 0, ROLLUP_*. */
int rollup_task(struct rollup *r, int64_t id, uint32_t *ret_index);
int rollup_stack(struct rollup *r, int64_t id, uint32_t *ret_index);
/* The stack with only this one's leaf. */
int rollup_leaf(struct rollup *r, uint32_t stack, uint32_t *ret_index);
/* The program that stands for several programs of this task's user; for task 0, of any user. */
int rollup_other_program(struct rollup *r, uint32_t task, uint32_t *ret_index);
/* The stack of the function that stands for several functions of this kind (named or not). */
int rollup_other_stack(struct rollup *r, uint32_t stack, uint32_t *ret_index);

/* The row of an entry, written if it has none yet; 0 for none. */
int rollup_task_row(struct rollup *r, uint32_t index, uint32_t *ret_row);
int rollup_stack_row(struct rollup *r, uint32_t index, bool *ret_cut, uint32_t *ret_row);
int rollup_file_row(struct rollup *r, uint32_t index, uint32_t *ret_row);
int rollup_name(struct rollup *r, bool function, int64_t id, uint32_t *ret_text);
int rollup_name_row(struct rollup *r, bool function, uint32_t text, uint32_t *ret_row);
int rollup_file(struct rollup *r, int64_t id, uint32_t *ret_index);
/* The text that an id of a dictionary of the source stands for; 0 where it has none. */
int rollup_name_of(struct rollup *r, enum rollup_read s, struct translation *t, int64_t id,
	uint32_t *ret_text);
/* The row of a text in a dictionary of the target, written if it has none yet; 0 for none. */
int rollup_name_row_of(
	struct rollup *r, enum rollup_write s, struct rows *rows, uint32_t text, uint32_t *ret_row);

/* The index of a key, new ones with their origin. */
int entries_get(struct rollup *r, struct entries *e, const struct key *key, uint32_t origin,
	uint32_t *ret_index);
/* Enter content that the target holds in that row. */
int entries_load(struct rollup *r, struct entries *e, const struct key *key, int64_t row);
int rows_set(struct rows *rows, uint32_t index, uint32_t row);
/* Give an index the next row. */
int rows_add(struct rows *rows, uint32_t index, uint32_t *ret_row);
static inline uint32_t rows_get(const struct rows *rows, uint32_t index)
{
	return index < rows->size ? rows->row[index] : 0;
}
/* 0 with a pointer to an id's translation; ROLLUP_SOURCE_BROKEN if the id is out of bounds. */
int translation_get(struct rollup *r, struct translation *t, int64_t id, uint32_t **ret_index);

/* --- loops.c ---------------------------------------------------------------------------------- */

/* Enter the target's loops. 0, ROLLUP_TARGET_BROKEN, -errno. */
int rollup_load_loops(struct rollup *r);
/* Add the current row of READ_LOOP_COUNT. */
int rollup_take_loop(struct rollup *r);
/* Are there sums of the current window? */
bool rollup_has_loops(const struct rollup *r);
/* Write the sums of the current window, and clear them. */
int rollup_write_loops(struct rollup *r);
void rollup_loops_clear(struct rollup *r);

/* --- sum.c ------------------------------------------------------------------------------------ */

/* Add the current row of READ_SAMPLE, with its readings. */
int sums_take_sample(struct rollup *r);
/* Add the current row of READ_LOSS. */
int sums_take_loss(struct rollup *r);
void sums_clear(struct sums *s);
void sum_rows_clear(struct sum_rows *rows);
/* Add to the row of that key. `cut`: all its samples lose their callers. */
int sums_merge(struct rollup *r, struct sum_rows *rows, const struct key *key,
	const struct sum *from, bool cut);

/* --- fold.c ----------------------------------------------------------------------------------- */

/* Merge rows until at most n_max are left. 0, ROLLUP_*, -errno. */
int sums_fold(struct rollup *r, uint32_t n_max);
/* Remove from the rows of users over their share the detail that they have no room for. 0,
 * ROLLUP_*, -errno. */
int sums_fold_shares(struct rollup *r);
/* Who pays for a task; (uid_t)-1 for none. */
uid_t rollup_uid(const struct rollup *r, uint32_t task);
/* Count a loss in the current window. */
int sums_add_loss(struct rollup *r, uint64_t hart, uint32_t cause, int64_t count);
static inline uint32_t sum_task(const struct key *key)
{
	return (uint32_t)(key->part[0] >> 32);
}
static inline uint32_t sum_stack(const struct key *key)
{
	return (uint32_t)key->part[0];
}

/* --- window.c --------------------------------------------------------------------------------- */

/* Write the sums as a window, and clear them. */
struct sums_window {
	int64_t start_ns, end_ns, realtime_ns;
};
int sums_write(struct rollup *r, const struct sums_window *w);

/* --- rollup.c --------------------------------------------------------------------------------- */

struct rollup *rollup_new(const char *source_path, const char *target_path, enum tier tier,
	struct store_error *error);
void rollup_clear(struct rollup *r);
/* Add the open source to the open target, and commit; key: of its name in the target's meta. 0,
 * ROLLUP_*, -errno. */
int rollup_fill(struct rollup *r, const char *key);
/* The meta key of a source. The caller frees; NULL if out of memory. */
char *rollup_source_key(const char *source_path);
/* Note in the open target where it ends and that it is complete, commit, and close it. */
int rollup_complete(struct rollup *r);
/* Remove an unfinished file, with its journal. */
void rollup_remove_new(const char *path);
