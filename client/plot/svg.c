/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A fixed area between the axes, with room for names right of it.
 */
#include "client/plot/svg_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/plot/legend.h"
#include "client/show/escape.h"
#include "proto/base/memory.h"

#define WIDTH 1080.0
#define ABOVE 34.0   /* the names of the zones */
#define BELOW 48.0   /* labels and name of x */
#define HEADING 32.0 /* of a plain file */
#define LEGEND_COLUMNS 150
#define LEGEND_LINE 15.0
#define MANY 500 /* dots; with more of them strokes are thin */
#define X_LABELS 14
#define Y_LABELS 12

static const char style[] =
#include "client/plot/plot_svg.css.inc"
	;

const char *plot_svg_style(void)
{
	return style;
}

static void write_x_axis(const struct svg_drawing *d)
{
	struct plot_tick tick[PLOT_TICKS_MAX];
	size_t n = plot_axis_ticks(&d->axes.x, X_LABELS, tick);
	double bottom = svg_y(d, 0);
	for (size_t i = 0; i < n; i++) {
		char text[PLOT_TICK_BYTES];
		double x = svg_x(plot_axis_at(&d->axes.x, tick[i].value));
		fprintf(d->out,
			"<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
			tick[i].has_label ? "grid" : "thin", x, d->top, x, bottom);
		if (!tick[i].has_label)
			continue;
		plot_tick_text(tick[i].value, text);
		fprintf(d->out, "<text class=\"tick mid\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x,
			bottom + 16, text);
	}
	fprintf(d->out, "<text class=\"axis mid\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", svg_x(0.5),
		bottom + 38, d->plot->per_byte);
}

static void write_y_axis(const struct svg_drawing *d)
{
	struct plot_tick tick[PLOT_TICKS_MAX];
	size_t n = plot_axis_ticks(&d->axes.y, Y_LABELS, tick);
	for (size_t i = 0; i < n; i++) {
		char text[PLOT_TICK_BYTES];
		double y = svg_y(d, plot_axis_at(&d->axes.y, tick[i].value));
		fprintf(d->out,
			"<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
			tick[i].has_label ? "grid" : "thin", SVG_AREA_LEFT, y, svg_x(1), y);
		if (!tick[i].has_label)
			continue;
		plot_tick_text(tick[i].value, text);
		fprintf(d->out, "<text class=\"tick end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
			SVG_AREA_LEFT - 6, y + 4, text);
	}
	fprintf(d->out,
		"<text class=\"axis mid\" transform=\"translate(14 %.1f) rotate(-90)\">%s</text>\n",
		svg_y(d, 0.5), d->plot->rate);
}

static void write_heading(const struct svg_drawing *d)
{
	fputs("<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"
	      "<text class=\"heading\" x=\"8\" y=\"22\">",
		d->out);
	escape_markup(d->out, d->plot->title);
	fputs("</text>\n", d->out);
}

/* Lines of text at the foot of a plain file. */
static void write_legend(const struct svg_drawing *d, const char *legend, double top)
{
	for (const char *at = legend; *at; top += LEGEND_LINE) {
		size_t n = strcspn(at, "\n");
		_cleanup_(freep) char *line = strndup(at, n);
		fprintf(d->out, "<text class=\"quiet\" x=\"8\" y=\"%.1f\">", top);
		escape_markup(d->out, line ? line : "");
		fputs("</text>\n", d->out);
		at += n + (at[n] == '\n');
	}
}

static void begin(const struct svg_drawing *d, double height)
{
	fprintf(d->out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"plot\" class=\"plot%s\" "
		"role=\"img\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<title>",
		d->plot->n_dots > MANY ? " many" : "", WIDTH, height, WIDTH, height);
	escape_markup(d->out, d->plot->title);
	fputs("</title>\n<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" "
	      "markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">"
	      "<path class=\"head\" d=\"M0 0 L8 4 L0 8 z\"/></marker></defs>\n",
		d->out);
}

static int write_area(const struct svg_drawing *d)
{
	write_x_axis(d);
	write_y_axis(d);
	svg_roofs_write(d);
	fprintf(d->out, "<path class=\"frame\" d=\"M%.1f %.1f V%.1f H%.1f\"/>\n", svg_x(0), d->top,
		svg_y(d, 0), svg_x(1));
	return svg_dots_write(d);
}

int plot_svg_write(const struct plot *p, const struct plot_sets *sets, bool plain, FILE *out)
{
	struct svg_drawing d = {
		.plot = p, .sets = sets, .top = ABOVE + (plain ? HEADING : 0), .out = out};
	const struct plot_legend_look look = {LEGEND_COLUMNS, true};
	_cleanup_(freep) char *legend = NULL;
	size_t bytes;
	FILE *words = open_memstream(&legend, &bytes);
	if (!words)
		return -ENOMEM;
	size_t n_lines = plain ? plot_legend_write(p, sets, &look, words) : 0;
	if (fclose(words) != 0)
		return -ENOMEM;
	plot_axes_fit(&d.axes, p, sets);
	double bottom = svg_y(&d, 0) + BELOW;
	begin(&d, bottom + (double)n_lines * LEGEND_LINE + (plain ? LEGEND_LINE : 0));
	if (plain) {
		fprintf(out, "<style>\n%s</style>\n", style);
		write_heading(&d);
		write_legend(&d, legend, bottom + LEGEND_LINE);
	}
	int r = write_area(&d);
	fputs("</svg>\n", out);
	return r;
}
