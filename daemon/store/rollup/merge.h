/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The merge: merge.sql, the functions that it calls, and the code that runs its sections
 *
 * Contents are matched as everywhere in the store, by the whole key and not by a hash (daemon/store/key.h), so
 * a crafted file cannot make two contents count as one. SQL asks for the entries by functions.
 */

#include "daemon/kernel/machine.h"
#include "daemon/store/rollup/extract.h"
#include "daemon/store/rollup/rollup_private.h"

enum merge_dictionary {
	MERGE_EVENT,
	MERGE_CGROUP,
	MERGE_LABELS,
	MERGE_TASK,
	MERGE_FILE,
	MERGE_FRAME,
	MERGE_FUNCTION,
	MERGE_SOURCE,
	MERGE_NAMES, /* of a frame; no table */
	MERGE_STACK,
	MERGE_SITE,
	MERGE_METRIC,
	MERGE_SUM,  /* of the window being made: {task, stack}, {event, rung}, hart */
	MERGE_LOOP, /* the same: task, site, region */
	N_MERGE_DICTIONARIES,
};

/* A dictionary. An entry is an index of keys + 1; 0: none. Arrays are by entry, unless they say otherwise. */
struct merge_entries {
	struct merge *merge;
	enum merge_dictionary which;
	struct key_table keys;
	uint32_t *row;    /* in the target; 0: none yet */
	uint32_t *origin; /* id in the source; 0: not in the source */
	uint32_t *parent; /* entry whose row has to come first */
	uint32_t *depth;  /* of a site: sites around it */
	/* already noted in temp.new_…, or charged, for this source; of sums, for this window */
	uint8_t *given;
	uint32_t size_row, size_origin, size_parent, size_depth, size_given;
	uint32_t n_rows, rows_max;
	uint32_t *entry; /* by id of the side */
	uint32_t n_ids;
	sqlite3_stmt *note; /* INSERT INTO temp.new_… */
};

/* A sum of the window being made. counted: the first of its list of merge_counted, index + 1. */
struct merge_tally {
	int64_t count, weight_ns, truncated, uncounted;
	uint32_t counted;
};
struct merge_counted;

/* Maximum metrics of loops of a file; further ones are left out. We write half as many. */
#define MERGE_METRICS_MAX 128

enum merge_side { MERGE_MAIN, MERGE_THEIRS };

#define MERGE_STATEMENTS_MAX 48
struct merge_section {
	const char *name;
	enum merge_side side;
	sqlite3_stmt *statement[MERGE_STATEMENTS_MAX];
	size_t n;
};

struct merge {
	struct rollup *rollup;
	struct text_table texts; /* of all kinds, the source's and the target's */
	sqlite3 *db;             /* the target, with the source attached */
	enum merge_side side;
	struct merge_entries of[N_MERGE_DICTIONARIES];
	int16_t hart_as[HARTS_MAX];
	struct merge_section section[40];
	size_t n_sections;
	/* parameters of merge.sql */
	int64_t run, first, last, start_ns, end_ns, realtime_ns, after, upto, window, base, room,
		fold;
	struct {
		uint32_t *entry;
		uint32_t size;
	} path;                    /* entries above the one that is given a row, innermost first */
	struct merge_tally *tally; /* by sum */
	struct merge_counted *counted;
	uint32_t size_tally, n_counted, size_counted;
};

static inline int64_t merge_hart_as(const struct merge *m, int64_t hart)
{
	return hart >= 0 && hart < HARTS_MAX ? m->hart_as[hart] : hart;
}

/* --- merge_entry.c ---------------------------------------------------------------------------- */

typedef void merge_function(sqlite3_context *c, int n, sqlite3_value **v);

/* Make the functions and the temporary table of a dictionary. SQLite's result. */
int merge_add_dictionary(struct merge *m, struct merge_entries *e);
/* The entry of a key, new or known. 0, KEY_TABLE_FULL, -ENOMEM. */
int merge_enter(struct merge_entries *e, const struct key *key, uint32_t *ret_entry);
/* A function's result: the entry, or the error for another outcome than 0. */
void merge_result(sqlite3_context *c, int outcome, uint32_t entry);
#define MERGE_FULL "it has more names or stacks than one file can hold"
/* The entry of the side's row; 0: there is none. */
static inline uint32_t merge_entry_by_id(const struct merge_entries *e, int64_t id)
{
	return id > 0 && id < e->n_ids ? e->entry[id] : 0;
}
/* An argument that is an entry; 0 if it is none. */
static inline uint32_t merge_entry_of(const struct merge_entries *e, sqlite3_value *value)
{
	int64_t entry = sqlite3_value_int64(value);
	return entry > 0 && entry <= e->keys.n_keys ? (uint32_t)entry : 0;
}

/* Bytes of a row beside its columns (pointer, length, header), and of a number the size of a day's ids. Source:
 * https://www.sqlite.org/fileformat.html, "B-tree Pages" and "Record Format". */
#define MERGE_ROW_BYTES 6
#define MERGE_INTEGER_BYTES 3

/* Charge the user with the number `payer`; NULL: charge nobody. */
void merge_charge(struct merge *m, sqlite3_value *payer, uint64_t bytes);
/* Add one function; f finds userdata by sqlite3_user_data. SQLite's result. */
int merge_add(struct merge *m, const char *name, int n, merge_function *f, void *userdata);
/* Forget the contents of the window that was made. */
void merge_forget(struct merge_entries *e);
void merge_entries_clear(struct merge_entries *e);

/* --- merge_function.c ------------------------------------------------------------------------- */

/* Give the connection the functions of merge.sql. SQLite's result. */
int merge_functions(struct merge *m);

/* --- merge_section.c -------------------------------------------------------------------------- */

/* All with 0, ROLLUP_*, -errno. */

/* The meaning of SQLite's result, by the side that is read or written. */
int merge_outcome(struct merge *m, int rc);
/* Make the temporary tables, before any other section. */
int merge_make(struct merge *m);
/* Run a section on a side. */
int merge_section(struct merge *m, const char *name, enum merge_side side);
/* The one statement of a section of the source's side, with its parameters. */
int merge_statement(struct merge *m, const char *name, sqlite3_stmt **ret_statement);
/* Run a statement and ignore its rows. */
int merge_step(struct merge *m, sqlite3_stmt *st);
/* The first column of the first row of a query; 0: it has none. */
int merge_number(struct merge *m, const char *sql, int64_t *ret_n);

/* --- merge_tally.c ---------------------------------------------------------------------------- */

/* Add up the samples from :after to :upto, and their readings, in temp.tally and temp.counted. 0, ROLLUP_*, -errno. */
int merge_take_samples(struct merge *m);

/* --- merge.c ---------------------------------------------------------------------------------- */

/* Add the open source to the open target, without committing. 0, ROLLUP_*, -errno. */
int merge_run(struct rollup *r);
