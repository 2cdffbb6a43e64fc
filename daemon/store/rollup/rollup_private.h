/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The roll-up's internals
 *
 * rollup.c makes, grows and seals targets, file.c opens and closes them, outcome.c interprets
 * SQLite's results. merge.sql adds a source to a target; merge.c runs it, and merge_function.c has
 * the functions that it calls. extract.c does the same for chosen rows of window files.
 */

#include "daemon/store/key.h"
#include "daemon/store/rollup/rollup.h"

#include <sqlite3.h>

/* Maximum ids of a source, as in a query. */
#define ROLLUP_IDS_MAX (1u << 24)
/* Maximum events of a file, as in a query. If earlier sources have used all of them, the counts of further
 * events are left out, and their samples are counted as not stored. */
#define ROLLUP_EVENTS_MAX 255

struct extract_choice;

struct rollup {
	enum tier tier;
	const char *source_path, *target_path; /* paths from the caller */
	struct store_error *error;
	sqlite3 *source, *target;
	uint32_t stacks_max;   /* of the tier */
	struct shares *shares; /* NULL: no limits */
	/* TIER_WINDOW: an extract, with unchanged rows */
	const char *only;                    /* of one job: "UID JSON"; NULL: of any */
	const struct extract_choice *choice; /* of these windows and tasks; NULL: of all */
	bool hide_kernel;
	bool live;      /* the source need not be sealed */
	bool is_new;    /* the target has no row yet */
	int64_t n_rows; /* of samples and loops that were added */
};

/* An extract of a job may be small, and each of its 40 trees takes a page at least. */
static inline int rollup_page_bytes(const struct rollup *r)
{
	return r->only ? 1024 : 4096;
}

/* --- outcome.c -------------------------------------------------------------------------------- */

/* Set the error about a file; returns the outcome. */
int rollup_fail(
	struct rollup *r, int outcome, const char *path, const char *remedy, const char *what);
int rollup_fail_source(struct rollup *r, const char *what); /* report the file as damaged */
int rollup_fail_target(struct rollup *r, const char *what);
/* The meaning of SQLite's result, on a connection with the source or the target: 0 for OK, ROW and DONE. */
int rollup_source_outcome(struct rollup *r, sqlite3 *db, int rc);
int rollup_target_outcome(struct rollup *r, int rc);
int rollup_exec(struct rollup *r, const char *sql);

/* --- file.c: the target's life ---------------------------------------------------------------- */

/* Open and check the source. 0, ROLLUP_SOURCE_BROKEN, -errno. */
int rollup_open_source(struct rollup *r);
/* Open the target, or make a new one at path, in a transaction. */
int rollup_open_target(struct rollup *r, const char *path, bool new);
/* A number in the target's meta; 0 if it is missing. */
int rollup_meta(struct rollup *r, const char *key, int64_t *ret_value);
/* Write a text, or where it is NULL a number, into it. */
int rollup_write_meta(struct rollup *r, const char *key, const char *text, int64_t number);
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

/* --- rollup.c --------------------------------------------------------------------------------- */

struct rollup *rollup_new(const char *source_path, const char *target_path, enum tier tier,
	struct store_error *error);
void rollup_clear(struct rollup *r);
/* Add the open source to the open target, and commit; key: of its name in the target's meta. 0,
 * ROLLUP_*, -errno. */
int rollup_fill(struct rollup *r, const char *key);
/* The meta key of a source. The caller frees; NULL if out of memory. */
char *rollup_source_key(const char *source_path);
/* Note the end of the open target and that it is complete, commit, and close it. */
int rollup_complete(struct rollup *r);
/* Remove an unfinished file, with its journal. */
void rollup_remove_new(const char *path);
