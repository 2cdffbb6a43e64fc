/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Extracts: the rows of one job from window files, in a separate segment
 *
 * An extract is a window segment: windows, threads, stacks, lines, counts and loops are as sampled, with
 * the names that they need. It has nothing of other jobs, not even the process that started the job. As
 * in roll-ups, dictionaries are matched by content, so a job whose rows are in several files becomes
 * one. Windows in which the job has no row are left out, and so are the losses in them. Counts of whole
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
	uint32_t uid;       /* user who gave the labels */
	const char *labels; /* JSON, as in label_set */
	/* files of one boot, oldest first; the last may still be written. A file that is gone, or of
	 * another boot, is skipped. */
	const char *const *source;
	size_t n_sources;
	uint64_t bytes_max; /* of the extract */
	const struct extract_note *note;
	size_t n_notes;
};

/* Write the extract, sealed, as target_path, which does not exist. A process that is killed here leaves no
 * such file or a complete one, and perhaps target_path + ROLLUP_NEW_SUFFIX, which the store removes when it
 * is opened next. 0; EXTRACT_EMPTY: the sources have no row of the job; EXTRACT_TOO_LARGE: it would have
 * more than bytes_max; STORE_NO_SPACE; ROLLUP_SOURCE_BROKEN; -errno; for the last three *ret_error names the
 * file. */
enum { EXTRACT_EMPTY = 48, EXTRACT_TOO_LARGE };
int extract_write(const struct extract *e, const char *target_path, struct store_error *ret_error);
