/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/topdown/page.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "client/show/page.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

static const char body[] =
#include "client/topdown/topdown.html.inc"
	;
static const char own_style[] =
#include "client/topdown/topdown.css.inc"
	;

struct page {
	const struct topdown *tree; /* n */
	size_t n;
	const char *title;
};

static void write_cell(const char *class, const char *text, FILE *out)
{
	fprintf(out, "<td%s%s%s>", *class ? " class=\"" : "", class, *class ? "\"" : "");
	escape_markup(out, text);
	fputs("</td>", out);
}

static void write_node(const struct topdown_node *n, FILE *out)
{
	char value[TOPDOWN_TEXT_BYTES], error[TOPDOWN_TEXT_BYTES];
	topdown_value_text(n, value);
	topdown_error_text(n, error);
	fprintf(out, "<tr%s>", n->is_worst ? " class=\"worst\"" : "");
	fprintf(out, "<td style=\"padding-left:%dpx\">", 4 + 14 * (n->level - 1));
	escape_markup(out, n->name);
	fputs("</td>", out);
	write_cell("n", value, out);
	write_cell("n", error, out);
	write_cell("", isfinite(n->value) ? n->says : n->reason, out);
	write_cell("f", n->formula, out);
	write_cell("", n->passes, out);
	write_cell("s", n->source, out);
	write_cell("", n->verified, out);
	fputs("</tr>\n", out);
}

static void write_nodes(const struct topdown *t, FILE *out)
{
	fputs("<table>\n<thead><tr><th>Node</th><th>Share</th><th>Error</th><th>What it "
	      "is</th><th>Formula</th><th>Passes</th><th>Source</th><th>Verified</th></tr></thead>"
	      "\n<tbody>\n",
		out);
	for (size_t i = 0; i < t->n_nodes; i++)
		write_node(&t->node[i], out);
	fputs("</tbody>\n</table>\n", out);
}

static void write_inputs(const struct topdown *t, FILE *out)
{
	fputs("<table>\n<thead><tr><th>Event</th><th>Count</th><th>Counted "
	      "for</th><th>Pass</th><th></th></tr></thead>\n<tbody>\n",
		out);
	for (size_t i = 0; i < t->n_inputs; i++) {
		const struct topdown_input *in = &t->input[i];
		char count[UNIT_TEXT_BYTES] = "n/a", part[UNIT_TEXT_BYTES] = "";
		if (isfinite(in->count)) {
			unit_text(MPERF__UNIT__UNIT_COUNT, in->count, count);
			unit_text(MPERF__UNIT__UNIT_SHARE, in->running, part);
		}
		fputs("<tr>", out);
		write_cell("", in->name, out);
		write_cell("n", count, out);
		write_cell("n", part, out);
		fprintf(out, "<td class=\"n\">%d</td>", in->pass);
		write_cell("", isfinite(in->count) ? "" : in->reason, out);
		fputs("</tr>\n", out);
	}
	fputs("</tbody>\n</table>\n", out);
}

/* Name the core of the tree, if there are several. */
static void write_core(const struct topdown *t, FILE *out)
{
	if (t->is_alone)
		return;
	fputs("<h3>", out);
	escape_markup(out, t->core);
	fputs(", harts ", out);
	escape_markup(out, t->harts);
	fputs("</h3>\n", out);
}

static void write_summary(const struct topdown *t, FILE *out)
{
	const struct topdown_node *worst = topdown_worst(t);
	const char *next = topdown_next(t);
	char value[TOPDOWN_TEXT_BYTES];
	escape_markup(out, t->core);
	fputs(". ", out);
	if (!worst)
		return;
	topdown_value_text(worst, value);
	fputs("The most is lost to ", out);
	escape_markup(out, worst->name);
	fprintf(out, " (%s).", value);
	if (!*next)
		return;
	fputs(" Look next at ", out);
	for (const char *at = next; *at;) {
		size_t n = strcspn(at, ";");
		_cleanup_(freep) char *group = strndup(at, n);
		fputs(at == next ? "" : ", ", out);
		escape_markup(out, group ? group : "");
		at += n;
		at += strspn(at, ";");
	}
	fputs(".", out);
}

/* How each tree was counted, and the notes, which all of them share. */
static void write_how(const struct page *page, FILE *out)
{
	const Mperf__Provenance *notes = page->tree->notes;
	for (size_t i = 0; i < page->n; i++) {
		const struct topdown *t = &page->tree[i];
		_cleanup_(freep) char *how = topdown_how(t);
		if (!how || !*how)
			continue;
		if (!t->is_alone) {
			escape_markup(out, t->core);
			fputs(": ", out);
		}
		escape_markup(out, how);
		fputs(" ", out);
	}
	for (size_t i = 0; notes && i < notes->n_note; i++) {
		fputs("Note: ", out);
		escape_markup(out, notes->note[i]);
		fputs(". ", out);
	}
}

/* A part of the page that each tree has. */
static void write_part(
	const struct topdown *t, const char *title, const char *name, size_t n, FILE *out)
{
	if (strncmp(name, "summary", n) == 0) {
		write_summary(t, out);
		fputs(" ", out);
		return;
	}
	write_core(t, out);
	if (strncmp(name, "tree", n) == 0)
		topdown_svg_write(t, title, false, out);
	else if (strncmp(name, "nodes", n) == 0)
		write_nodes(t, out);
	else if (strncmp(name, "inputs", n) == 0)
		write_inputs(t, out);
}

static void fill_hole(const void *userdata, const char *name, size_t n, FILE *out)
{
	const struct page *page = userdata;
	if (strncmp(name, "title", n) == 0)
		escape_markup(out, page->title);
	else if (strncmp(name, "provenance", n) == 0)
		write_how(page, out);
	else if (strncmp(name, "style", n) == 0)
		fprintf(out, "%s%s%s", topdown_svg_style(), page_style(), own_style);
	else
		for (size_t i = 0; i < page->n; i++)
			write_part(&page->tree[i], page->title, name, n, out);
}

int topdown_page_write(const struct topdown *t, size_t n, const char *title, bool plain, FILE *out)
{
	if (plain) {
		fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
		topdown_svg_write_all(t, n, title, out);
	} else {
		page_write(body, fill_hole, &(struct page){t, n, title}, out);
	}
	return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
