/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What top shows, apart from how
 *
 * The model takes the daemon's answers until a frame is whole, and keeps that one beside the next
 * that is under way. What the reader chose (whom to sum up by, order, filter, selected row) is
 * here, too, so that keys and frames can be tried without a terminal and without a daemon.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/reply.h"

#define TOP_VIEWS_MAX 16 /* callers of callers of …: deeper than anybody remembers the way */
#define TOP_FILTER_BYTES 64
#define TOP_MESSAGE_BYTES 160
#define TOP_INTERVAL_MS 1000 /* unless -d */

enum {
	TOP_FRAME = REPLY_MALFORMED + 1, /* a frame is whole, and shown unless paused */
};

/* What the rows are. The first view is what was asked for; opening a row puts one on top. */
struct top_view {
	const char *by;       /* static: function, module, process, thread, cgroup */
	char *callers_of;     /* whose callers; NULL: not callers. These three are owned */
	char *callers_module; /* NULL: any */
	char *cgroup;         /* only of this; NULL: not narrowed */
	int32_t pid;          /* only of this; 0: not narrowed */
	char sort[32];        /* name of a column; one that is not there: the daemon's order */
	bool reverse;
};

struct top_model {
	struct replies shown, building; /* tables "harts" and the view's `by` */
	bool has_frame;                 /* shown is of this view */
	uint64_t n_frames;
	uint64_t shown_ns; /* CLOCK_REALTIME when it arrived */

	struct top_view view[TOP_VIEWS_MAX];
	size_t n_views;
	uint32_t interval_ms;

	uint32_t *order; /* rows that are shown, in order: indices into the table */
	size_t n_order, size_order;
	size_t selected, first; /* in order; first is the uppermost on the screen */
	size_t page;            /* rows that the screen has room for; set by who draws */
	bool follow; /* the selected row was chosen and is kept when others overtake it */

	char filter[TOP_FILTER_BYTES]; /* rows must have it in a name; any case */
	bool typing, help, paused;
	char message[TOP_MESSAGE_BYTES]; /* below the rows until the next key; not escaped */
};

/* Start with one view. by is static. */
void top_model_open(struct top_model *m, const char *by, uint32_t interval_ms);
void top_model_clear(struct top_model *m);

/* The view on top. */
struct top_view *top_model_view(struct top_model *m);

/* The shown frame's rows and harts; NULL before the first frame of this view. The harts outlive a
 * change of the view. */
const struct reply *top_model_rows(const struct top_model *m);
const struct reply *top_model_harts(const struct top_model *m);

/* Take an answer. 0, TOP_FRAME, what replies_add returns, -ENOMEM. */
int top_model_take(struct top_model *m, const Mperf__Answer *a, uint64_t now_ns);

/* Another request begins: what was under way is forgotten. */
void top_model_restart(struct top_model *m);

/* Filter and sort again, and keep the selection within what is left. n log n. 0, -ENOMEM. */
int top_model_arrange(struct top_model *m);

/* Sum up by something else: all views but the first go. by is static. */
void top_model_sum_by(struct top_model *m, const char *by);

/* Open the selected row: a function's callers, a process's (thread's, group's) functions. True if
 * there is a new view, whose frames are to be asked for; else a message says why not. */
bool top_model_open_row(struct top_model *m);

/* Back to the view before. False if this is the first. */
bool top_model_back(struct top_model *m);

/* Move the selection by so many rows. */
void top_model_move(struct top_model *m, long rows);

/* Sort by the next (1) or previous (-1) column that is shown. */
void top_model_sort_next(struct top_model *m, int step);

/* Is this a column that nobody needs to see? What others say as a share, or what was counted
 * nowhere. */
bool top_column_hidden(const struct reply *r, size_t column);

/* "functions of process 12", "callers of memcpy". In at most n bytes, not escaped. */
void top_view_title(const struct top_view *v, char *ret_text, size_t n);
