/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Names at the left, indented by level with lines to their parents; bars from zero in an area with a
 * grid; figures behind the bars.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "client/topdown/page.h"
#include "proto/base/memory.h"

#define WIDTH 980.0
#define ROW 26.0
#define BAR 16.0
#define NAME_LEFT 14.0
#define INDENT 20.0
#define AREA_LEFT 300.0
#define AREA_RIGHT 800.0 /* figures are right of the longest bar */
#define HEADING 36.0     /* of a plain file */
#define ABOVE 26.0       /* labels of the grid */
#define FOOT 12.0
#define STEP 25.0 /* between lines of the grid, in % */
#define SCALE_MIN (-200.0)
#define SCALE_MAX 400.0
#define NAME_CHARACTERS 38 /* that fit before the area; a level's indent takes two */

static const char style[] =
#include "client/topdown/topdown_svg.css.inc"
	;

const char *topdown_svg_style(void)
{
	return style;
}

struct drawing {
	const struct topdown *tree;
	double low, high; /* the scale, multiples of its step */
	double step, top;
	FILE *out;
};

static bool is_share(const struct topdown *t)
{
	for (size_t i = 0; i < t->n_nodes; i++)
		if (strcmp(t->node[i].unit, "%") != 0)
			return false;
	return true;
}

/* From 0 to 100 %, and as far beyond as the values go. */
static void fit_scale(struct drawing *d)
{
	double low = 0, high = is_share(d->tree) ? 100 : 0;
	for (size_t i = 0; i < d->tree->n_nodes; i++) {
		const struct topdown_node *n = &d->tree->node[i];
		if (isfinite(n->value)) {
			low = fmin(low, n->value);
			high = fmax(high, n->value);
		}
	}
	d->step = is_share(d->tree) ? STEP : high > 0 ? high / 4 : 1;
	if (is_share(d->tree)) {
		low = fmax(low, SCALE_MIN);
		high = fmin(high, SCALE_MAX);
	}
	d->low = floor(low / d->step) * d->step;
	d->high = fmax(ceil(high / d->step), 1) * d->step;
}

static double x_of(const struct drawing *d, double value)
{
	double part = (value - d->low) / (d->high - d->low);
	return AREA_LEFT + fmin(fmax(part, 0), 1) * (AREA_RIGHT - AREA_LEFT);
}

static double y_of(const struct drawing *d, size_t row)
{
	return d->top + ABOVE + ((double)row + .5) * ROW;
}

static void write_grid(const struct drawing *d)
{
	double bottom = y_of(d, d->tree->n_nodes) - ROW / 2;
	for (double at = d->low; at <= d->high + d->step / 2; at += d->step) {
		fprintf(d->out,
			"<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
			fabs(at) < d->step / 2 ? "zero" : "grid", x_of(d, at), d->top + ABOVE - 6,
			x_of(d, at), bottom);
		fprintf(d->out, "<text class=\"quiet mid\" x=\"%.1f\" y=\"%.1f\">%.4g%s</text>\n",
			x_of(d, at), d->top + ABOVE - 12, at, is_share(d->tree) ? " %" : "");
	}
}

/* The row of the node that this one is part of; -1 on the first level. */
static int parent_row(const struct topdown *t, size_t row)
{
	for (size_t i = row; i-- > 0;)
		if (t->node[i].level < t->node[row].level)
			return (int)i;
	return -1;
}

static double name_x(const struct topdown_node *n)
{
	return NAME_LEFT + (n->level - 1) * INDENT;
}

/* From below the parent's name to the left of this one. */
static void write_branch(const struct drawing *d, size_t row)
{
	int parent = parent_row(d->tree, row);
	if (parent < 0)
		return;
	const struct topdown_node *above = &d->tree->node[parent], *n = &d->tree->node[row];
	fprintf(d->out, "<path class=\"%s\" d=\"M%.1f %.1f V%.1f H%.1f\"/>\n",
		n->is_worst ? "branch worst" : "branch", name_x(above) + 6,
		y_of(d, (size_t)parent) + 8, y_of(d, row), name_x(n) - 4);
}

static const char *class_of(const struct topdown_node *n)
{
	return n->is_worst                   ? "worst"
	       : n->kind == TOPDOWN_USEFUL   ? "useful"
	       : n->kind == TOPDOWN_RESIDUAL ? "residual"
					     : "lost";
}

static void write_name(const struct drawing *d, size_t row)
{
	const struct topdown_node *n = &d->tree->node[row];
	size_t fits = NAME_CHARACTERS - (size_t)(n->level - 1) * 2;
	_cleanup_(freep) char *name = escape_terminal_dup(n->name);
	_cleanup_(freep) char *cut =
		strndup(name ? name : "?", escape_cut(name ? name : "?", fits));
	fprintf(d->out, "<text class=\"name %s%s\" x=\"%.1f\" y=\"%.1f\">", class_of(n),
		isfinite(n->value) ? "" : " none", name_x(n), y_of(d, row) + 4.5);
	escape_markup(d->out, cut ? cut : "?");
	fprintf(d->out, "%s</text>\n", name && cut && strlen(cut) < strlen(name) ? "…" : "");
}

static void write_interval(const struct drawing *d, size_t row)
{
	const struct topdown_node *n = &d->tree->node[row];
	double y = y_of(d, row);
	if (!isfinite(n->error) || n->error <= 0)
		return;
	double from = x_of(d, n->value - n->error), to = x_of(d, n->value + n->error);
	fprintf(d->out, "<path class=\"interval\" d=\"M%.1f %.1f v8 m0 -4 H%.1f m0 -4 v8\"/>\n",
		from, y - 4, to);
}

static void write_bar(const struct drawing *d, size_t row)
{
	const struct topdown_node *n = &d->tree->node[row];
	char value[TOPDOWN_TEXT_BYTES], error[TOPDOWN_TEXT_BYTES];
	double y = y_of(d, row), zero = x_of(d, 0);
	topdown_value_text(n, value);
	topdown_error_text(n, error);
	if (!isfinite(n->value)) {
		fprintf(d->out, "<text class=\"quiet\" x=\"%.1f\" y=\"%.1f\">n/a: ", zero + 6,
			y + 4.5);
		escape_markup(d->out, *n->missing ? n->missing : n->reason);
		fprintf(d->out, "%s</text>\n", *n->missing ? " was not counted" : "");
		return;
	}
	double end = x_of(d, n->value), left = fmin(zero, end), right = fmax(zero, end);
	fprintf(d->out,
		"<rect class=\"bar %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
		"rx=\"2\"/>\n",
		class_of(n), left, y - BAR / 2, right - left, BAR);
	write_interval(d, row);
	double edge = isfinite(n->error) ? x_of(d, n->value + n->error) : right;
	fprintf(d->out, "<text class=\"figure %s\" x=\"%.1f\" y=\"%.1f\">", class_of(n),
		fmax(right, edge) + 7, y + 4.5);
	escape_markup(d->out, value);
	fputs(*error ? " " : "", d->out);
	escape_markup(d->out, error);
	fputs("</text>\n", d->out);
}

static void write_row(const struct drawing *d, size_t row)
{
	const struct topdown_node *n = &d->tree->node[row];
	fputs("<g><title>", d->out);
	escape_markup(d->out, n->name);
	fputs(" = ", d->out);
	escape_markup(d->out, n->formula);
	fputs(*n->says ? ": " : "", d->out);
	escape_markup(d->out, n->says);
	fputs("</title>\n", d->out);
	write_branch(d, row);
	write_name(d, row);
	write_bar(d, row);
	fputs("</g>\n", d->out);
}

static double height_of(const struct drawing *d)
{
	return y_of(d, d->tree->n_nodes) - ROW / 2 + FOOT;
}

void topdown_svg_write_all(const struct topdown *t, size_t n, const char *title, FILE *out)
{
	double height = 0;
	if (n == 1) {
		topdown_svg_write(t, title, true, out);
		return;
	}
	for (size_t i = 0; i < n; i++)
		height += height_of(&(struct drawing){.tree = &t[i], .top = HEADING});
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\">\n",
		WIDTH, height, WIDTH, height);
	for (size_t i = 0, y = 0; i < n; i++) {
		fprintf(out, "<g transform=\"translate(0 %zu)\">\n", y);
		topdown_svg_write(&t[i], title, true, out);
		fputs("</g>\n", out);
		y += (size_t)height_of(&(struct drawing){.tree = &t[i], .top = HEADING});
	}
	fputs("</svg>\n", out);
}

void topdown_svg_write(const struct topdown *t, const char *title, bool plain, FILE *out)
{
	struct drawing d = {.tree = t, .top = plain ? HEADING : 0, .out = out};
	fit_scale(&d);
	double height = height_of(&d);
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"tree\" role=\"img\" "
		"width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n<title>",
		WIDTH, height, WIDTH, height);
	escape_markup(out, title);
	fputs("</title>\n", out);
	if (plain) {
		fprintf(out, "<style>\n%s</style>\n", style);
		fprintf(out,
			"<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n"
			"<text class=\"heading\" x=\"%.0f\" y=\"24\">",
			NAME_LEFT);
		escape_markup(out, title);
		fputs(" on ", out);
		escape_markup(out, t->core);
		if (!t->is_alone) {
			fputs(", harts ", out);
			escape_markup(out, t->harts);
		}
		fputs("</text>\n", out);
	}
	write_grid(&d);
	for (size_t i = 0; i < t->n_nodes; i++)
		write_row(&d, i);
	fputs("</svg>\n", out);
}
