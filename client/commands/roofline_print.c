/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * How rooflines are shown: a table, a series over time, JSON or CSV; and the notes if there are
 * none.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "client/commands/roofline_print.h"
#include "client/show/csv.h"
#include "client/show/escape.h"
#include "client/show/print.h"
#include "client/show/say.h"
#include "client/show/series.h"
#include "client/show/table.h"

/* Series draw one line per thread for people: a row per thread and stretch of time would not
 * fit. */
static bool is_series(const struct showing *s)
{
	return s->stretch_ms > 0 && !s->o->raw && reply_column(s->reply, "time") >= 0;
}

static int print_series(const struct showing *s, size_t width, FILE *f)
{
	const struct series_look look = {
		.width = width,
		.utf8 = table_wants_utf8(),
		.stretch_s = s->stretch_ms / 1e3,
	};
	return series_print(s->reply, &look, f);
}

static int show(const struct showing *s, FILE *f)
{
	const struct options *o = s->o;
	struct table_options look = {.raw = o->raw, .hide = s->spare};
	if (o->json)
		return reply_write_json(s->reply, f);
	if (o->csv)
		return csv_write(s->reply, f);
	table_look(stdout, o->no_color, &look);
	int r = is_series(s) ? print_series(s, look.width, f) : table_print(s->reply, &look, f);
	const Mperf__Provenance *p = s->reply->provenance;
	for (size_t i = 0; r == 0 && p && i < p->n_note && !o->raw; i++) {
		fputs(i == 0 ? "\n" : "", f);
		escape_terminal(f, p->note[i]);
		fputc('\n', f);
	}
	return r;
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

/* Why there may be no row, and what to do about it. */
static void say_nothing(const struct options *o)
{
	if (o->input)
		say_note("%s has no counts of instrumented programs; build the recorded program "
			 "with mperf-cc",
			o->input);
	else if (o->command_line)
		say_note("the command reported no counts; build it with mperf-cc, and leave "
			 "MPERF_FEED and MPERF_OUTPUT to mperfctl");
	else if (o->since_ns || o->until_ns || o->n_pids == 0)
		say_note("no program reported counts; build yours with mperf-cc, or choose another "
			 "time with --since and --until");
	for (size_t i = 0; i < o->n_pids && !o->input && !o->since_ns && !o->until_ns; i++)
		say_silent(o->pid[i]);
}

int roofline_print(const struct showing *s)
{
	struct print p;
	int r = print_open(&p, STDOUT_FILENO);
	if (r == 0)
		r = print_close(&p, show(s, p.file));
	if (r < 0) {
		print_say_failed(NULL, r, "send stdout elsewhere");
		return EXIT_FAILED;
	}
	if (s->reply->n_rows == 0)
		say_nothing(s->o);
	return 0;
}
