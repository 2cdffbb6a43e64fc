/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/plot/labels.h"

#define GAP 3 /* between a dot and its label */

bool plot_boxes_overlap(const struct plot_box *a, const struct plot_box *b)
{
	return a->left < b->left + b->width && b->left < a->left + a->width &&
	       a->top < b->top + b->height && b->top < a->top + a->height;
}

void plot_labels_take(struct plot_labels *p, const struct plot_box *box)
{
	if (p->n < PLOT_BOXES_MAX)
		p->taken[p->n++] = *box;
}

static bool is_inside(const struct plot_box *a, const struct plot_box *area)
{
	return a->left >= area->left && a->top >= area->top &&
	       a->left + a->width <= area->left + area->width &&
	       a->top + a->height <= area->top + area->height;
}

bool plot_labels_try(struct plot_labels *p, const struct plot_box *box)
{
	if (p->n == PLOT_BOXES_MAX || !is_inside(box, &p->area))
		return false;
	for (size_t i = 0; i < p->n; i++)
		if (plot_boxes_overlap(box, &p->taken[i]))
			return false;
	p->taken[p->n++] = *box;
	return true;
}

bool plot_labels_beside(struct plot_labels *p, const struct plot_spot *dot, double width,
	double height, struct plot_box *ret_box)
{
	double away = dot->radius + GAP, slant = 0.75 * dot->radius + GAP;
	const struct plot_box boxes[] = {
		{dot->x + away, dot->y - height / 2, width, height},
		{dot->x - away - width, dot->y - height / 2, width, height},
		{dot->x + slant, dot->y - slant - height, width, height},
		{dot->x + slant, dot->y + slant, width, height},
		{dot->x - slant - width, dot->y - slant - height, width, height},
		{dot->x - slant - width, dot->y + slant, width, height},
		{dot->x - width / 2, dot->y - away - height, width, height},
		{dot->x - width / 2, dot->y + away, width, height},
	};
	for (size_t i = 0; i < sizeof(boxes) / sizeof(*boxes); i++) {
		if (plot_labels_try(p, &boxes[i])) {
			*ret_box = boxes[i];
			return true;
		}
	}
	return false;
}
