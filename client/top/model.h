/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The contents of top's screen, apart from drawing
 *
 * The model takes the daemon's answers until a frame is complete, and keeps it while the next one
 * arrives. It also has the user's choices (grouping, order, filter, selected row), so that keys and
 * frames can be tested without a terminal and without a daemon.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/show/reply.h"
#include "client/top/history.h"

#define TOP_VIEWS_MAX 16 /* callers of callers of …: nobody navigates deeper */
#define TOP_FILTER_BYTES 64
#define TOP_MESSAGE_BYTES 160
#define TOP_INTERVAL_MS 1000 /* unless -d */

enum {
	TOP_FRAME = REPLY_MALFORMED + 1, /* a frame is complete, and shown unless paused */
};

/* A view: what its rows are. The first view is the one requested; opening a row pushes another. */
struct top_view {
	const char *by;       /* static: function, module, process, thread, cgroup */
	char *callers_of;     /* show its callers; NULL: not callers. Three owned strings */
	char *callers_module; /* NULL: any */
	char *cgroup;         /* only of this; NULL: not narrowed */
	int32_t pid;          /* only of this; 0: not narrowed */
	char sort[32];        /* a column's name; if absent: the daemon's order */
	bool reverse;
};

struct top_model {
	struct replies shown, building; /* tables "harts" and the view's `by` */
	bool has_frame;                 /* `shown` belongs to this view */
	uint64_t n_frames;
	uint64_t shown_ns; /* CLOCK_REALTIME when it arrived */

	struct top_view view[TOP_VIEWS_MAX];
	size_t n_views;
	uint32_t interval_ms;

	uint32_t *order; /* rows shown, in order: indices into the table */
	size_t n_order, size_order;
	size_t selected, first; /* indices into `order`; first: top row on screen */
	size_t page;            /* rows that fit the screen; the drawing code sets it */
	bool follow;            /* the user selected this row: keep it when others overtake it */

	char filter[TOP_FILTER_BYTES]; /* substring of a name, case-insensitive */
	bool typing, help, paused;
	struct top_history *history;
	bool shows_history;              /* in place of bars, and beside the rows */
	char message[TOP_MESSAGE_BYTES]; /* below the rows until the next key; not escaped */
};

/* Start with one view. by is static. */
void top_model_open(struct top_model *m, const char *by, uint32_t interval_ms);
void top_model_clear(struct top_model *m);

/* The view on top. */
struct top_view *top_model_view(struct top_model *m);

/* The shown frame's rows and harts; NULL before the first frame of this view. The harts survive a
 * change of the view. */
const struct reply *top_model_rows(const struct top_model *m);
const struct reply *top_model_harts(const struct top_model *m);

/* Take an answer. 0, TOP_FRAME, an error of replies_add, -ENOMEM. */
int top_model_take(struct top_model *m, const Mperf__Answer *a, uint64_t now_ns);

/* Another request begins: drop the incomplete frame. */
void top_model_restart(struct top_model *m);

/* Filter and sort again, and keep the selection in range. O(n log n). 0, -ENOMEM. */
int top_model_arrange(struct top_model *m);

/* Group by something else: drops all views but the first. by is static. */
void top_model_sum_by(struct top_model *m, const char *by);

/* Open the selected row: a function's callers, a process's (thread's, group's) functions. True if
 * there is a new view; request its frames. Else a message says why not. */
bool top_model_open_row(struct top_model *m);

/* Back to the view before. False if this is the first. */
bool top_model_back(struct top_model *m);

/* Move the selection by that many rows. */
void top_model_move(struct top_model *m, long rows);

/* Sort by the next (1) or previous (-1) visible column. */
void top_model_sort_next(struct top_model *m, int step);

/* Is this column redundant? Another one has it as a share, or nothing counted it. */
bool top_column_hidden(const struct reply *r, size_t column);

/* "functions of process 12", "callers of memcpy". In at most n bytes, not escaped. */
void top_view_title(const struct top_view *v, char *ret_text, size_t n);
