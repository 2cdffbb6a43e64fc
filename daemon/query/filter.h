/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Filter: which sample rows of a segment count, and for how much
 *
 * What the user asked is worked out once per task, hart, window and event; a row then costs a few
 * array look-ups.
 */

#include "daemon/query/load.h"

struct row_filter {
	bool *task; /* by id; 0 is "no such task" */
	bool hart[HARTS_MAX + 1];
	bool windows;                 /* not all are wanted */
	bool event[QUERY_EVENTS_MAX]; /* with `asked`: these are shared out */
	bool asked;                   /* the user named an event */
};

/* 0, QUERY_FAILED (an event that is not there), -ENOMEM. */
int filter_make(struct row_filter *f, struct loaded *l, const struct query_filter *q);
void filter_clear(struct row_filter *f);

/* Does any of the window lie in the time asked for, and does it start in the part of the file that
 * is asked? */
bool filter_window(
	const struct loaded *l, const struct query_filter *q, const struct loaded_window *w);

/* Does the event bear this name, or one of its aliases? */
bool filter_event_matches(const struct loaded *l, const struct loaded_event *e, const char *name);
