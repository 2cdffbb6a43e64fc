/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The SVG is drawn at a fixed width with the root below, as flame graphs are; the script reads boxes
 * and names back from it, so there is no second copy of the data to escape.
 */
#include "client/flamegraph/page.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "client/show/escape.h"
#include "client/show/page.h"
#include "proto/base/memory.h"
#include "proto/syntax/event_name.h"
#include "proto/syntax/unit.h"

/* Geometry of the drawing, in user units; flame.js reads it from the boxes. */
#define PAGE_WIDTH 1200.0
#define ROW_HEIGHT 18
#define BOX_HEIGHT 17
#define LABEL_PAD 4
#define LABEL_BASE 12.5     /* below the box's top */
#define CHARACTER_WIDTH 6.7 /* 11 px monospace: 0.6 em, rounded up */
#define LABEL_CHARACTERS_MIN 3
#define LABEL_BYTES_MAX 4096 /* C++ can do worse, but nobody reads it */
#define N_SHADES 4
#define SAME_SHARE 0.001  /* as a share of the whole: a smaller difference has no colour */
#define HEADING_HEIGHT 44 /* of plain SVG, without a page around it */

static const char body[] =
#include "client/flamegraph/flame.html.inc"
	;
static const char own_style[] =
#include "client/flamegraph/flame.css.inc"
	;
static const char svg_style[] =
#include "client/flamegraph/flame_svg.css.inc"
	;
static const char script[] =
#include "client/flamegraph/flame.js.inc"
	;

struct drawing {
	const struct flame_node *node;
	size_t n_nodes;
	Mperf__Unit unit;
	const struct flame_page *page;
	size_t n_cut;
	uint32_t depth; /* of the deepest box drawn */
	double height;
	/* with a baseline: the largest difference of a box, and the share of the baseline whose boxes are gone */
	double most, gone;
};

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

static void measure(struct drawing *d)
{
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

static void amount(const struct drawing *d, double value, char *ret_text)
{
	unit_text(d->unit, value, ret_text);
}

/* Also for readers without a mouse: the full name, its module, its value. The script splits the
 * lines again. */
static void write_tooltip(
	const struct drawing *d, const struct flame_node *node, const char *label, FILE *out)
{
	char total[UNIT_TEXT_BYTES], self[UNIT_TEXT_BYTES], share[UNIT_TEXT_BYTES];
	double whole = d->node[0].total;

	amount(d, node->total, total);
	amount(d, node->self, self);
	unit_text(MPERF__UNIT__UNIT_SHARE, whole > 0 ? node->total / whole : 0, share);
	fputs("<title>", out);
	escape_markup(out, label);
	fputc('\n', out);
	if (node->depth > 0) {
		escape_markup(out, node->module ? node->module : "unknown module");
		fprintf(out, " · %s\n", flame_kind_name(node->kind));
	}
	escape_markup(out, total);
	fputs(" · ", out);
	escape_markup(out, share);
	fputs(" of all · self ", out);
	escape_markup(out, self);
	if (d->page->baseline) {
		unit_text(MPERF__UNIT__UNIT_SHARE, part(node->was_total, d->node[0].was_total),
			share);
		fputs(" · was ", out);
		escape_markup(out, share);
		unit_text(
			MPERF__UNIT__UNIT_SHARE, part(node->was_self, d->node[0].was_total), share);
		fputs(", self ", out);
		escape_markup(out, share);
		unit_text(MPERF__UNIT__UNIT_SHARE, part(node->self, whole), share);
		fputs(" → ", out);
		escape_markup(out, share);
	}
	/* samples for which nothing was counted are in the whole and in no box */
	if (node->samples > 0) {
		unit_text(MPERF__UNIT__UNIT_SHARE,
			node->depth > 0 ? node->counted / node->samples : d->page->counted, share);
		fputs(" · counts of ", out);
		escape_markup(out, share);
		fputs(" of its samples", out);
	}
	fputs("</title>", out);
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

/* The class of a box with a baseline: p for more or m for less, and a digit of strength; e0: about as before. */
static void write_difference(const struct drawing *d, const struct flame_node *node, FILE *out)
{
	const double by = difference(d, node), strength = part(fabs(by), d->most);
	if (fabs(by) < SAME_SHARE || strength < 1.0 / (2 * N_SHADES))
		fputs("e0", out);
	else
		fprintf(out, "%c%u", by > 0 ? 'p' : 'm',
			(unsigned)fmin(strength * N_SHADES, N_SHADES - 1));
}

static void write_box(const struct drawing *d, const struct flame_node *node, FILE *out)
{
	static const char letters[N_FLAME_KINDS] = {
		[FLAME_UNKNOWN] = 'n',
		[FLAME_USER] = 'u',
		[FLAME_KERNEL] = 'k',
		[FLAME_JIT] = 'j',
		[FLAME_INLINED] = 'i',
	};
	double whole = d->node[0].total, scale = whole > 0 ? PAGE_WIDTH / whole : 0;
	double x = node->start * scale, width = node->depth == 0 ? PAGE_WIDTH : node->total * scale;
	double y = d->height - (node->depth + 1.0) * ROW_HEIGHT;
	char raw[LABEL_BYTES_MAX];

	/* Escaped before it is measured: \\x1b is four characters wide. */
	flame_label(node, raw, sizeof(raw));
	_cleanup_(freep) char *label = escape_terminal_dup(raw);
	if (!label)
		return;
	fputs("<g class=\"f ", out);
	if (node->depth == 0)
		fputs("r0", out);
	else if (d->page->baseline)
		write_difference(d, node, out);
	else
		fprintf(out, "%c%u", letters[node->kind], shade(label));
	fputs("\">", out);
	write_tooltip(d, node, label, out);
	fprintf(out, "<rect x=\"%.3f\" y=\"%.0f\" width=\"%.3f\" height=\"%d\" rx=\"2\"/>", x, y,
		width, BOX_HEIGHT);
	fprintf(out, "<text x=\"%.2f\" y=\"%.1f\">", x + LABEL_PAD, y + LABEL_BASE);
	write_label(label, width, out);
	fputs("</text></g>\n", out);
}

static void write_heading(const struct drawing *d, FILE *out)
{
	fputs("<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"
	      "<text class=\"heading\" x=\"6\" y=\"18\">",
		out);
	escape_markup(out, d->page->title);
	fputs("</text>\n<text class=\"provenance\" x=\"6\" y=\"34\">", out);
	escape_markup(out, d->page->provenance ? d->page->provenance : "");
	fputs("</text>\n", out);
}

static void write_svg(const struct drawing *d, FILE *out)
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
		if (drawn(d, &d->node[i]))
			write_box(d, &d->node[i], out);
	fputs("</svg>\n", out);
}

static void write_comparison(const struct drawing *d, FILE *out)
{
	char was[UNIT_TEXT_BYTES], gone[UNIT_TEXT_BYTES];
	amount(d, d->node[0].was_total, was);
	unit_text(MPERF__UNIT__UNIT_SHARE, d->gone, gone);
	fputs(", and was ", out);
	escape_markup(out, was);
	fputs(" in ", out);
	escape_markup(out, d->page->baseline);
	fputs(". Red: the function's own share is larger than there, blue: smaller. Boxes that "
	      "had ",
		out);
	escape_markup(out, gone);
	fputs(" of it are gone", out);
}

static void write_summary(const struct drawing *d, FILE *out)
{
	char total[UNIT_TEXT_BYTES], cut[UNIT_TEXT_BYTES];

	if (d->node[0].total <= 0) {
		fputs("There are no samples to draw.", out);
		return;
	}
	amount(d, d->node[0].total, total);
	fputs("Widths are ", out);
	escape_markup(out, !*d->page->event                        ? "time"
			   : event_name_is_waiting(d->page->event) ? "time that threads waited"
								   : d->page->event);
	fputs("; the whole is ", out);
	escape_markup(out, total);
	if (d->page->baseline)
		write_comparison(d, out);
	fputs(".", out);
	if (d->n_cut > 0) {
		unit_count_text((int64_t)d->n_cut, cut);
		fprintf(out, " %s box%s below %.2f %% %s not drawn.", cut,
			d->n_cut == 1 ? "" : "es", 100 * FLAME_PAGE_SHARE_MIN,
			d->n_cut == 1 ? "is" : "are");
	}
}

static void write_legend(const struct drawing *d, FILE *out)
{
	static const struct {
		const char *class, *says;
	} kinds[] = {{"u1", "user"}, {"k1", "kernel"}, {"j1", "jit"}, {"i1", "inlined"},
		{"n1", "unknown"}},
	  differences[] = {{"p3", "more"}, {"e0", "as before"}, {"m3", "less"}};
	const size_t n = d->page->baseline ? sizeof(differences) / sizeof(*differences)
					   : sizeof(kinds) / sizeof(*kinds);
	for (size_t i = 0; i < n; i++)
		fprintf(out,
			"<span><svg class=\"f %s\"><rect width=\"12\" height=\"12\" "
			"rx=\"2\"/></svg>"
			"%s</span>\n",
			d->page->baseline ? differences[i].class : kinds[i].class,
			d->page->baseline ? differences[i].says : kinds[i].says);
}

static void fill_hole(const void *userdata, const char *name, size_t n, FILE *out)
{
	const struct drawing *d = userdata;
	if (strncmp(name, "title", n) == 0)
		escape_markup(out, d->page->title);
	else if (strncmp(name, "provenance", n) == 0)
		escape_markup(out, d->page->provenance ? d->page->provenance : "");
	else if (strncmp(name, "summary", n) == 0)
		write_summary(d, out);
	else if (strncmp(name, "style", n) == 0)
		fprintf(out, "%s%s%s", svg_style, page_style(), own_style);
	else if (strncmp(name, "script", n) == 0)
		fputs(script, out);
	else if (strncmp(name, "flame", n) == 0)
		write_svg(d, out);
	else if (strncmp(name, "legend", n) == 0)
		write_legend(d, out);
}

int flame_page_write(
	const struct flame *f, const struct flame_page *page, FILE *out, size_t *ret_cut)
{
	struct drawing d = {.page = page, .unit = flame_unit(f)};
	d.node = flame_nodes(f, &d.n_nodes);
	measure(&d);

	if (page->plain) {
		fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
		write_svg(&d, out);
	} else {
		page_write(body, fill_hole, &d, out);
	}
	if (fflush(out) != 0 || ferror(out))
		return -EIO;
	*ret_cut = d.n_cut;
	return 0;
}
