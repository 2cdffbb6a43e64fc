/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The merge: merge.sql, the functions that it calls, and what runs its sections
 *
 * Contents are matched as everywhere in the store, as numbers of key tables (daemon/store/key.h),
 * so that no content of a file can be mistaken for another. SQL gets them by functions.
 */

#include "daemon/kernel/machine.h"
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
	MERGE_SUM,  /* of the window under way: {task, stack}, {event, rung}, hart */
	MERGE_LOOP, /* the same: task, site, region */
	N_MERGE_DICTIONARIES,
};

/* By entry, which is an index of keys + 1; 0 is none. */
struct merge_entries {
	struct merge *merge;
	enum merge_dictionary which;
	struct key_table keys;
	uint32_t *row;    /* in the target; 0: none yet */
	uint32_t *origin; /* the source's id; 0: it is not of the source */
	uint32_t *parent; /* entry that must have a row first */
	uint32_t *depth;  /* of a site: number of sites around it */
	uint8_t *
		given; /* noted in temp.new_… or charged, in this source; of sums, in this window */
	uint32_t size_row, size_origin, size_parent, size_depth, size_given;
	uint32_t n_rows, rows_max;
	uint32_t *entry; /* by id of the side */
	uint32_t n_ids;
	sqlite3_stmt *note; /* INSERT INTO temp.new_… */
};

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
	struct merge_section section[32];
	size_t n_sections;
	/* parameters of merge.sql */
	int64_t run, first, last, start_ns, end_ns, realtime_ns, after, upto, window, base, room,
		fold;
	struct {
		uint32_t *entry;
		uint32_t size;
	} path; /* of the entry that gets its row, the innermost first */
};

/* --- merge_entry.c ---------------------------------------------------------------------------- */

typedef void merge_function(sqlite3_context *c, int n, sqlite3_value **v);

/* Make the functions and the temporary table of a dictionary. SQLite's result. */
int merge_add_dictionary(struct merge *m, struct merge_entries *e);
/* The entry of a key, new or known. 0, KEY_TABLE_FULL, -ENOMEM. */
int merge_enter(struct merge_entries *e, const struct key *key, uint32_t *ret_entry);
/* A function's result: the entry, or the error for another outcome than 0. */
void merge_result(sqlite3_context *c, int outcome, uint32_t entry);
/* An argument that is an entry; 0 if it is none. */
static inline uint32_t merge_entry_of(const struct merge_entries *e, sqlite3_value *value)
{
	int64_t entry = sqlite3_value_int64(value);
	return entry > 0 && entry <= e->keys.n_keys ? (uint32_t)entry : 0;
}

/* Bytes of a row in a page (its place, its length, its header), and of a number, as ids of a day's file have them. Source:
 * https://www.sqlite.org/fileformat.html, "B-tree Pages" and "Record Format". */
#define MERGE_ROW_BYTES 6
#define MERGE_INTEGER_BYTES 3

/* Charge the user with the number `payer`; NULL: charge nobody. */
void merge_charge(struct merge *m, sqlite3_value *payer, uint64_t bytes);
/* Add one function; f finds userdata by sqlite3_user_data. SQLite's result. */
int merge_add(struct merge *m, const char *name, int n, merge_function *f, void *userdata);
/* Forget contents of the window under way. */
void merge_forget(struct merge_entries *e);
void merge_entries_clear(struct merge_entries *e);

/* --- merge_function.c ------------------------------------------------------------------------- */

/* Give the connection the functions of merge.sql. SQLite's result. */
int merge_functions(struct merge *m);

/* --- merge.c ---------------------------------------------------------------------------------- */

/* Add the open source to the open target, without committing. 0, ROLLUP_*, -errno. */
int merge_run(struct rollup *r);
