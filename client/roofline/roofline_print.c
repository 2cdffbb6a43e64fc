/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Show a roofline as a table, a plot, a series over time, JSON or CSV; and say why if it has no
 * rows.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/roofline/roofline_plot.h"
#include "client/roofline/roofline_print.h"
#include "client/show/csv.h"
#include "client/show/escape.h"
#include "client/show/print.h"
#include "client/show/say.h"
#include "client/show/series.h"
#include "client/show/table.h"
#include "proto/base/memory.h"

#define NOTES_SHOWN 2 /* lines below a table, unless --notes */

/* A series shows people one line per thread, since a row per thread and interval would not fit. */
static bool is_series(const struct showing *s)
{
	return s->stretch_ms > 0 && !s->o->look.raw && reply_column(s->reply, "time") >= 0;
}

static int print_series(const struct showing *s, size_t width, FILE *f)
{
	const struct series_look look = {
		.width = width,
		.utf8 = !print_is_ascii(),
		.stretch_s = s->stretch_ms / 1e3,
	};
	return series_print(s->reply, &look, f);
}

/* Notes below the table: all with --notes; otherwise two lines, the second with the number of
 * further notes. */
static void print_notes(const struct showing *s, FILE *f)
{
	const Mperf__Provenance *p = s->reply->provenance;
	size_t n = p ? p->n_note : 0;
	bool all = s->o->notes || s->spare || n <= NOTES_SHOWN;
	for (size_t i = 0; i < (all ? n : NOTES_SHOWN - 1); i++) {
		fputs(i == 0 ? "\n" : "", f);
		escape_terminal(f, p->note[i]);
		fputc('\n', f);
	}
	if (!all)
		fprintf(f, "%zu more notes: --notes\n", n - (NOTES_SHOWN - 1));
}

static int print_table(const struct showing *s, struct table_options *look, FILE *f)
{
	struct roofline_columns columns;
	roofline_columns_choose(s->o, s->reply, look->width, &columns);
	if (s->spare) {
		look->hide = s->spare;
	} else if (!s->o->look.raw || s->o->look.n_columns > 0) {
		look->show = columns.name;
		look->indent = "depth";
		look->cut_middle = true;
	}
	return table_print(s->reply, look, f);
}

/* How many lines the notes take on this screen, with the empty one above. */
static size_t note_lines(const struct showing *s, size_t width)
{
	_cleanup_(freep) char *text = NULL;
	size_t bytes, n = 0;
	FILE *f = open_memstream(&text, &bytes);
	if (!f)
		return 0;
	print_notes(s, f);
	if (fclose(f) != 0)
		return 0;
	for (const char *at = text; *at; n++) {
		size_t line = strcspn(at, "\n");
		n += width > 0 && line > 0 ? (line - 1) / width : 0;
		at += line + (at[line] == '\n');
	}
	return n;
}

static int show(const struct showing *s, const struct roofline_plot *plot, FILE *f)
{
	const struct options *o = s->o;
	struct table_options look = {.raw = o->look.raw};
	int r = 0;
	if (o->look.json)
		return reply_write_json(s->reply, f);
	if (o->look.csv)
		return csv_write(s->reply, f);
	table_look(stdout, o->look.no_color, &look);
	if (o->plot)
		r = roofline_draw(s, plot, &look, note_lines(s, look.width), f);
	if (r == 0)
		r = is_series(s) ? print_series(s, look.width, f) : print_table(s, &look, f);
	if (r == 0 && !o->look.raw)
		print_notes(s, f);
	return r;
}

/* 0 or EXIT_USAGE. */
static int check_columns(const struct showing *s)
{
	char what[256];
	const char *unknown = s->reply->columns ? roofline_columns_unknown(s->o, s->reply) : NULL;
	if (!unknown)
		return 0;
	snprintf(what, sizeof(what), "there is no column '%.100s' here", unknown);
	say_failure(what, "--csv names all columns");
	return EXIT_USAGE;
}

static void say_silent(pid_t pid)
{
	if (kill(pid, 0) < 0 && errno == ESRCH)
		say_note("there is no process %d, and the store has no counts of it", pid);
	else
		say_note(
			"process %d reported no counts; build it with mperf-cc, and start it while "
			"mperfd runs and MPERF_OUTPUT is not set",
			pid);
}

/* Possible reasons for an empty table, and what to do. */
static void say_nothing(const struct options *o)
{
	if (o->input)
		say_note("%s has no counts of instrumented programs; build the program with "
			 "mperf-cc, and record it with `mperfctl record -- CMD`, without "
			 "MPERF_FEED and MPERF_OUTPUT in its environment",
			o->input);
	else if (o->target.command_line)
		say_note("the command reported no counts; build it with mperf-cc, and leave "
			 "MPERF_FEED and MPERF_OUTPUT to mperfctl");
	else if (o->narrowing.since_ns || o->narrowing.until_ns || o->target.n_pids == 0)
		say_note("no program reported counts; build yours with mperf-cc, or choose another "
			 "time with --since and --until");
	for (size_t i = 0; i < o->target.n_pids && !o->input && !o->narrowing.since_ns &&
			   !o->narrowing.until_ns;
		i++)
		say_silent(o->target.pid[i]);
	say_note("`mperfctl roofline --from code` estimates operations per byte of any program "
		 "from its samples and its machine code");
}

static int print(const struct showing *s, const struct roofline_plot *plot)
{
	struct print p;
	int r = print_open_answer(&p, options_ask_data(s->o));
	if (r == 0)
		r = show(s, plot, p.file);
	return print_close_answer(&p, r);
}

/* Blocks have no roofs, since their counts were not timed. */
static int make_plot(const struct showing *s, struct roofline_plot *plot)
{
	const struct reply *runs[PLOT_RUNS_MAX] = {s->reply};
	size_t n = 0;
	if (s->spare || !s->reply->columns)
		return 0;
	if (s->before)
		runs[n++] = s->before;
	runs[n++] = s->reply;
	int r = roofline_plot_make(s->o, runs, n, s->roofs, plot);
	if (r == 0)
		r = roofline_plot_extend(plot, s->reply);
	return r == REPLY_TOO_LARGE ? 0 : r; /* many events of regions */
}

int roofline_print(const struct showing *s)
{
	_cleanup_(roofline_plot_clear) struct roofline_plot plot = {.first = 0};
	if (make_plot(s, &plot) != 0) {
		say_failure("out of memory", "Free some memory, and try again");
		return EXIT_FAILED;
	}
	int exit_status = check_columns(s);
	if (exit_status == 0 && s->o->output)
		exit_status = roofline_save(s, &plot);
	if (exit_status == 0 && (s->o->plot || !s->o->output))
		exit_status = print(s, &plot);
	if (exit_status != 0)
		return exit_status;
	if (s->reply->n_rows == 0)
		say_nothing(s->o);
	return 0;
}
