/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Logarithmic axes: their ends, where a value is, and which values are written beside them */

#include <stdbool.h>
#include <stddef.h>

/* Values outside are not drawn: no machine of today is near them, and axes stay readable. */
#define PLOT_VALUE_MIN 1e-9
#define PLOT_VALUE_MAX 1e9

#define PLOT_TICKS_MAX 192 /* 18 decades of nine, and the ends */
#define PLOT_TICK_BYTES 16

struct plot_axis {
	double low, high; /* positive, low < high once finished; 0 and 0: nothing was included */
};

struct plot_tick {
	double value;
	bool has_label; /* else only a thin line */
};

/* Is it a number that can be drawn? */
bool plot_has_place(double value);

/* Make room for a value. Returns false, and does nothing, if it cannot be drawn. */
bool plot_axis_include(struct plot_axis *a, double value);

/* Round the ends outwards, to 1, 2 or 5 times a power of ten, at least `decades` apart. An axis without
 * values goes from 0.1 to 10 at least. */
void plot_axis_finish(struct plot_axis *a, double decades);

/* The position of a value: 0 at the low end, 1 at the high one. value > 0. */
double plot_axis_at(const struct plot_axis *a, double value);

/* The values to mark, rising: at most n_labels with a label. Returns how many. */
size_t plot_axis_ticks(const struct plot_axis *a, size_t n_labels,
	struct plot_tick ret_ticks[static PLOT_TICKS_MAX]);

/* "0.05", "1e-06". */
void plot_tick_text(double value, char ret_text[static PLOT_TICK_BYTES]);
