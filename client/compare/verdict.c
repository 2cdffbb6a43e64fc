/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Names come from other programs: they are escaped for each form.
 */
#include "client/compare/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "proto/base/memory.h"

#define MARKDOWN_ROWS_MAX 20
#define NAMED_MAX 3        /* in the line */
#define RUNS_ABSURD 1000.0 /* longer runs, not more of them */

static double number(const struct reply *table, size_t row, const char *column)
{
	double value;
	return reply_number(table, row, reply_column(table, column), &value) ? value : NAN;
}

static const char *text(const struct reply *table, size_t row, const char *column)
{
	const char *t = reply_text(table, row, reply_column(table, column));
	return t ? t : "";
}

bool verdict_is_there(const struct replies *r)
{
	const struct reply *total = replies_table(r, "total");
	return total && total->n_rows == 1 && replies_table(r, "change");
}

static bool is_slower(const struct reply *change, size_t row)
{
	return strcmp(text(change, row, "verdict"), "slower") == 0;
}

/* Everything that names a row, before its verdict: "work in a.out", "cc1", "work, a.c:12". */
static char *name_of(const struct reply *change, size_t row)
{
	_cleanup_(freep) char *name = NULL;
	size_t bytes;
	FILE *f = open_memstream(&name, &bytes);
	if (!f)
		return NULL;
	const char *first = reply_text(change, row, 0), *module = text(change, row, "module");
	const char *source = text(change, row, "source"), *line = text(change, row, "line");
	fputs(first ? first : "(no name)", f);
	if (*source)
		fprintf(f, ", %s%s%s", source, *line ? ":" : "", line);
	if (*module && reply_column(change, "module") != 0)
		fprintf(f, " in %s", module);
	return fclose(f) == 0 ? TAKE_PTR(name) : NULL;
}

static void write_percent(double fraction, FILE *f)
{
	if (isfinite(fraction))
		fprintf(f, "%+.*f %%", fabs(fraction) < 0.1 ? 2 : 1, 100 * fraction);
	else
		fputs("unknown", f);
}

static void write_interval(const struct reply *table, size_t row, FILE *f)
{
	const double low = number(table, row, "low"), high = number(table, row, "high");
	write_percent(number(table, row, "change"), f);
	if (!isfinite(low) || !isfinite(high))
		return;
	fputs(" (", f);
	write_percent(low, f);
	fputs(" to ", f);
	write_percent(high, f);
	fputs(")", f);
}

static void write_slower_rows(const struct reply *change, bool markdown, FILE *f)
{
	size_t n = 0;
	for (size_t i = 0; i < change->n_rows; i++) {
		if (!is_slower(change, i) || n++ >= NAMED_MAX)
			continue;
		_cleanup_(freep) char *name = name_of(change, i);
		fputs("; ", f);
		if (markdown)
			escape_markdown(f, name ? name : "?", false);
		else
			fputs(name ? name : "?", f);
		fputs(": ", f);
		write_percent(number(change, i, "change"), f);
	}
	if (n > NAMED_MAX)
		fprintf(f, "; and %zu more", n - NAMED_MAX);
}

static void write_line(
	const struct replies *r, const struct verdict_asked *asked, bool markdown, FILE *f)
{
	const struct reply *total = replies_table(r, "total");
	const char *verdict = text(total, 0, "verdict");
	if (strcmp(verdict, "within") == 0)
		fprintf(f, "within %g %%: ", 100 * asked->margin);
	else
		fprintf(f,
			"%s: ", strcmp(verdict, "slower") == 0 ? "slower" : "not enough to tell");
	write_interval(total, 0, f);
	fputs(" in all", f);
	write_slower_rows(replies_table(r, "change"), markdown, f);
}

char *verdict_line(const struct replies *r, const struct verdict_asked *asked)
{
	_cleanup_(freep) char *line = NULL;
	size_t bytes;
	FILE *f = open_memstream(&line, &bytes);
	if (!f)
		return NULL;
	write_line(r, asked, false, f);
	return fclose(f) == 0 ? TAKE_PTR(line) : NULL;
}

static void note_runs(const struct reply *total, const struct verdict_asked *asked, FILE *f)
{
	const double seen = number(total, 0, "seen_from"), needed = number(total, 0, "runs_needed");
	const double spread = number(total, 0, "spread");

	if (isfinite(spread))
		fprintf(f, "Runs of a side differ by %.*f %% in all (standard deviation).\n",
			spread < 0.1 ? 2 : 1, 100 * spread);
	if (isfinite(seen)) {
		fputs("A total growth of at least ", f);
		write_percent(seen, f);
		fputs(" would have been found in four of five cases", f);
		if (isfinite(needed) && needed <= RUNS_ABSURD)
			fprintf(f, "; for %g %% it takes %.0f runs a side", 100 * asked->effect,
				needed);
		else if (isfinite(needed))
			fprintf(f, "; for %g %% it takes longer runs, not more of them",
				100 * asked->effect);
		fputs(".\n", f);
	}
}

void verdict_notes(const struct replies *r, const struct verdict_asked *asked, FILE *f)
{
	const struct reply *total = replies_table(r, "total");
	const bool undecided = strcmp(text(total, 0, "verdict"), "undecided") == 0;

	if (number(total, 0, "few_runs") > 0)
		fputs("A side needs at least 5 runs to be tested; the intervals of rows cover "
		      "sampling error only.\n",
			f);
	if (number(total, 0, "not_in_turns") > 0)
		fputs("The sides did not alternate, so anything that changed over time looks like "
		      "a change of the program: run them alternately, or give --any-order.\n",
			f);
	if (undecided && number(total, 0, "total_wide") > 0) {
		fputs("The total may have grown by as much as ", f);
		write_percent(number(total, 0, "above"), f);
		fputs(".\n", f);
	}
	if (undecided && number(total, 0, "functions_wide") > 0)
		fprintf(f, "Some rows may have added more than %g %% to the total.\n",
			100 * asked->margin);
	note_runs(total, asked, f);
	const double untested = number(total, 0, "untested");
	if (untested > 0 && !(number(total, 0, "few_runs") > 0))
		fprintf(f, "%.0f row%s of fewer than 10 samples a run: not tested.\n", untested,
			untested == 1 ? "" : "s");
	const double left_out = number(total, 0, "left_out");
	if (left_out > 0)
		fprintf(f, "%.0f row%s of fewer than 10 samples in all runs together: left out.\n",
			left_out, left_out == 1 ? "" : "s");
	if (asked->looks > 1)
		fprintf(f, "Thresholds allow for %u looks.\n", asked->looks);
}

/* --- Markdown --------------------------------------------------------------------------------- */

void verdict_markdown(const struct replies *r, const struct verdict_asked *asked, FILE *f)
{
	const struct reply *change = replies_table(r, "change");

	fputs("**", f);
	write_line(r, asked, true, f);
	fputs("**\n\n| | change | adds to all | p |\n|---|---|---|---|\n", f);
	for (size_t i = 0; i < change->n_rows && i < MARKDOWN_ROWS_MAX; i++) {
		_cleanup_(freep) char *name = name_of(change, i);
		fputs("| ", f);
		fputs(is_slower(change, i) ? "**" : "", f);
		escape_markdown(f, name ? name : "?", true);
		fputs(is_slower(change, i) ? "** | " : " | ", f);
		write_interval(change, i, f);
		fputs(" | ", f);
		write_percent(number(change, i, "adds"), f);
		const double p = number(change, i, "p");
		if (isfinite(p))
			fprintf(f, " | %.3f |\n", p);
		else
			fputs(" | |\n", f);
	}
	fputs("\n", f);
	verdict_notes(r, asked, f);
	for (size_t i = 0; r->provenance && i < r->provenance->n_note; i++) {
		fputs(i == 0 ? "\n- " : "- ", f); /* the text may contain names of jobs */
		escape_markdown(f, r->provenance->note[i], false);
		fputs("\n", f);
	}
}

/* --- JUnit ------------------------------------------------------------------------------------ */

/* Source: XML 1.0, sections 2.2 (characters) and 2.4. */
static void write_case(const char *name, const char *element, const char *says, FILE *f)
{
	fputs("  <testcase classname=\"mperf.gate\" name=\"", f);
	escape_markup(f, name);
	if (!element) {
		fputs("\"/>\n", f);
		return;
	}
	fprintf(f, "\">\n    <%s message=\"", element);
	escape_markup(f, says);
	fputs("\"/>\n  </testcase>\n", f);
}

/* Reasons for the verdict, and what was left out. */
static void write_notes(const Mperf__Provenance *p, FILE *f)
{
	fputs("  <system-out>", f);
	for (size_t i = 0; i < p->n_note; i++) {
		escape_markup(f, p->note[i]);
		fputc('\n', f);
	}
	fputs("</system-out>\n", f);
}

void verdict_junit(const struct replies *r, const struct verdict_asked *asked, FILE *f)
{
	const struct reply *total = replies_table(r, "total"), *change = replies_table(r, "change");
	_cleanup_(freep) char *line = verdict_line(r, asked);
	const bool undecided = strcmp(text(total, 0, "verdict"), "undecided") == 0;
	const bool failed = strcmp(text(total, 0, "verdict"), "slower") == 0;
	size_t n = 0;

	for (size_t i = 0; i < change->n_rows; i++)
		n += is_slower(change, i);
	fprintf(f,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuite name=\"mperf gate\" tests=\"%zu\" failures=\"%zu\" skipped=\"%zu\">\n",
		n + 1, failed ? n + 1 : 0, undecided ? n + 1 : 0);
	write_case("total", failed ? "failure" : undecided ? "skipped" : NULL, line ? line : "", f);
	for (size_t i = 0; i < change->n_rows; i++) {
		if (!is_slower(change, i))
			continue;
		_cleanup_(freep) char *name = name_of(change, i), *says = NULL;
		size_t bytes;
		FILE *message = open_memstream(&says, &bytes);
		if (!message)
			continue;
		write_interval(change, i, message);
		fclose(message);
		write_case(
			name ? name : "?", undecided ? "skipped" : "failure", says ? says : "", f);
	}
	if (r->provenance && r->provenance->n_note > 0)
		write_notes(r->provenance, f);
	fputs("</testsuite>\n", f);
}
