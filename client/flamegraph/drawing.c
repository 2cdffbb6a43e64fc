/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The SVG is drawn at a fixed width with the root below, as flame graphs are; the script reads the first picture's
 * boxes and names back from it, so there is no second copy of these to escape.
 */
#include "client/flamegraph/drawing_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

/* Geometry of the drawing, in user units; flame.js reads it from the boxes. */
#define PAGE_WIDTH 1200.0
#define ROW_HEIGHT 18
#define BOX_HEIGHT 17
#define LABEL_PAD 4
#define LABEL_BASE 12.5     /* below the box's top */
#define CHARACTER_WIDTH 6.7 /* 11 px monospace: 0.6 em, rounded up */
#define LABEL_CHARACTERS_MIN 3
#define N_SHADES 4
#define SAME_SHARE 0.001  /* as a share of the whole: a smaller difference has no colour */
#define HEADING_HEIGHT 44 /* of plain SVG, without a page around it */

static const char svg_style[] =
#include "client/flamegraph/flame_svg.css.inc"
	;

const char *drawing_style(void)
{
	return svg_style;
}

static bool drawn(const struct drawing *d, const struct flame_node *node)
{
	return node->depth == 0 || node->total >= FLAME_PAGE_SHARE_MIN * d->node[0].total;
}

static double part(double value, double whole)
{
	return whole > 0 ? value / whole : 0;
}

/* By how much the share of the box itself has grown, without the boxes above it. */
static double difference(const struct drawing *d, const struct flame_node *node)
{
	return part(node->self, d->node[0].total) - part(node->was_self, d->node[0].was_total);
}

static void measure_differences(struct drawing *d)
{
	for (size_t i = 1; i < d->n_nodes; i++) {
		const struct flame_node *node = &d->node[i];
		d->most = fmax(d->most, fabs(difference(d, node)));
		if (node->total <= 0 && d->node[node->parent].total > 0)
			d->gone += part(node->was_total, d->node[0].was_total);
	}
}

void drawing_make(
	struct drawing *ret_drawing, const struct flame_page *page, const struct flame_view *view)
{
	struct drawing *d = ret_drawing;
	*d = (struct drawing){.page = page, .view = view, .unit = flame_unit(view->flame)};
	d->node = flame_nodes(view->flame, &d->n_nodes);
	if (d->page->baseline)
		measure_differences(d);
	for (size_t i = 0; i < d->n_nodes; i++) {
		if (!drawn(d, &d->node[i]))
			d->n_cut += d->node[i].total > 0;
		else if (d->node[i].depth > d->depth)
			d->depth = d->node[i].depth;
	}
	d->height = (d->depth + 1.0) * ROW_HEIGHT + (d->page->plain ? HEADING_HEIGHT : 0);
}

/* Neighbours of one kind should differ; the same function should look the same everywhere. */
static unsigned shade(const char *label)
{
	uint32_t hash = 2166136261u; /* FNV-1a; Source: RFC 9923 */
	for (; *label; label++)
		hash = (hash ^ (uint8_t)*label) * 16777619u;
	return (hash >> 16) % N_SHADES;
}

/* The box's change since the baseline, as text. */
static int print_change(
	const struct drawing *d, const struct flame_node *node, char *ret_text, size_t n)
{
	char was[UNIT_TEXT_BYTES], was_self[UNIT_TEXT_BYTES], self[UNIT_TEXT_BYTES];
	const double was_whole = d->node[0].was_total;
	unit_text(MPERF__UNIT__UNIT_SHARE, part(node->was_total, was_whole), was);
	unit_text(MPERF__UNIT__UNIT_SHARE, part(node->was_self, was_whole), was_self);
	unit_text(MPERF__UNIT__UNIT_SHARE, part(node->self, d->node[0].total), self);
	return snprintf(ret_text, n, " · was %s, self %s → %s", was, was_self, self);
}

void drawing_figures(const struct drawing *d, const struct flame_node *node,
	char ret_text[static DRAWING_FIGURES_BYTES])
{
	char total[UNIT_TEXT_BYTES], self[UNIT_TEXT_BYTES], share[UNIT_TEXT_BYTES];
	unit_text(d->unit, node->total, total);
	unit_text(d->unit, node->self, self);
	unit_text(MPERF__UNIT__UNIT_SHARE, part(node->total, d->node[0].total), share);
	int n = snprintf(
		ret_text, DRAWING_FIGURES_BYTES, "%s · %s of all · self %s", total, share, self);
	if (d->page->baseline)
		n += print_change(d, node, ret_text + n, DRAWING_FIGURES_BYTES - (size_t)n);
	if (node->samples <= 0)
		return;
	/* samples for which nothing was counted are in the whole and in no box */
	unit_text(MPERF__UNIT__UNIT_SHARE,
		node->depth > 0 ? node->counted / node->samples : d->view->counted, share);
	snprintf(ret_text + n, DRAWING_FIGURES_BYTES - (size_t)n, " · counts of %s of its samples",
		share);
}

/* Also for readers without a mouse: the full name, its module, its value. The script splits the
 * lines again. */
static void write_tooltip(
	const struct drawing *d, const struct flame_node *node, const char *label, FILE *out)
{
	char figures[DRAWING_FIGURES_BYTES];
	fputs("<title>", out);
	escape_markup(out, label);
	fputc('\n', out);
	if (node->depth > 0 && node->kind != FLAME_WAITING) {
		escape_markup(out, node->module ? node->module : "unknown module");
		fprintf(out, " · %s\n", flame_kind_name(node->kind));
	}
	drawing_figures(d, node, figures);
	fprintf(out, "%s</title>", figures);
}

static void write_label(const char *label, double width, FILE *out)
{
	char cut[512];
	size_t characters =
		width > 2 * LABEL_PAD ? (size_t)((width - 2 * LABEL_PAD) / CHARACTER_WIDTH) : 0;
	if (characters < LABEL_CHARACTERS_MIN)
		return;
	size_t n = escape_cut(label, characters);
	bool whole = label[n] == '\0';
	if (!whole)
		n = escape_cut(label, characters - 1);
	if (n >= sizeof(cut))
		n = sizeof(cut) - 1;
	memcpy(cut, label, n);
	cut[n] = '\0';
	escape_markup(out, cut);
	if (!whole)
		fputs("…", out);
}

static void set_class(char ret_class[static DRAWING_CLASS_BYTES], char letter, char digit)
{
	ret_class[0] = letter;
	ret_class[1] = digit;
	ret_class[2] = '\0';
}

/* With a baseline: p for more or m for less, and a digit of strength; e0: about as before. */
static void difference_class(
	const struct drawing *d, const struct flame_node *node, char *ret_class)
{
	const double by = difference(d, node), strength = part(fabs(by), d->most);
	if (fabs(by) < SAME_SHARE || strength < 1.0 / (2 * N_SHADES))
		set_class(ret_class, 'e', '0');
	else
		set_class(ret_class, by > 0 ? 'p' : 'm',
			(char)('0' + (int)fmin(strength * N_SHADES, N_SHADES - 1)));
}

void drawing_wait_class(size_t wait, char ret_class[static DRAWING_CLASS_BYTES])
{
	set_class(ret_class, 'w', (char)('a' + (int)wait));
}

static void class_of(
	const struct drawing *d, const struct flame_node *node, const char *label, char *ret_class)
{
	static const char letters[N_FLAME_KINDS] = {
		[FLAME_UNKNOWN] = 'n',
		[FLAME_USER] = 'u',
		[FLAME_KERNEL] = 'k',
		[FLAME_JIT] = 'j',
		[FLAME_INLINED] = 'i',
	};
	if (node->depth == 0)
		set_class(ret_class, 'r', '0');
	else if (d->page->baseline)
		difference_class(d, node, ret_class);
	else if (node->kind == FLAME_WAITING)
		drawing_wait_class(flame_wait(node), ret_class);
	else
		set_class(ret_class, letters[node->kind], (char)('0' + (int)shade(label)));
}

bool drawing_place(
	const struct drawing *d, const struct flame_node *node, struct drawing_box *ret_box)
{
	const double whole = d->node[0].total, scale = whole > 0 ? PAGE_WIDTH / whole : 0;
	char raw[DRAWING_LABEL_BYTES_MAX];
	if (!drawn(d, node))
		return false;
	/* Escaped before it is measured: \\x1b is four characters wide. */
	flame_label(node, raw, sizeof(raw));
	ret_box->label = escape_terminal_dup(raw);
	ret_box->x = node->start * scale;
	ret_box->width = node->depth == 0 ? PAGE_WIDTH : node->total * scale;
	class_of(d, node, ret_box->label ? ret_box->label : "", ret_box->class);
	return true;
}

static void write_box(const struct drawing *d, const struct flame_node *node, FILE *out)
{
	struct drawing_box box;
	const double y = d->height - (node->depth + 1.0) * ROW_HEIGHT;
	if (!drawing_place(d, node, &box) || !box.label)
		return;
	fprintf(out, "<g class=\"f %s\">", box.class);
	write_tooltip(d, node, box.label, out);
	fprintf(out, "<rect x=\"%.3f\" y=\"%.0f\" width=\"%.3f\" height=\"%d\" rx=\"2\"/>", box.x,
		y, box.width, BOX_HEIGHT);
	fprintf(out, "<text x=\"%.2f\" y=\"%.1f\">", box.x + LABEL_PAD, y + LABEL_BASE);
	write_label(box.label, box.width, out);
	fputs("</text></g>\n", out);
	free(box.label);
}

static void write_heading(const struct drawing *d, FILE *out)
{
	fputs("<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"
	      "<text class=\"heading\" x=\"6\" y=\"18\">",
		out);
	escape_markup(out, d->page->title);
	fputs("</text>\n<text class=\"provenance\" x=\"6\" y=\"34\">", out);
	escape_markup(out, d->view->provenance ? d->view->provenance : "");
	fputs("</text>\n", out);
}

void drawing_write_svg(const struct drawing *d, FILE *out)
{
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"flame\" class=\"flame\" "
		"role=\"img\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n",
		PAGE_WIDTH, d->height, PAGE_WIDTH, d->height);
	fputs("<title>", out);
	escape_markup(out, d->page->title);
	fputs("</title>\n", out);
	if (d->page->plain)
		fprintf(out, "<style>\n%s</style>\n", svg_style);
	if (d->page->plain)
		write_heading(d, out);
	for (size_t i = 0; i < d->n_nodes; i++)
		write_box(d, &d->node[i], out);
	fputs("</svg>\n", out);
}
