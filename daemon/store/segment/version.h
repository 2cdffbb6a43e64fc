/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Versions of the format: what each added
 *
 * A file has the tables of its version and no others. A reader compares them with the schema as it was
 * then; a roll-up that continues an older file gives it what it lacks.
 */

#include <sqlite3.h>

#define SEGMENT_VERSION 6
/* the lowest that is read; no release wrote a lower one */
#define SEGMENT_VERSION_MIN 3
/* from which on there is: */
#define SEGMENT_HAS_UNCOUNTED 4 /* sample.uncounted; before, all samples have counts */
#define SEGMENT_HAS_LABELS 5    /* label_set, task_label_set */
#define SEGMENT_HAS_ACCOUNT 6   /* task.account; before, the owner paid */

/* The user_version of a file, read through SQLite. SQLITE_OK or a result code. */
int segment_version(sqlite3 *db, int *ret_version);

/* Make the tables of that version in an empty database. SQLITE_OK or a result code. */
int segment_make_tables(sqlite3 *db, int version);

/* Give a file of that version what it lacks, and the present version. Call it in a transaction.
 * SQLITE_OK or a result code. */
int segment_raise_version(sqlite3 *db, int version);
