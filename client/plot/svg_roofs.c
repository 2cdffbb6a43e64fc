/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The names of peaks stand right of the area; those of memory along their lines. Every set of roofs
 * is written, and all but one are hidden, so that a script only has to show another.
 */
#include <math.h>
#include <string.h>

#include "client/plot/labels.h"
#include "client/plot/legend.h"
#include "client/plot/svg_private.h"
#include "client/show/escape.h"

#define LABEL_HEIGHT 14.0

const char *svg_class(enum plot_bound bound)
{
	static const char *const classes[N_PLOT_BOUNDS] = {"u", "m", "b", "c"};
	return classes[bound];
}

/* Fill the band between the ends of the interval. It goes around the corner of the area if one end leaves
 * the area below and the other on the left. */
static void write_band(
	const struct svg_drawing *d, const struct plot_set *s, const struct plot_roof *roof)
{
	struct plot_line low, high;
	if (!(roof->low > 0) || !(roof->high > roof->low) ||
		!plot_axes_roof(&d->axes, s, roof, roof->low, &low) ||
		!plot_axes_roof(&d->axes, s, roof, roof->high, &high))
		return;
	fprintf(d->out, "<polygon class=\"band\" points=\"%.1f,%.2f %.1f,%.2f %.1f,%.2f %.1f,%.2f",
		svg_x(low.x0), svg_y(d, low.y0), svg_x(low.x1), svg_y(d, low.y1), svg_x(high.x1),
		svg_y(d, high.y1), svg_x(high.x0), svg_y(d, high.y0));
	if (roof->is_memory && low.x0 > 0 && high.x0 <= 0)
		fprintf(d->out, " %.1f,%.2f", svg_x(0), svg_y(d, 0));
	fputs("\"/>\n", d->out);
}

static void write_roof_title(const struct svg_drawing *d, const struct plot_roof *roof)
{
	char text[PLOT_ROOF_BYTES], interval[PLOT_ROOF_BYTES];
	plot_roof_text(d->plot, roof, text);
	plot_roof_interval(d->plot, roof, interval);
	fputs("<title>", d->out);
	escape_markup(d->out, text);
	if (*interval)
		fprintf(d->out, "\n%s", interval);
	if (*roof->how) {
		fputs("\n", d->out);
		escape_markup(d->out, roof->how);
	}
	fputs("</title>", d->out);
}

/* Write a name along its line, at the first place from its lower end where there is no other. */
static void write_along(const struct svg_drawing *d, const struct plot_line *l, const char *text,
	struct plot_labels *names)
{
	double x0 = svg_x(l->x0), y0 = svg_y(d, l->y0), dx = svg_x(l->x1) - x0,
	       dy = svg_y(d, l->y1) - y0;
	double length = hypot(dx, dy), width = (double)escape_width(text) * SVG_CHARACTER;
	for (double at = 14; at + width < length; at += 20) {
		/* lines of memory are parallel, so boxes can be compared as if the picture were turned */
		double across = y0 - dy / dx * x0;
		struct plot_box box = {x0 + at * dx / length, across * dx / length - LABEL_HEIGHT,
			width, LABEL_HEIGHT};
		if (!plot_labels_try(names, &box))
			continue;
		fprintf(d->out,
			"<text class=\"name\" transform=\"translate(%.1f %.1f) rotate(%.2f)\" "
			"x=\"0\" y=\"-4\">",
			x0 + at * dx / length, y0 + at * dy / length, atan2(dy, dx) * 180 / M_PI);
		escape_markup(d->out, text);
		fputs("</text>", d->out);
		return;
	}
}

/* Names of peaks are in the right margin, moved down if they would overlap. */
static void write_beside(
	const struct svg_drawing *d, const struct plot_line *l, const char *text, double *last)
{
	double y = svg_y(d, l->y1), at = fmax(y, *last + LABEL_HEIGHT);
	fprintf(d->out, "<path class=\"lead\" d=\"M%.1f %.1f L%.1f %.1f\"/>", svg_x(1), y,
		svg_x(1) + 8, at);
	fprintf(d->out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">", svg_x(1) + 11, at + 4);
	escape_markup(d->out, text);
	fputs("</text>", d->out);
	*last = at;
}

static void write_line(const struct svg_drawing *d, const struct plot_line *l, bool is_theoretical)
{
	fprintf(d->out, "<line class=\"roof%s\" x1=\"%.1f\" y1=\"%.2f\" x2=\"%.1f\" y2=\"%.2f\"/>",
		is_theoretical ? " theory" : "", svg_x(l->x0), svg_y(d, l->y0), svg_x(l->x1),
		svg_y(d, l->y1));
}

static void write_roofs_of(const struct svg_drawing *d, const struct plot_set *s,
	const struct plot_roof *const *roof, size_t n)
{
	struct plot_labels names = {.area = {-1e6, -1e6, 2e6, 2e6}};
	char text[PLOT_ROOF_BYTES];
	double last = -1e6;
	for (size_t i = 0; i < n; i++) {
		struct plot_line l;
		if (!plot_axes_roof(&d->axes, s, roof[i], roof[i]->value, &l))
			continue;
		fputs("<g>", d->out);
		write_roof_title(d, roof[i]);
		write_band(d, s, roof[i]);
		write_line(d, &l, roof[i]->is_theoretical);
		plot_roof_text(d->plot, roof[i], text);
		if (roof[i]->is_memory)
			write_along(d, &l, text, &names);
		else
			write_beside(d, &l, text, &last);
		fputs("</g>\n", d->out);
	}
}

static void write_zone(const struct svg_drawing *d, double from, double to, enum plot_bound bound,
	const char *text)
{
	if (to - from < SVG_CHARACTER * (double)strlen(text))
		return;
	fprintf(d->out,
		"<rect class=\"zone %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"4\"/>"
		"<text class=\"zone mid %s\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
		svg_class(bound), from, d->top - 8, to - from, svg_class(bound), (from + to) / 2,
		d->top - 13, text);
}

static double share_within(const struct plot_axis *a, double value)
{
	return fmin(fmax(plot_axis_at(a, value), 0), 1);
}

static void write_zones(const struct svg_drawing *d, const struct plot_set *s)
{
	double memory, compute;
	if (d->plot->stale || !plot_set_zones(s, &memory, &compute))
		return;
	double a = svg_x(share_within(&d->axes.x, memory)),
	       b = svg_x(share_within(&d->axes.x, compute));
	write_zone(d, svg_x(0), a, PLOT_BOUND_MEMORY, "memory bounds");
	write_zone(d, a, b, PLOT_BOUND_BOTH, "either bounds");
	write_zone(d, b, svg_x(1), PLOT_BOUND_COMPUTE, "computing bounds");
}

/* Write the ends of a set's zones, for the script that switches to it. */
static void write_set(const struct svg_drawing *d, size_t i)
{
	const struct plot_set *s = &d->sets->set[i];
	char text[PLOT_ROOF_BYTES];
	double memory, compute, bend;
	fprintf(d->out, "<g class=\"roofs%s%s\"", i == d->sets->shown ? "" : " off",
		d->plot->stale ? " stale" : "");
	fprintf(d->out, " data-precision=\"%d\" data-kind=\"", (int)s->precision);
	escape_markup(d->out, s->hart_kind);
	fputs("\" data-text=\"", d->out);
	escape_markup(d->out, plot_precision_text(s->precision));
	if (!d->plot->stale && plot_set_zones(s, &memory, &compute))
		fprintf(d->out, "\" data-memory=\"%.1f\" data-compute=\"%.1f",
			svg_x(plot_axis_at(&d->axes.x, memory)),
			svg_x(plot_axis_at(&d->axes.x, compute)));
	if (!d->plot->stale && plot_set_dram_bend(s, &bend))
		fprintf(d->out, "\" data-dram=\"%.1f", svg_x(plot_axis_at(&d->axes.x, bend)));
	fputs("\">\n<desc>", d->out);
	plot_set_text(s, text);
	escape_markup(d->out, text);
	fputs("</desc>\n", d->out);
	write_zones(d, s);
	write_roofs_of(d, s, s->memory, s->n_memory);
	write_roofs_of(d, s, s->peak, s->n_peaks);
	fputs("</g>\n", d->out);
}

void svg_roofs_write(const struct svg_drawing *d)
{
	for (size_t i = 0; i < d->sets->n; i++)
		write_set(d, i);
}
