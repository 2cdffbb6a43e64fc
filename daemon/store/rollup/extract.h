/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Extracts: chosen rows of window files, in a separate segment
 *
 * An extract is a window segment: windows, threads, stacks, lines, counts and loops are as sampled, with
 * the names that they need, and nothing else. As in roll-ups, dictionaries are matched by content, so what is
 * in several files becomes one.
 *
 * The rows are those of one job (a pin), or of some windows and tasks, or both. Of a job, windows without a
 * row are left out, and so are the losses in them; it has not even the process that started the job. Chosen
 * windows are kept with their losses, whether a chosen task has a row in them or not, as a query has them; but
 * stacks that end early are counted of the chosen tasks.
 * Counts of whole harts belong to no task.
 *
 * SQLite's reads and writes may take seconds, so this runs in a child process.
 */

#include "daemon/store/store.h"

struct extract_note {
	const char *key;  /* in meta */
	const char *text; /* NULL: the number */
	int64_t number;
};

/* The rows of one source that are taken, by ids of the source, up to n. A higher id is not taken. */
struct extract_choice {
	const bool *window; /* NULL: all */
	uint32_t n_windows;
	const bool *task; /* whose samples and loops; 0: those of no task; NULL: all */
	uint32_t n_tasks;
};

struct extract {
	uint32_t uid;       /* user who gave the labels */
	const char *labels; /* JSON, as in label_set, of a job; NULL: no job is asked for */
	/* Frames of the kernel become one function, "[kernel]", and several of a stack in a row one frame: as
	 * queries hide it, and recordings of users who may not see it. */
	bool hide_kernel;
	/* Files, oldest first; the last may still be written. The first one that is read says of which boot
	 * the extract is. A file that is gone, or of another boot, is skipped. */
	const char *const *source;
	size_t n_sources;
	/* Choose the rows of the i-th source, just before it is read; what it sets stays valid until the next
	 * call. 0, EXTRACT_SKIP, -errno. NULL: all rows are chosen. */
	int (*choose)(void *userdata, size_t i, struct extract_choice *ret_choice);
	/* The i-th source turns out to be damaged, and is left out. NULL: that fails the extract. */
	void (*broken)(void *userdata, size_t i);
	void *userdata;
	uint64_t bytes_max; /* of the extract */
	const struct extract_note *note;
	size_t n_notes;
};

/* Write the extract, sealed, as target_path, which does not exist. A process that is killed here leaves no
 * such file or a complete one, and perhaps target_path + ROLLUP_NEW_SUFFIX, which the store removes when it
 * is opened next. 0; EXTRACT_EMPTY: the sources have no such row; EXTRACT_TOO_LARGE: it would have
 * more than bytes_max; STORE_NO_SPACE; ROLLUP_SOURCE_BROKEN; -errno; for the last three *ret_error names the
 * file. */
enum { EXTRACT_EMPTY = 48, EXTRACT_TOO_LARGE, EXTRACT_SKIP };
int extract_write(const struct extract *e, const char *target_path, struct store_error *ret_error);

/* Remove it, and what a process that was killed has left of it. */
void extract_remove(const char *target_path);

static inline bool extract_takes_window(const struct extract_choice *c, int64_t id)
{
	return !c || !c->window || (id >= 0 && id <= c->n_windows && c->window[id]);
}

static inline bool extract_takes_task(const struct extract_choice *c, int64_t id)
{
	return !c || !c->task || (id >= 0 && id <= c->n_tasks && c->task[id]);
}
