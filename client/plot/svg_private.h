/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A plot as SVG: roofs as lines with bands, loops as dots, readable without a script */

#include <stdio.h>

#include "client/plot/axes.h"

/* Draw it. plain: with style, heading and legend, as a file of its own; else for a page, which has
 * these. 0, -ENOMEM. */
int plot_svg_write(const struct plot *p, const struct plot_sets *sets, bool plain, FILE *out);

/* The style of the drawing. Static. */
const char *plot_svg_style(void);

/* The drawing that the parts of an SVG write into, and where things are in it, in user units. */
#define SVG_AREA_LEFT 64.0
#define SVG_AREA_WIDTH 800.0
#define SVG_AREA_HEIGHT 540.0
#define SVG_CHARACTER 6.4 /* width of a letter of 11 px, rounded up */

struct svg_drawing {
	const struct plot *plot;
	const struct plot_sets *sets;
	struct plot_axes axes;
	double top; /* of the area between the axes */
	FILE *out;
};

/* From shares of the axes. */
static inline double svg_x(double share)
{
	return SVG_AREA_LEFT + share * SVG_AREA_WIDTH;
}

static inline double svg_y(const struct svg_drawing *d, double share)
{
	return d->top + (1 - share) * SVG_AREA_HEIGHT;
}

/* "m", "b", "c", "u": the class of a dot and of its zone. Static. */
const char *svg_class(enum plot_bound bound);

/* Write all sets of roofs; all but one are hidden. */
void svg_roofs_write(const struct svg_drawing *d);

/* Write all loops, arrows from run to run, and as many names as there is room for. 0, -ENOMEM. */
int svg_dots_write(const struct svg_drawing *d);
