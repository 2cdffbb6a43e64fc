/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Printing of rooflines
 *
 * The table begins with the loop and its source, since readers look for names; then come the
 * figures that people act on. --columns names others.
 */

#include "client/options/options.h"
#include "client/plot/axes.h"
#include "client/show/reply.h"
#include "client/show/table.h"

struct roofline_roofs;
struct showing {
	const struct options *o;
	struct reply *reply;        /* gets the columns derived from the roofs */
	const struct reply *before; /* of the first of two runs; or NULL */
	const char *const *spare;   /* of blocks: columns that tables omit, NULL-terminated */
	uint32_t stretch_ms;        /* of a series over time; 0: no series */
	struct plot_axes *axes;     /* for a plot that is redrawn; NULL: it is drawn once */
	const struct roofline_roofs
		*roofs; /* roofs, if the table is shown repeatedly; NULL: look them up */
	bool kept;      /* as in struct source */
};

/* Print the reply in the form that the options name: a table with the notes below, a plot above it,
 * or a plot in a file. Returns mperfctl's exit status, after an error message if not 0. */
int roofline_print(const struct showing *s);

/* roofline_draw.c: a plot in the file of -o. Returns mperfctl's exit status, after an error message
 * if not 0. */
struct roofline_plot;
int roofline_save(const struct showing *s, struct roofline_plot *p);

/* Draw a plot for the terminal, and add the letters of its loops to the reply. If the plot is
 * redrawn, rows that do not fit below it are dropped. `below`: number of lines after the table. 0,
 * -ENOMEM, -EIO. */
int roofline_draw(const struct showing *s, const struct roofline_plot *p,
	const struct table_options *look, size_t below, FILE *f);

/* roofline_columns.c: the columns of a roofline's table in order, for struct table_options.show.
 * The names are the reply's and the options'; ends with NULL. `width`: of the terminal; 0: none. */
struct roofline_columns {
	const char *name[REPLY_COLUMNS_MAX + 1];
	size_t n;
};
void roofline_columns_choose(const struct options *o, const struct reply *r, size_t width,
	struct roofline_columns *ret_columns);
/* The first name of --columns that the reply does not have; NULL: none. */
const char *roofline_columns_unknown(const struct options *o, const struct reply *r);
