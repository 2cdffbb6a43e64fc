/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The legend below a plot: roofs, zones, and what is missing */

#include <stdio.h>

#include "client/plot/bound.h"

/* The longest is of a roof: two names of PLOT_NAME_BYTES and three numbers. */
#define PLOT_ROOF_BYTES 192

/* "L1 214 GB/s", "vector fma 75.7 GFLOP/s". */
void plot_roof_text(
	const struct plot *p, const struct plot_roof *roof, char ret_text[static PLOT_ROOF_BYTES]);

/* "210 to 217 GB/s"; "" if there is no interval. */
void plot_roof_interval(
	const struct plot *p, const struct plot_roof *roof, char ret_text[static PLOT_ROOF_BYTES]);

/* "One hart, double precision", with the kind of hart if it has a name. */
void plot_set_text(const struct plot_set *s, char ret_text[static PLOT_ROOF_BYTES]);

/* Is any dot drawn by bytes from memory? *ret_joined: and also by requested bytes. */
bool plot_has_dram(const struct plot *p, bool *ret_joined);

struct plot_legend_look {
	size_t columns; /* of a line */
	bool with_provenance;
	bool brief; /* without a list of roofs, whose names are in the plot */
};

/* Write the legend as sentences, broken into lines that each end with a newline; sets may be empty.
 * Returns the number of lines. */
size_t plot_legend_write(const struct plot *p, const struct plot_sets *sets,
	const struct plot_legend_look *look, FILE *f);

/* The legend for HTML, as the text of one paragraph. */
void plot_legend_markup(const struct plot *p, const struct plot_sets *sets, FILE *f);
