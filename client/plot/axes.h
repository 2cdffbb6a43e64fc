/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Axes of a plot: intensity to the right, operations per second upwards */

#include "client/plot/bound.h"
#include "client/plot/scale.h"

struct plot_axes {
	struct plot_axis x, y;
};

/* Make room for all loops and roofs. Earlier ranges only grow, so a plot that is redrawn does not
 * jump. */
void plot_axes_fit(struct plot_axes *a, const struct plot *p, const struct plot_sets *sets);

/* The line of a roof on the plot, in shares of both axes: from the left or lower edge to the
 * highest peak, or from the fastest memory to the right edge. False: it is outside the picture.
 * `value` is the roof's own, or an end of its interval. */
struct plot_line {
	double x0, y0, x1, y1;
};
bool plot_axes_roof(const struct plot_axes *a, const struct plot_set *s,
	const struct plot_roof *roof, double value, struct plot_line *ret_line);
