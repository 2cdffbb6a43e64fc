/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each picture has its own words: summary, provenance, legend. All are in the page; those of pictures that are not shown
 * have the attribute hidden, which flame.js moves.
 */
#include "client/flamegraph/page.h"

#include <errno.h>
#include <string.h>

#include "client/flamegraph/drawing_private.h"
#include "client/show/escape.h"
#include "client/show/page.h"
#include "proto/syntax/event_name.h"
#include "proto/syntax/unit.h"

static const char body[] =
#include "client/flamegraph/flame.html.inc"
	;
static const char own_style[] =
#include "client/flamegraph/flame.css.inc"
	;
static const char script[] =
#include "client/flamegraph/flame.js.inc"
	;
static const char script_hash[] =
#include "client/flamegraph/flame.js.sha256.inc"
	;

struct pictures {
	const struct flame_page *page;
	struct drawing drawing[FLAME_VIEWS_MAX]; /* as page->view; without a flame: not set */
	int r;                                   /* of writing */
};

static const struct drawing *first_of(const struct pictures *p)
{
	return &p->drawing[p->page->first];
}

static void amount(const struct drawing *d, double value, char *ret_text)
{
	unit_text(d->unit, value, ret_text);
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

/* The meaning of the widths, as people say it. */
static const char *widths_of(const char *event)
{
	return !*event                              ? "time"
	       : strcmp(event, "waiting:hart") == 0 ? "time that threads waited for a CPU"
	       : event_name_is_waiting(event)       ? "time that threads waited"
						    : event;
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
	escape_markup(out, widths_of(d->view->event));
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

static void write_swatch(const char *class, FILE *out)
{
	fprintf(out, "<svg class=\"f %s\"><rect width=\"12\" height=\"12\" rx=\"2\"/></svg>",
		class);
}

static void write_legend(const struct flame_page *page, FILE *out)
{
	static const struct {
		const char *class, *says;
	} kinds[] = {{"u1", "user"}, {"k1", "kernel"}, {"j1", "jit"}, {"i1", "inlined"},
		{"n1", "unknown"}},
	  differences[] = {{"p3", "more"}, {"e0", "as before"}, {"m3", "less"}};
	const size_t n = page->baseline ? sizeof(differences) / sizeof(*differences)
					: sizeof(kinds) / sizeof(*kinds);
	for (size_t i = 0; i < n; i++) {
		fputs("<span>", out);
		write_swatch(page->baseline ? differences[i].class : kinds[i].class, out);
		fprintf(out, "%s</span>\n", page->baseline ? differences[i].says : kinds[i].says);
	}
}

/* --- of each picture -------------------------------------------------------------------------- */

static const char *hidden(const struct pictures *p, size_t i)
{
	return i == p->page->first ? "" : " hidden";
}

static void write_provenance(const struct drawing *d, FILE *out)
{
	escape_markup(out, d->view->provenance ? d->view->provenance : "");
}

/* Each picture of the page, as `write` writes it. */
static void write_each(
	const struct pictures *p, void (*write)(const struct drawing *d, FILE *out), FILE *out)
{
	for (size_t i = 0; i < p->page->n_views; i++) {
		if (!p->page->view[i].flame)
			continue;
		if (p->page->n_views > 1)
			fprintf(out, "<span data-view=\"%s\"%s>", p->page->view[i].name,
				hidden(p, i));
		write(&p->drawing[i], out);
		if (p->page->n_views > 1)
			fputs("</span>", out);
	}
}

static void write_button(const struct pictures *p, size_t i, FILE *out)
{
	const struct flame_view *view = &p->page->view[i];
	char total[UNIT_TEXT_BYTES];
	fprintf(out, "<button type=\"button\" data-button=\"%s\" title=\"", view->name);
	escape_markup(out, view->flame ? view->says : view->absent);
	fprintf(out, "\" aria-pressed=\"%s\"%s>", i == p->page->first ? "true" : "false",
		view->flame ? "" : " disabled");
	escape_markup(out, view->label);
	if (view->flame) {
		amount(&p->drawing[i], p->drawing[i].node[0].total, total);
		fputs(" <small>", out);
		escape_markup(out, total);
		fputs("</small>", out);
	}
	fputs("</button>\n", out);
}

static void write_waits(const struct drawing *d, FILE *out)
{
	struct flame_wait_sum sum[FLAME_WAITS];
	const size_t n = flame_waits(d->view->flame, sum);
	for (size_t i = 0; i < n; i++) {
		char text[UNIT_TEXT_BYTES], class[DRAWING_CLASS_BYTES];
		amount(d, sum[i].value, text);
		drawing_wait_class(sum[i].wait, class);
		fprintf(out,
			"<button type=\"button\" class=\"wait\" data-find=\"^%s$\" "
			"title=\"Search for %s\">",
			sum[i].name, sum[i].name);
		write_swatch(class, out);
		fprintf(out, "%s %s</button>\n", sum[i].name + strlen("waiting:"), text);
	}
}

static void write_switch(const struct pictures *p, FILE *out)
{
	if (p->page->n_views < 2)
		return;
	fputs("<div class=\"switch\">\n<div class=\"views\" role=\"group\" aria-label=\"What "
	      "widths are\">\n",
		out);
	for (size_t i = 0; i < p->page->n_views; i++)
		write_button(p, i, out);
	fputs("</div>\n", out);
	write_each(p, write_waits, out);
	fputs("</div>\n", out);
}

/* For those who have no pointer to see a button's title with: "Left out: A, B (why); C (why)." */
static void write_absent(const struct pictures *p, FILE *out)
{
	const char *why = NULL;
	for (size_t i = 0; i < p->page->n_views; i++) {
		const struct flame_view *view = &p->page->view[i];
		if (view->flame)
			continue;
		const bool same = why && strcmp(why, view->absent) == 0;
		if (why && !same) {
			fputs(" (", out);
			escape_markup(out, why);
			fputc(')', out);
		}
		fputs(!why ? " Left out: " : same ? ", " : "; ", out);
		escape_markup(out, view->label);
		why = view->absent;
	}
	if (!why)
		return;
	fputs(" (", out);
	escape_markup(out, why);
	fputs(").", out);
}

static int write_data(const struct pictures *p, FILE *out)
{
	const struct drawing *other[FLAME_VIEWS_MAX];
	size_t n = 0;
	for (size_t i = 0; i < p->page->n_views; i++)
		if (i != p->page->first && p->page->view[i].flame)
			other[n++] = &p->drawing[i];
	if (p->page->n_views < 2)
		return 0;
	fprintf(out, "<script type=\"application/json\" id=\"views\" data-first=\"%s\">\n",
		p->page->view[p->page->first].name);
	int r = drawing_write_data(other, n, out);
	fputs("</script>\n", out);
	return r;
}

static void fill_hole(const void *userdata, const char *name, size_t n, FILE *out)
{
	struct pictures *p = *(struct pictures *const *)userdata;
	if (strncmp(name, "title", n) == 0)
		escape_markup(out, p->page->title);
	else if (strncmp(name, "provenance", n) == 0)
		write_each(p, write_provenance, out);
	else if (strncmp(name, "summary", n) == 0)
		write_each(p, write_summary, out);
	else if (strncmp(name, "style", n) == 0)
		fprintf(out, "%s%s%s", drawing_style(), page_style(), own_style);
	else if (strncmp(name, "script", n) == 0)
		fputs(script, out);
	else if (strncmp(name, "policy", n) == 0)
		fputs(script_hash, out);
	else if (strncmp(name, "switch", n) == 0)
		write_switch(p, out);
	else if (strncmp(name, "flame", n) == 0)
		drawing_write_svg(first_of(p), out);
	else if (strncmp(name, "absent", n) == 0)
		write_absent(p, out);
	else if (strncmp(name, "legend", n) == 0)
		write_legend(p->page, out);
	else if (strncmp(name, "data", n) == 0)
		p->r = write_data(p, out);
}

int flame_page_write(const struct flame_page *page, FILE *out, size_t *ret_cut)
{
	struct pictures p = {.page = page}, *userdata = &p;
	for (size_t i = 0; i < page->n_views; i++)
		if (page->view[i].flame)
			drawing_make(&p.drawing[i], page, &page->view[i]);

	if (page->plain) {
		fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
		drawing_write_svg(first_of(&p), out);
	} else {
		page_write(body, fill_hole, &userdata, out);
	}
	if (fflush(out) != 0 || ferror(out))
		return -EIO;
	*ret_cut = first_of(&p)->n_cut;
	return p.r;
}
