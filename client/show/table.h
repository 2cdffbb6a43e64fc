/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Tables: a reply as aligned text
 *
 * Numbers come first and right-aligned, names last, so that figures line up and long names run out
 * to the right, where a terminal cuts them with "…"; unless the caller gives another order.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/show/reply.h"

struct table_options {
	size_t width;  /* columns of the terminal; 0: never cut a name */
	size_t height; /* its lines; 0: unknown, or no terminal */
	bool colour;
	bool raw;                /* tab-separated, unrounded, without units */
	const char *const *hide; /* names of columns to omit, NULL-terminated; or NULL */
	const char *group;       /* a text column that becomes headings; or NULL */
	/* Names of columns to show, in this order, NULL-terminated; unknown ones are ignored. NULL:
	 * all. */
	const char *const *show;
	const char *indent; /* a column of numbers: levels to indent the first column; or NULL */
	bool cut_middle;    /* names that do not fit lose their middle, not their end */
};

/* Fill width, height and colour for a stream: terminal size, COLUMNS, LINES, NO_COLOR, TERM=dumb. */
void table_look(FILE *f, bool no_colour, struct table_options *o);

/* One value's text, escaped for terminals: "-" if it was not measured. The caller frees; NULL if
 * memory ran out. */
char *table_cell(const Mperf__Value *v, Mperf__Unit unit, bool raw);

/* Print header and rows; columns without any measured value are omitted unless raw. 0, -ENOMEM,
 * -EIO. */
int table_print(const struct reply *r, const struct table_options *o, FILE *f);
