/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* History: what the frames before showed of each hart and row
 *
 * Of a hart that is its load; of a row, the harts that it kept busy: its time over the frame's. A row is known by its
 * names, and the view that it is in. A line that has not been in any of the last TOP_HISTORY_FRAMES frames is forgotten.
 */

#include <stddef.h>

#include "client/show/reply.h"

#define TOP_HISTORY_FRAMES 120u
/* Harts and rows, 1 to 1.5 KB each. Further ones have no history. */
#define TOP_HISTORY_LINES_MAX 8192u

struct top_history;

int top_history_new(struct top_history **ret_history);
struct top_history *top_history_free(struct top_history *h);

/* Note a frame of that many seconds. view: what its rows are, as a title. harts may be NULL. 0 or -ENOMEM. */
int top_history_take(struct top_history *h, const struct reply *harts, const struct reply *rows,
	const char *view, double seconds);

/* Values of the last n frames, the latest last; NAN: it was in none. n is at most TOP_HISTORY_FRAMES. Of harts, the mean
 * of those from first to last. */
void top_history_harts(
	const struct top_history *h, int first, int last, float *ret_value, size_t n);
void top_history_row(const struct top_history *h, const struct reply *rows, size_t row,
	const char *view, float *ret_value, size_t n);
