/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The smallest dots are on top, so that all can be pointed at.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/plot/labels.h"
#include "client/plot/svg_private.h"
#include "client/show/escape.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

#define RADIUS_MIN 2.4
#define RADIUS_MAX 19.0    /* a dot with all of the time */
#define RADIUS_OF_NONE 9.0 /* a dot without a share, such as a whole program by counters */
#define LABELS_MAX 40
#define LABEL_CHARACTERS 34
#define LABEL_HEIGHT 14.0

static double dot_x(const struct svg_drawing *d, const struct plot_dot *dot)
{
	return svg_x(plot_axis_at(&d->axes.x, plot_dot_intensity(dot)));
}

static double dram_x(const struct svg_drawing *d, const struct plot_dot *dot)
{
	return svg_x(plot_axis_at(&d->axes.x, dot->ops_per_dram_byte));
}

static double dot_y(const struct svg_drawing *d, const struct plot_dot *dot)
{
	return svg_y(d, plot_axis_at(&d->axes.y, dot->gops));
}

/* The area of a dot is its share of the time. */
static double radius_of(const struct plot_dot *dot)
{
	double share = dot->share > 0 ? fmin(dot->share, 1) : 0;
	if (dot->share < 0)
		return RADIUS_OF_NONE;
	return fmax(RADIUS_MIN, RADIUS_MAX * sqrt(share));
}

static void write_known(
	FILE *out, const char *before, double n, const char *format, const char *unit)
{
	if (n < 0)
		return;
	fputs(before, out);
	fprintf(out, format, n);
	fputs(unit, out);
}

/* The tooltip, which screen readers read too: whose dot it is. */
static void begin_title(const struct svg_drawing *d, const struct plot_dot *dot)
{
	fputs("<title>", d->out);
	escape_markup(d->out, dot->name);
	if (dot->source) {
		fputs("\n", d->out);
		escape_markup(d->out, dot->source);
	}
	if (d->plot->n_runs > 1) {
		fputs("\nin ", d->out);
		escape_markup(d->out, d->plot->run[dot->run]);
	}
}

static void write_share(const struct svg_drawing *d, const struct plot_dot *dot)
{
	write_known(
		d->out, "\n", dot->share >= 0 ? 100 * dot->share : -1, "%.2f", " % of the time");
	write_known(d->out, " · error ", dot->error >= 0 ? 100 * dot->error : -1, "%.2f", " %");
}

static void write_dot_title(const struct svg_drawing *d, const struct plot_dot *dot)
{
	char calls[UNIT_TEXT_BYTES];
	begin_title(d, dot);
	fprintf(d->out, "\n%.4g %s · %.3g %s", dot->gops, d->plot->rate, dot->ops_per_byte,
		d->plot->per_byte);
	write_known(d->out, " · ", dot->gbytes, "%.4g", " GB/s");
	write_share(d, dot);
	if (dot->calls >= 0) {
		unit_text(MPERF__UNIT__UNIT_COUNT, dot->calls, calls);
		fprintf(d->out, "\n%s calls", calls);
	}
	fprintf(d->out, "\n%s", plot_precision_text(dot->precision));
	if (dot->of_roof >= 0)
		fprintf(d->out, " · %.3g %% of its roof", 100 * dot->of_roof);
	if (dot->bound != PLOT_BOUND_UNKNOWN)
		fprintf(d->out, ", bound by %s",
			dot->bound == PLOT_BOUND_BOTH ? "memory or computing"
						      : plot_bound_text(dot->bound));
	fputs("</title>", d->out);
}

static void write_dram_title(const struct svg_drawing *d, const struct plot_dot *dot)
{
	begin_title(d, dot);
	fprintf(d->out, "\n%.4g %s · %.3g %s from memory", dot->gops, d->plot->rate,
		dot->ops_per_dram_byte, d->plot->per_byte);
	write_known(d->out, " · ", dot->dram_gbytes > 0 ? dot->dram_gbytes : -1, "%.4g",
		" GB/s from memory");
	write_share(d, dot);
	fprintf(d->out, "\n%s", plot_precision_text(dot->precision));
	if (dot->of_dram_roof >= 0)
		fprintf(d->out, " · %.3g %% of the DRAM roof", 100 * dot->of_dram_roof);
	if (dot->dram_bound != PLOT_BOUND_UNKNOWN)
		fprintf(d->out, ", bound by %s", plot_bound_text(dot->dram_bound));
	fputs("</title>", d->out);
}

static void write_arrow(const struct svg_drawing *d, const struct plot_dot *from)
{
	if (from->later == PLOT_NO_DOT)
		return;
	const struct plot_dot *to = &d->plot->dot[from->later];
	if (!plot_dot_has_place(from) || !plot_dot_has_place(to))
		return;
	double x0 = dot_x(d, from), y0 = dot_y(d, from), dx = dot_x(d, to) - x0,
	       dy = dot_y(d, to) - y0;
	double length = hypot(dx, dy), begin = radius_of(from), end = length - radius_of(to) - 2;
	if (end - begin < 4)
		return; /* it stayed where it was */
	fprintf(d->out,
		"<line class=\"way\" marker-end=\"url(#head)\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
		"y2=\"%.1f\"/>\n",
		x0 + dx * begin / length, y0 + dy * begin / length, x0 + dx * end / length,
		y0 + dy * end / length);
}

static bool is_before(const struct svg_drawing *d, const struct plot_dot *dot)
{
	return dot->run + 1 < d->plot->n_runs;
}

static void write_dot(const struct svg_drawing *d, const struct plot_dot *dot)
{
	fprintf(d->out, "<g class=\"dot %s%s\" data-precision=\"%d\">", svg_class(dot->bound),
		is_before(d, dot) ? " before" : "", (int)dot->precision);
	write_dot_title(d, dot);
	fprintf(d->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/></g>\n", dot_x(d, dot),
		dot_y(d, dot), radius_of(dot));
}

/* A diamond of the dot's size, and a line between the edges of both. */
static void write_dram(const struct svg_drawing *d, const struct plot_dot *dot)
{
	double x = dram_x(d, dot), y = dot_y(d, dot), r = radius_of(dot);
	fprintf(d->out, "<g class=\"dram %s%s\" data-precision=\"%d\" data-x=\"%.1f\">",
		svg_class(dot->dram_bound), is_before(d, dot) ? " before" : "", (int)dot->precision,
		x);
	write_dram_title(d, dot);
	double way = x - dot_x(d, dot), side = way < 0 ? -r : r;
	if (plot_dot_has_place(dot) && fabs(way) > 2 * r)
		fprintf(d->out,
			"<line class=\"join\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>",
			dot_x(d, dot) + side, y, x - side, y);
	fprintf(d->out, "<path d=\"M%.1f %.1f l%.1f %.1f l%.1f %.1f l%.1f %.1f z\"/></g>\n", x - r,
		y, r, -r, r, r, -r, r);
}

/* --- names of dots ---------------------------------------------------------------------------- */

static struct plot_box box_of(const struct svg_drawing *d, const struct plot_dot *dot)
{
	double r = radius_of(dot);
	return (struct plot_box){dot_x(d, dot) - r, dot_y(d, dot) - r, 2 * r, 2 * r};
}

/* Keep names off a dot, and off its diamond. */
static void take_boxes(
	const struct svg_drawing *d, struct plot_labels *places, const struct plot_dot *dot)
{
	struct plot_box box = box_of(d, dot);
	plot_labels_take(places, &box);
	box.left = dram_x(d, dot) - radius_of(dot);
	if (plot_dot_has_place(dot) && plot_dot_has_dram_place(dot))
		plot_labels_take(places, &box);
}

/* Write a text beside a dot, if there is room. */
static bool write_beside(const struct svg_drawing *d, struct plot_labels *places,
	const struct plot_dot *dot, const char *text)
{
	struct plot_spot spot = {dot_x(d, dot), dot_y(d, dot), radius_of(dot)};
	struct plot_box box;
	if (!plot_labels_beside(
		    places, &spot, (double)escape_width(text) * SVG_CHARACTER, LABEL_HEIGHT, &box))
		return false;
	fprintf(d->out, "<text class=\"label\" x=\"%.1f\" y=\"%.1f\">", box.left, box.top + 11);
	escape_markup(d->out, text);
	fputs("</text>\n", d->out);
	return true;
}

/* Write number and name, or the number alone if there is no room; the table has the name. */
static void write_label(const struct svg_drawing *d, struct plot_labels *places,
	const struct plot_dot *dot, size_t number)
{
	char text[256];
	_cleanup_(freep) char *name = escape_terminal_dup(dot->name);
	if (!name)
		return;
	size_t cut = escape_cut(name, LABEL_CHARACTERS);
	snprintf(text, sizeof(text), "%zu %.*s%s", number, (int)cut, name, name[cut] ? "…" : "");
	if (write_beside(d, places, dot, text))
		return;
	snprintf(text, sizeof(text), "%zu", number);
	write_beside(d, places, dot, text);
}

static int compare_share(const void *a, const void *b)
{
	const struct plot_dot *const *x = a, *const *y = b;
	return ((*x)->share < (*y)->share) - ((*x)->share > (*y)->share);
}

/* Names keep off the hottest dots, and off each other. The number of a dot is its place among those
 * of its run, as in the table. */
static void write_labels(const struct svg_drawing *d, const struct plot_dot *const *order)
{
	const struct plot *p = d->plot;
	struct plot_labels places = {
		.area = {SVG_AREA_LEFT, d->top, SVG_AREA_WIDTH, SVG_AREA_HEIGHT}};
	size_t n_before = 0, n = 0;
	for (size_t i = 0; i < p->n_dots; i++) {
		n_before += is_before(d, &p->dot[i]);
		if (!plot_dot_is_drawn(order[i]) || n++ >= LABELS_MAX * p->n_runs)
			continue;
		take_boxes(d, &places, order[i]);
	}
	n = 0;
	for (size_t i = 0; i < p->n_dots && n < LABELS_MAX; i++) {
		if (is_before(d, order[i]) || !plot_dot_is_drawn(order[i]))
			continue;
		write_label(d, &places, order[i], (size_t)(order[i] - p->dot) - n_before + 1);
		n++;
	}
}

int svg_dots_write(const struct svg_drawing *d)
{
	const struct plot *p = d->plot;
	_cleanup_(freep) const struct plot_dot **order = calloc(p->n_dots + 1, sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_dots; i++)
		order[i] = &p->dot[i];
	qsort(order, p->n_dots, sizeof(*order), compare_share);
	for (size_t i = 0; i < p->n_dots; i++)
		write_arrow(d, order[i]);
	for (size_t i = 0; i < p->n_dots; i++) {
		if (plot_dot_has_dram_place(order[i]))
			write_dram(d, order[i]);
		if (plot_dot_has_place(order[i]))
			write_dot(d, order[i]);
	}
	write_labels(d, order);
	return 0;
}
