/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A plot on a terminal: roofs in braille, loops as letters
 *
 * Loops whose dots fall into one character cell share a letter, so no letter hides another; the
 * table below shows each loop's letter.
 */

#include <stdio.h>

#include "client/plot/axes.h"

#define PLOT_TERMINAL_COLUMNS_MIN 40u
#define PLOT_TERMINAL_COLUMNS_MAX 400u
#define PLOT_TERMINAL_ROWS_MIN 10u
#define PLOT_TERMINAL_ROWS_MAX 120u

struct plot_terminal_look {
	size_t columns, rows; /* width of all output; clamped to the limits */
	bool utf8;            /* otherwise only ASCII is used */
	bool colour;
	bool brief; /* a short legend */
};

/* Draw into f. axes is zero at the first plot of a series, and is kept between them. mark[i] becomes
 * the letter of dot i; 0: it has no place on the axes. 0, -ENOMEM, -EIO. */
int plot_terminal_draw(const struct plot *p, const struct plot_sets *sets,
	const struct plot_terminal_look *look, struct plot_axes *axes, char *mark, FILE *f);
