/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The axes are chosen for the dots and the bends of roofs; the beginning of a roof need not show.
 * So x covers the loops and the bends, y the loops and the peaks.
 */
#include "client/plot/axes.h"

#include <math.h>

#define X_DECADES 3 /* at least */
#define Y_DECADES 2

static void include_set(struct plot_axes *a, const struct plot_set *s)
{
	double peak = s->gops, fastest = s->fastest;
	for (size_t i = 0; i < s->n_peaks; i++)
		plot_axis_include(&a->y, s->peak[i]->value);
	for (size_t i = 0; i < s->n_memory && peak > 0; i++)
		plot_axis_include(&a->x, peak / s->memory[i]->value);
	for (size_t i = 0; i < s->n_peaks && fastest > 0; i++)
		plot_axis_include(&a->x, s->peak[i]->value / fastest);
}

void plot_axes_fit(struct plot_axes *a, const struct plot *p, const struct plot_sets *sets)
{
	struct plot_axes new = {.x.low = 0};
	for (size_t i = 0; i < p->n_dots; i++) {
		if (!plot_dot_is_drawn(&p->dot[i]))
			continue;
		plot_axis_include(&new.x, p->dot[i].ops_per_byte); /* if it can be drawn */
		plot_axis_include(&new.x, p->dot[i].ops_per_dram_byte);
		plot_axis_include(&new.y, p->dot[i].gops);
	}
	for (size_t i = 0; i < sets->n; i++)
		include_set(&new, &sets->set[i]);
	plot_axis_finish(&new.x, X_DECADES);
	plot_axis_finish(&new.y, Y_DECADES);
	if (a->x.high > 0) {
		new.x.low = fmin(new.x.low, a->x.low);
		new.x.high = fmax(new.x.high, a->x.high);
		new.y.low = fmin(new.y.low, a->y.low);
		new.y.high = fmax(new.y.high, a->y.high);
	}
	*a = new;
}

static bool peak_line(const struct plot_axes *a, const struct plot_set *s, double value,
	struct plot_line *ret_line)
{
	double fastest = s->fastest;
	double begin = fastest > 0 ? fmax(value / fastest, a->x.low) : a->x.low;
	if (begin >= a->x.high || value < a->y.low || value > a->y.high)
		return false;
	double y = plot_axis_at(&a->y, value);
	*ret_line = (struct plot_line){plot_axis_at(&a->x, begin), y, 1, y};
	return true;
}

static bool memory_line(const struct plot_axes *a, const struct plot_set *s, double value,
	struct plot_line *ret_line)
{
	double peak = s->gops;
	double left = fmax(a->x.low, a->y.low / value);
	double right = fmin(a->x.high, fmin(a->y.high, peak > 0 ? peak : a->y.high) / value);
	if (left >= right)
		return false;
	*ret_line = (struct plot_line){plot_axis_at(&a->x, left), plot_axis_at(&a->y, left * value),
		plot_axis_at(&a->x, right), plot_axis_at(&a->y, right * value)};
	return true;
}

bool plot_axes_roof(const struct plot_axes *a, const struct plot_set *s,
	const struct plot_roof *roof, double value, struct plot_line *ret_line)
{
	if (!plot_has_place(value))
		return false;
	return roof->is_memory ? memory_line(a, s, value, ret_line)
			       : peak_line(a, s, value, ret_line);
}
