/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Labels: boxes that do not overlap
 *
 * First come, first served: labels are placed in the order of their importance, each beside its dot
 * where nothing else is. A label without a place is left out; the table has the number of its
 * dot.
 */

#include <stdbool.h>
#include <stddef.h>

#define PLOT_BOXES_MAX 512

struct plot_box {
	double left, top, width, height;
};

struct plot_labels {
	struct plot_box area; /* nothing is placed outside */
	struct plot_box taken[PLOT_BOXES_MAX];
	size_t n;
};

/* Do they overlap? Exported for tests. */
bool plot_boxes_overlap(const struct plot_box *a, const struct plot_box *b);

/* Keep labels away from this box. Ignored beyond PLOT_BOXES_MAX. */
void plot_labels_take(struct plot_labels *p, const struct plot_box *box);

/* Is the box free, and inside the area? Then take it. */
bool plot_labels_try(struct plot_labels *p, const struct plot_box *box);

/* Find a place for a label of this size beside a dot, right of it if possible, and take it. False:
 * there is none. */
struct plot_spot {
	double x, y, radius;
};
bool plot_labels_beside(struct plot_labels *p, const struct plot_spot *dot, double width,
	double height, struct plot_box *ret_box);
