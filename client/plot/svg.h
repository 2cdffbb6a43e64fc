/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A plot as SVG: roofs as lines with bands, loops as dots, readable without a script */

#include <stdio.h>

#include "client/plot/axes.h"

/* Draw the plot. plain: with style, heading and legend, as a file of its own; otherwise for a page,
 * which has these. 0, -ENOMEM. */
int plot_svg_write(const struct plot *p, const struct plot_sets *sets, bool plain, FILE *out);

/* The style of the drawing. Static. */
const char *plot_svg_style(void);
