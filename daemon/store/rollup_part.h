/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The roll-up's own
 *
 * rollup.c walks the source's windows, rollup_file.c opens the files, rollup_rows.c
 * reads and writes their rows, rollup_names.c and rollup_stacks.c match dictionaries, rollup_sum.c
 * adds rows up and rollup_fold.c makes them fewer.
 *
 * Content has an index (key_table, text_table), an index has a row in the target once a row needs
 * it. What the target holds already is entered first, with its rows; ids of the source are
 * translated to indices when they first come up.
 */

#include "daemon/store/key.h"
#include "daemon/store/rollup.h"
#include "daemon/store/segment_write.h" /* struct cell */

/* Ids of a source: what a query reads too. */
#define ROLLUP_IDS_MAX (1u << 24)
/* Events of a file, as many as a query reads. */
#define ROLLUP_EVENTS_MAX 255

enum rollup_read {
	READ_META,
	READ_EVENT,
	READ_HART,
	READ_NOTE,
	READ_CGROUP,
	READ_TASK,
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

/* Rows in the target by index of what they hold; 0: it has none yet. */
struct rows {
	uint32_t *row;
	uint32_t size;
	uint32_t n_rows; /* the highest there is */
};

/* One dictionary. */
struct entries {
	struct key_table keys;
	struct rows rows;
	uint32_t *origin; /* by index: id in the source, of what has no row; 0: made by us */
	uint32_t size_origin;
};

/* Ids of the source as index + 1; 0: did not come up yet. */
struct translation {
	uint32_t *index;
	uint32_t n_ids;
};

/* What one row of the target comes to. */
struct sum {
	int64_t count, weight_ns, truncated;
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
	uint32_t stacks_max; /* of the tier */
	struct shares *shares; /* NULL: nobody has a limit */
	bool has_payer;        /* rows are charged to: */
	uid_t payer;

	struct text_table texts;                 /* of all kinds, the source's and the target's */
	uint32_t boot;                           /* text: the target's */
	struct rows functions, sources, cgroups; /* by text */
	struct entries files, frames, stacks, tasks;
	uint32_t n_events, event_text[ROLLUP_EVENTS_MAX + 1]; /* by row */
	int64_t n_windows, n_samples;

	struct translation task, file, frame, stack, function, source_name, cgroup;
	uint32_t event[ROLLUP_EVENTS_MAX + 1]; /* source's id → row */
	struct rollup_hart hart[HARTS_MAX];    /* the target's */
	int16_t hart_as[HARTS_MAX];            /* what a hart of the source counts as */
	struct sums sums;
	struct rollup_loops *loops;
	bool reading; /* READ_READING stands on a row */
	struct {
		uint32_t id;
		int64_t frame;
	} * path; /* of the stack under way, leaf first */
	uint32_t size_path;
};

/* --- rollup_rows.c, rollup_file.c: outcomes, statements, the target's life
 * ------------------------ */

/* Say what is wrong with a file; returns the outcome. */
int rollup_fail(
	struct rollup *r, int outcome, const char *path, const char *remedy, const char *what);
int rollup_fail_source(struct rollup *r, const char *what);
int rollup_fail_target(struct rollup *r, const char *what);
/* What a result of SQLite means: 0 for OK, ROW and DONE. */
int rollup_source_outcome(struct rollup *r, int rc);
int rollup_target_outcome(struct rollup *r, int rc);
/* What came of a key or text table: KEY_TABLE_FULL as a broken source, which cannot be added. */
int rollup_table_outcome(struct rollup *r, int outcome);

/* Step a statement of the source that was given `id` (bound to ?1): 0 on a row, ROLLUP_NO_ROW, ….
 * The row stays until the statement is asked again. */
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

/* Open the source and prepare what is read of it. 0, ROLLUP_SOURCE_BROKEN, -errno. */
int rollup_open_source(struct rollup *r);
/* Open the target, or make a new one at path, in a transaction. */
int rollup_open_target(struct rollup *r, const char *path, bool new);
int rollup_exec(struct rollup *r, const char *sql);
/* A number in the target's meta; `otherwise` where there is none. */
int rollup_meta(struct rollup *r, const char *key, int64_t otherwise, int64_t *ret_value);
/* A text in it; 0 where there is none. */
int rollup_meta_text(struct rollup *r, const char *key, uint32_t *ret_text);
/* Copy a file that is sealed to a new name, which must not be there, without its seal. 0,
 * ROLLUP_TARGET_BROKEN: it has changed since; STORE_NO_SPACE, -errno. */
int rollup_copy(struct rollup *r, const char *from, const char *to);
/* Write the seal of a file that is closed. 0, STORE_NO_SPACE, -errno. */
int rollup_write_seal(struct rollup *r, const char *path);
/* Look at all pages. 0, ROLLUP_TARGET_BROKEN, -errno. */
int rollup_check_target(struct rollup *r);
int rollup_rename(struct rollup *r, const char *from, const char *to);
/* Close the target; what was not committed is taken back. 0, ROLLUP_*, -errno. */
int rollup_close_target(struct rollup *r);

/* --- rollup_names.c, rollup_stacks.c: dictionaries
 * ------------------------------------------------ */

/* Enter what the target holds. 0, ROLLUP_TARGET_BROKEN, -errno. */
int rollup_load_names(struct rollup *r);
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
/* What its meta says of them: notes, leaders of other rungs, the lowest rate. After both. */
int rollup_take_notes(struct rollup *r);

/* The index + 1 of a source's task (0 for 0 and for one that is not there) or stack. 0, ROLLUP_*.
 */
int rollup_task(struct rollup *r, int64_t id, uint32_t *ret_index);
int rollup_stack(struct rollup *r, int64_t id, uint32_t *ret_index);
/* The stack that has this one's leaf alone. */
int rollup_leaf(struct rollup *r, uint32_t stack, uint32_t *ret_index);
/* The program that stands for several of this one's user, or, with 0, of any. */
int rollup_other_program(struct rollup *r, uint32_t task, uint32_t *ret_index);
/* The stack of the function that stands for several of this one's kind (named or not). */
int rollup_other_stack(struct rollup *r, uint32_t stack, uint32_t *ret_index);

/* The row of an entry, written if it has none; 0 for none. */
int rollup_task_row(struct rollup *r, uint32_t index, uint32_t *ret_row);
int rollup_stack_row(struct rollup *r, uint32_t index, bool *ret_cut, uint32_t *ret_row);
int rollup_file_row(struct rollup *r, uint32_t index, uint32_t *ret_row);
int rollup_name(struct rollup *r, bool function, int64_t id, uint32_t *ret_text);
int rollup_name_row(struct rollup *r, bool function, uint32_t text, uint32_t *ret_row);
int rollup_file(struct rollup *r, int64_t id, uint32_t *ret_index);

/* The index of a key, new ones with their origin. */
int entries_get(struct rollup *r, struct entries *e, const struct key *key, uint32_t origin,
	uint32_t *ret_index);
/* Enter what the target has as that row. */
int entries_load(struct rollup *r, struct entries *e, const struct key *key, int64_t row);
int rows_set(struct rows *rows, uint32_t index, uint32_t row);
/* Give an index the next row. */
int rows_add(struct rows *rows, uint32_t index, uint32_t *ret_row);
static inline uint32_t rows_get(const struct rows *rows, uint32_t index)
{
	return index < rows->size ? rows->row[index] : 0;
}
/* 0 with the place of an id's translation; ROLLUP_SOURCE_BROKEN where it cannot be. */
int translation_get(struct rollup *r, struct translation *t, int64_t id, uint32_t **ret_index);

/* --- rollup_loops.c ------------------------------------------------------------------------------ */

/* Enter what the target holds of loops. 0, ROLLUP_TARGET_BROKEN, -errno. */
int rollup_load_loops(struct rollup *r);
/* Add the row that READ_LOOP_COUNT stands on. */
int rollup_take_loop(struct rollup *r);
/* Write the sums of the window under way, and forget them. */
int rollup_write_loops(struct rollup *r);
void rollup_loops_clear(struct rollup *r);

/* --- rollup_sum.c -------------------------------------------------------------------------------
 */

/* Add the row that READ_SAMPLE stands on, with its readings. */
int sums_take_sample(struct rollup *r);
/* Add the row that READ_LOSS stands on. */
int sums_take_loss(struct rollup *r);
/* Write them as a window, and forget them. */
struct sums_window {
	int64_t start_ns, end_ns, realtime_ns;
};
int sums_write(struct rollup *r, const struct sums_window *w);
void sums_clear(struct sums *s);
void sum_rows_clear(struct sum_rows *rows);
/* Add to the row of that key. `cut`: all its samples are without their callers now. */
int sums_merge(struct rollup *r, struct sum_rows *rows, const struct key *key,
	const struct sum *from, bool cut);

/* --- rollup_fold.c ------------------------------------------------------------------------------
 */

/* Make the rows at most n_max. 0, ROLLUP_*, -errno. */
int sums_fold(struct rollup *r, uint32_t n_max);
/* Take from the rows of users who are over their share what they have no room for. 0, ROLLUP_*,
 * -errno. */
int sums_fold_shares(struct rollup *r);
/* The user of a task; (uid_t)-1 of none. */
uid_t rollup_uid(const struct rollup *r, uint32_t task);
/* Count a loss in the window under way. */
int sums_add_loss(struct rollup *r, uint64_t hart, uint32_t cause, int64_t count);
static inline uint32_t sum_task(const struct key *key)
{
	return (uint32_t)(key->part[0] >> 32);
}
static inline uint32_t sum_stack(const struct key *key)
{
	return (uint32_t)key->part[0];
}
