/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Internals of live queries: a window of the walk as `struct loaded`
 *
 * live_load.c renumbers the objects that a window's rows refer to, densely and callers first;
 * live.c uses the result.
 */

#include "daemon/query/samples/hotspots.h"
#include "daemon/query/samples/live.h"

/* A window's row with its ids in `loaded`. */
struct live_row {
	const struct window_row *row; /* borrowed */
	uint32_t task, stack;
};

struct live_load {
	const struct live *live;
	const struct query_filter *filter;
	enum query_by by;
	bool callers; /* whole stacks; else only leaves */
	struct loaded *loaded;

	struct live_row *row;
	uint32_t n_rows;
	struct key_table tasks, files, frames; /* id - 1 by content */
	uint32_t *node;                        /* id by the tree's id - 1; 0: not seen yet */
	uint32_t n_codes;                      /* frames without a function so far */
	uint32_t size_tasks, size_files, size_frames, size_places, size_stacks;
	uint32_t event[EVENTS_MAX]; /* id by the session's index */
	uint32_t kernel;            /* the one frame of a hidden kernel; 0: not seen yet */
};

/* Fill loaded and row. The caller clears both, in any case: loaded_clear and live_load_clear. 0,
 * QUERY_FAILED, -errno. */
int live_load(struct live_load *t, struct text_table *texts, struct query_error *ret_error);
void live_load_clear(struct live_load *t);

/* Call take for each row that passes the filter. 0, take's value. */
int live_scan(const struct live_load *t, const struct row_filter *f, struct scan_notes *notes,
	int (*take)(void *userdata, const struct scan_row *row), void *userdata);

/* Add the window's losses to the provenance. 0, QUERY_FAILED, -errno. */
int live_losses(struct live_load *t, const struct row_filter *f, struct provenance *p);
