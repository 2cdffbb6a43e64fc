/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The columns of top's table on a screen
 *
 * Figures first, names last, as in every table of mperfctl; but widths must stay from frame to
 * frame, or nobody could read them, and a narrow screen drops column after column.
 */

#include <stdbool.h>
#include <stddef.h>

#include "client/show/reply.h"

struct top_column {
	size_t index; /* in the reply */
	size_t width;
	bool name; /* left-aligned and cut; else a figure */
};

struct top_layout {
	struct top_column column[REPLY_COLUMNS_MAX];
	size_t n;
};

#define TOP_GAP 2 /* between columns */

/* Choose columns for a screen of `width` columns. `grown` has widths of names by column of the
 * reply, which this function only increases; all 0 for a new view. If a name cannot have its width,
 * the last remaining name gets what is left. */
void top_layout(const struct reply *r, size_t width, size_t grown[static REPLY_COLUMNS_MAX],
	struct top_layout *ret_layout);

/* A cell's text, escaped, figures shortened ("1.24 G"). The caller frees; NULL if memory ran
 * out. */
char *top_cell(const struct reply *r, size_t row, size_t column);

/* Cut escaped text to `width` columns of a terminal: a path loses its front, other names their end,
 * replaced by `mark` ("…" or "~", one column). The caller frees; NULL if memory ran out. */
char *top_cut(const char *text, size_t width, const char *mark);
