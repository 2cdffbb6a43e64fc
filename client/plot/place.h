/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Places for labels: boxes that do not overlap
 *
 * Labels are placed in order of importance, each in a free place beside its dot. A label without a
 * free place is left out, and the reader finds its number in the table.
 */

#include <stdbool.h>
#include <stddef.h>

#define PLOT_BOXES_MAX 512

struct plot_box {
	double left, top, width, height;
};

struct plot_places {
	struct plot_box area; /* nothing is placed outside */
	struct plot_box taken[PLOT_BOXES_MAX];
	size_t n;
};

bool plot_boxes_overlap(const struct plot_box *a, const struct plot_box *b);

/* Keep labels away from this box. Ignored beyond PLOT_BOXES_MAX. */
void plot_places_take(struct plot_places *p, const struct plot_box *box);

/* Is the box free, and inside the area? Then take it. */
bool plot_places_try(struct plot_places *p, const struct plot_box *box);

/* Find a place for a label of this size beside a dot, right of it if possible, and take it. False:
 * there is none. */
struct plot_spot {
	double x, y, radius;
};
bool plot_places_beside(struct plot_places *p, const struct plot_spot *dot, double width,
	double height, struct plot_box *ret_box);
