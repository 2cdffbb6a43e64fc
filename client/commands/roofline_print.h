/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Printing of rooflines
 *
 * The table of loops begins with the loop and its source, since the names are what the reader looks
 * for; then come the figures that people act on. --columns names others.
 */

#include "client/options/options.h"
#include "client/show/reply.h"

struct showing {
	const struct options *o;
	const struct reply *reply;
	const char *const *spare; /* of blocks: columns that tables omit, NULL-terminated */
	uint32_t stretch_ms;      /* of a series over time; 0: no series */
};

/* Print the reply in the form that the options name, a table with the notes below. Returns
 * mperfctl's exit status, after an error message if not 0. */
int roofline_print(const struct showing *s);

/* roofline_columns.c: the columns of a roofline's table in order, for struct table_options.show.
 * The names are the reply's and the options'; ends with NULL. */
struct roofline_columns {
	const char *name[REPLY_COLUMNS_MAX + 1];
	size_t n;
};
void roofline_columns_choose(
	const struct options *o, const struct reply *r, struct roofline_columns *ret_columns);
/* The first name of --columns that the reply does not have; NULL: none. */
const char *roofline_columns_unknown(const struct options *o, const struct reply *r);
