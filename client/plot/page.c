/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/plot/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/plot/legend.h"
#include "client/plot/svg_private.h"
#include "client/show/escape.h"
#include "client/show/page.h"
#include "proto/syntax/unit.h"

static const char body[] =
#include "client/plot/plot.html.inc"
	;
static const char own_style[] =
#include "client/plot/plot.css.inc"
	;
static const char script[] =
#include "client/plot/plot.js.inc"
	;
static const char script_hash[] =
#include "client/plot/plot.js.sha256.inc"
	;

struct page {
	const struct plot *plot;
	const struct plot_sets *sets;
	char *drawing; /* the SVG */
};

/* --- tables ----------------------------------------------------------------------------------- */

static void write_text(const char *text, const char *class, FILE *out)
{
	fprintf(out, "<td%s>", class);
	escape_markup(out, text ? text : "");
	fputs("</td>", out);
}

static void write_unit(Mperf__Unit unit, double n, FILE *out)
{
	char text[UNIT_TEXT_BYTES] = "-";
	if (n >= 0)
		unit_text(unit, n, text);
	write_text(text, " class=\"n\"", out);
}

/* The same loop in the first run; NULL: none. */
static const struct plot_dot *before(const struct plot *p, size_t dot)
{
	for (size_t i = 0; i < p->n_dots && p->dot[i].run < p->dot[dot].run; i++)
		if (p->dot[i].later == dot)
			return &p->dot[i];
	return NULL;
}

static bool is_compared(const struct plot *p)
{
	return p->n_roofs > 0 && !p->stale && !p->no_roofs;
}

static void write_bound(enum plot_bound bound, FILE *out)
{
	static const char *const classes[N_PLOT_BOUNDS] = {
		"", " class=\"m\"", " class=\"b\"", " class=\"c\""};
	write_text(plot_bound_text(bound), classes[bound], out);
}

static bool has_dram(const struct plot *p)
{
	bool joined;
	return plot_has_dram(p, &joined);
}

/* Cells for bytes from memory. */
static void write_dram(const struct plot *p, const struct plot_dot *d, FILE *out)
{
	bool known = plot_dot_has_dram_place(d);
	if (!has_dram(p))
		return;
	write_unit(MPERF__UNIT__UNIT_RATIO, known ? d->dram_gbytes : -1, out);
	write_unit(MPERF__UNIT__UNIT_RATIO, known ? d->ops_per_dram_byte : -1, out);
	if (!is_compared(p))
		return;
	write_unit(MPERF__UNIT__UNIT_SHARE, d->of_dram_roof, out);
	write_bound(d->dram_bound, out);
}

/* Cells for requested bytes. */
static void write_asked(const struct plot *p, const struct plot_dot *d, FILE *out)
{
	if (p->dram_only)
		return;
	write_unit(MPERF__UNIT__UNIT_RATIO, d->gbytes, out);
	write_unit(MPERF__UNIT__UNIT_RATIO, d->ops_per_byte, out);
	if (!is_compared(p))
		return;
	write_unit(MPERF__UNIT__UNIT_SHARE, d->of_roof, out);
	write_bound(d->bound, out);
}

static void write_row(const struct plot *p, size_t i, size_t number, FILE *out)
{
	const struct plot_dot *d = &p->dot[i];
	const struct plot_dot *earlier = p->n_runs > 1 ? before(p, i) : NULL;
	fprintf(out, "<tr><td class=\"n\">%zu</td>", number);
	write_text(d->name, "", out);
	write_text(d->source, "", out);
	write_unit(MPERF__UNIT__UNIT_SHARE, d->share, out);
	write_unit(MPERF__UNIT__UNIT_RATIO, d->gops, out);
	if (p->n_runs > 1)
		write_unit(MPERF__UNIT__UNIT_RATIO, earlier ? earlier->gops : -1, out);
	write_asked(p, d, out);
	write_dram(p, d, out);
	write_unit(MPERF__UNIT__UNIT_COUNT, d->calls, out);
	write_unit(MPERF__UNIT__UNIT_NS, d->time_ns, out);
	write_unit(MPERF__UNIT__UNIT_SHARE, d->error, out);
	fputs("</tr>\n", out);
}

static void write_head(const struct plot *p, FILE *out)
{
	bool compared = is_compared(p);
	fprintf(out, "<th>#</th><th>Name</th><th>Source</th><th>Share</th><th>%s</th>%s", p->rate,
		p->n_runs > 1 ? "<th>Before</th>" : "");
	if (!p->dram_only)
		fprintf(out, "<th>GB/s</th><th>%s</th>%s", p->per_byte,
			compared ? "<th>Of roof</th><th>Bound by</th>" : "");
	if (has_dram(p))
		fprintf(out, "<th>DRAM GB/s</th><th>%s from DRAM</th>%s", p->per_byte,
			compared ? "<th>Of DRAM roof</th><th>Bound by</th>" : "");
	fputs("<th>Calls</th><th>Time</th><th>Error</th>", out);
}

static void write_loops(const struct plot *p, FILE *out)
{
	size_t n = 0;
	fputs("<table>\n<thead><tr>", out);
	write_head(p, out);
	fputs("</tr></thead>\n<tbody>\n", out);
	for (size_t i = 0; i < p->n_dots; i++)
		if (p->dot[i].run + 1 == p->n_runs && ++n <= PLOT_PAGE_ROWS_MAX)
			write_row(p, i, n, out);
	fputs("</tbody>\n</table>\n", out);
	if (n > PLOT_PAGE_ROWS_MAX)
		fprintf(out, "<p>%zu more are in the picture but not in this table.</p>\n",
			n - PLOT_PAGE_ROWS_MAX);
}

static void write_roof(
	const struct plot *p, const struct plot_set *s, const struct plot_roof *roof, FILE *out)
{
	char text[PLOT_ROOF_BYTES];
	fputs("<tr>", out);
	write_text(*s->hart_kind ? s->hart_kind : "all alike", "", out);
	write_text(roof->is_memory ? "any" : plot_precision_text(roof->precision), "", out);
	write_text(roof->name, "", out);
	snprintf(text, sizeof(text), "%.4g %s", roof->value, roof->is_memory ? "GB/s" : p->rate);
	write_text(text, " class=\"n\"", out);
	plot_roof_interval(p, roof, text);
	write_text(text, " class=\"n\"", out);
	write_text(roof->how, "", out);
	fputs("</tr>\n", out);
}

/* Is it the first set of its kind of harts? Memory is the same in all of them. */
static bool is_first_of_kind(const struct plot_sets *sets, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (strcmp(sets->set[i].hart_kind, sets->set[at].hart_kind) == 0)
			return false;
	return true;
}

static void write_roofs(const struct page *page, FILE *out)
{
	const struct plot_sets *sets = page->sets;
	if (sets->n == 0)
		return;
	fputs("<table>\n<thead><tr><th>Harts</th><th>Of</th><th>Roof of one hart</th><th>At "
	      "most</th>"
	      "<th>Interval</th><th>Reached by</th></tr></thead>\n<tbody>\n",
		out);
	for (size_t i = 0; i < sets->n; i++) {
		const struct plot_set *s = &sets->set[i];
		for (size_t k = 0; k < s->n_memory && is_first_of_kind(sets, i); k++)
			write_roof(page->plot, s, s->memory[k], out);
		for (size_t k = 0; k < s->n_peaks; k++)
			write_roof(page->plot, s, s->peak[k], out);
	}
	fputs("</tbody>\n</table>\n", out);
}

/* --- the page --------------------------------------------------------------------------------- */

/* The paragraph between the drawing and the tables. */
static void write_summary(const struct page *page, FILE *out)
{
	const struct plot *p = page->plot;
	bool joined, has_dram = plot_has_dram(p, &joined);
	if (p->n_dots == 0)
		fputs("There are no loops to draw.", out);
	else
		fprintf(out, "Each %s; its area is its share of the time.%s",
			joined || !has_dram ? "dot is a loop" : "diamond is a row of the table",
			joined ? " Diamonds, joined to their dots, are by bytes from memory." : "");
	if (p->n_runs > 1) {
		fputs(" Dashed: ", out);
		escape_markup(out, p->run[0]);
		fputs("; filled: ", out);
		escape_markup(out, p->run[1]);
		fputs(".", out);
	}
}

static void fill_hole(const void *userdata, const char *name, size_t n, FILE *out)
{
	const struct page *page = userdata;
	const struct plot *p = page->plot;
	if (strncmp(name, "title", n) == 0)
		escape_markup(out, p->title);
	else if (strncmp(name, "provenance", n) == 0)
		escape_markup(out, p->provenance ? p->provenance : "");
	else if (strncmp(name, "summary", n) == 0)
		write_summary(page, out);
	else if (strncmp(name, "legend", n) == 0)
		plot_legend_markup(p, page->sets, out);
	else if (strncmp(name, "style", n) == 0)
		fprintf(out, "%s%s%s", plot_svg_style(), page_style(), own_style);
	else if (strncmp(name, "script", n) == 0)
		fputs(script, out);
	else if (strncmp(name, "policy", n) == 0)
		fputs(script_hash, out);
	else if (strncmp(name, "loops", n) == 0)
		write_loops(p, out);
	else if (strncmp(name, "roofs", n) == 0)
		write_roofs(page, out);
	else if (strncmp(name, "plot", n) == 0)
		fputs(page->drawing, out);
}

static int write_page(const struct plot *p, const struct plot_sets *sets, FILE *out)
{
	struct page page = {.plot = p, .sets = sets};
	size_t bytes;
	FILE *drawing = open_memstream(&page.drawing, &bytes);
	if (!drawing)
		return -ENOMEM;
	int r = plot_svg_write(p, sets, false, drawing);
	if (fclose(drawing) != 0)
		r = -ENOMEM;
	if (r == 0)
		page_write(body, fill_hole, &page, out);
	free(page.drawing);
	return r;
}

int plot_page_write(const struct plot *p, const struct plot_sets *sets, bool plain, FILE *out)
{
	if (plain)
		fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
	int r = plain ? plot_svg_write(p, sets, true, out) : write_page(p, sets, out);
	return r < 0 ? r : fflush(out) != 0 || ferror(out) ? -EIO : 0;
}
