/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Extracts: the rows of one job from window files, in a separate segment
 *
 * An extract is a window segment with unchanged windows, threads, stacks, lines, counts and loops,
 * and the names that they need. It has nothing of other jobs, not even the process that started the
 * job. It is made like a roll-up, which matches dictionaries by content, so a job in several files
 * becomes one. Windows without a row of the job are left out, with their losses. Counts of whole
 * harts belong to no job.
 *
 * SQLite's reads and writes may take seconds, so this runs in a child process.
 */

#include "daemon/store/store.h"

struct extract_note {
	const char *key;  /* in meta */
	const char *text; /* NULL: the number */
	int64_t number;
};

struct extract {
	uint32_t uid;       /* whose labels: */
	const char *labels; /* JSON, as in label_set */
	/* files of one boot, oldest first; the last may still be written. A file that is gone, or
	 * from another boot, is skipped. */
	const char *const *source;
	size_t n_sources;
	uint64_t bytes_max; /* of the extract */
	const struct extract_note *note;
	size_t n_notes;
};

/* Write the extract, sealed, as target_path, which does not exist. If we are killed at any moment,
 * the file is missing or complete; the store removes leftovers next to it (target_path +
 * ROLLUP_NEW_SUFFIX) when it is opened. 0; EXTRACT_EMPTY: the sources have no row of the job;
 * EXTRACT_TOO_LARGE: it would have more than bytes_max; STORE_NO_SPACE; ROLLUP_SOURCE_BROKEN;
 * -errno; *ret_error says which file for the last three. */
enum { EXTRACT_EMPTY = 48, EXTRACT_TOO_LARGE };
int extract_write(const struct extract *e, const char *target_path, struct store_error *ret_error);
