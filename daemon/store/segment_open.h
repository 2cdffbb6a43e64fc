/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The reader's own: judging a file before and after SQLite opens it, and saying what is wrong */

#include "daemon/store/segment.h"

/* Fill *e, and return the outcome. */
int __attribute__((format(printf, 4, 5)))
segment_say(struct segment_error *e, int outcome, const char *remedy, const char *format, ...);
/* An errno of a file's: SEGMENT_ABSENT, SEGMENT_REFUSED, -ENOMEM. */
int segment_say_errno(struct segment_error *e, const char *path, int error);
/* An SQLite result other than success on that file: SEGMENT_CORRUPT, SEGMENT_HELD, SEGMENT_REFUSED,
 * SEGMENT_NO_SPACE, SEGMENT_READ_ONLY, -ENOMEM. */
int segment_say_sqlite(struct segment_error *e, const char *path, sqlite3 *db, int rc);

/* What the first 100 bytes say. log: it has one, or had one when its writer went; then the length
 * in it need not be up to date. n_changes: how often the file was changed before it had a log. 0 or
 * SEGMENT_* with *e, or -errno. */
struct segment_header {
	uint64_t n_bytes;
	uint32_t n_changes;
	bool log;
};
int segment_judge_file(
	const char *path, struct segment_header *ret_header, struct segment_error *e);
/* 1: a -wal or -journal lies beside it; 0; -ENOMEM. */
int segment_has_neighbours(const char *path);

/* Everything off that could make a schema act or a value be without bounds. */
void segment_restrain(sqlite3 *db);
/* Are its tables ours, statement by statement? 0, SEGMENT_CORRUPT, SEGMENT_HELD, -ENOMEM. */
int segment_judge_schema(const char *path, sqlite3 *db, struct segment_error *e);
