/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The reader's internals: checks of a file before and after SQLite opens it, and their errors */

#include "daemon/store/segment/segment.h"

/* Fill *e, and return the outcome. */
int __attribute__((format(printf, 4, 5))) segment_say(
	struct segment_error *e, int outcome, const char *remedy, const char *format, ...);
/* For an errno of a file: SEGMENT_ABSENT, SEGMENT_REFUSED, -ENOMEM. */
int segment_say_errno(struct segment_error *e, const char *path, int error);
/* For a failed SQLite result on that file: SEGMENT_CORRUPT, SEGMENT_HELD, SEGMENT_REFUSED,
 * SEGMENT_NO_SPACE, SEGMENT_READ_ONLY, -ENOMEM. */
int segment_say_sqlite(struct segment_error *e, const char *path, sqlite3 *db, int rc);

/* Contents of the first 100 bytes. log: it has a log, or had one when its writer ended; then the
 * length in the header may be out of date. n_changes: how often the file was changed before it had
 * a log. 0 or SEGMENT_* with *e, or -errno. */
struct segment_header {
	uint64_t n_bytes;
	uint32_t n_changes;
	bool log;
};
int segment_judge_file(
	const char *path, struct segment_header *ret_header, struct segment_error *e);

/* The URI by which another connection opens the same file in the same way. The caller frees; NULL if out of memory. */
char *segment_uri_of(sqlite3 *opened);
/* Turn off everything that could let a schema run code or a value be unbounded. */
void segment_restrain(sqlite3 *db);
/* Does its schema match that of its version, statement by statement? 0, SEGMENT_CORRUPT, SEGMENT_HELD, -ENOMEM. */
int segment_judge_schema(const char *path, sqlite3 *db, struct segment_error *e);
