/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Filter: which sample rows of a segment count, and for how much
 *
 * The filter is evaluated once per task, hart, window and event; a row then costs a few array
 * look-ups.
 */

#include "daemon/query/load.h"

struct row_filter {
	bool *task; /* by id; 0 is "no such task" */
	bool hart[HARTS_MAX + 1];
	bool windows;                 /* selects only some windows */
	bool tells_windows;           /* rows have the id of their window */
	bool tells_moments;           /* and the moments of their samples, if the file has them */
	bool event[QUERY_EVENTS_MAX]; /* with `asked`: the events whose counts are shown */
	/* an event's counts are shown, not time: the user named it, or the leader samples by
	 * occurrences */
	bool asked;
	/* by id: index + 1 in `withouts` of the times left out of the task's rows; NULL: none is
	 * left out */
	uint32_t *without;
	const struct query_without *withouts;
	bool every; /* rows come with all their counts */
	/* as `task`: with query_filter.wall, the tasks that count as work; else NULL */
	bool *scope;
};

/* 0, QUERY_FAILED (unknown event), -ENOMEM. */
int filter_make(struct row_filter *f, struct loaded *l, const struct query_filter *q);
void filter_clear(struct row_filter *f);

/* Does the window overlap the requested time, and does it start in the requested part of the
 * file? */
bool filter_window(
	const struct loaded *l, const struct query_filter *q, const struct loaded_window *w);

/* Does a window that began at that moment fall into one of the time ranges from `first` (index + 1)
 * on? 0: into none. A row of a coarse tier covers all windows that began within its step. */
bool without_has(
	const struct query_without *without, uint32_t first, int64_t realtime_ns, enum tier tier);

/* Is the row of this task in this window (ids of the file) left out because a pin has it? */
bool filter_leaves_out(
	const struct loaded *l, const struct row_filter *f, uint32_t task, uint32_t window);
