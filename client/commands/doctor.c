/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl doctor: findings and their remedies. Most machines have many harts of one kind, so a
 * finding that several share is shown once, with the list of its harts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/options/command.h"
#include "client/options/options.h"
#include "client/show/escape.h"
#include "client/show/print.h"
#include "client/show/reply.h"
#include "client/show/table.h"
#include "client/wire/ask.h"
#include "proto/base/memory.h"

/* Comparing every finding with every other is quadratic; beyond this many, each is shown alone. */
#define FINDINGS_MERGED_MAX 4000

struct columns {
	int hart, topic, state, finding, remedy;
};

static bool same_text(const struct reply *r, size_t a, size_t b, int column)
{
	const char *x = reply_text(r, a, column), *y = reply_text(r, b, column);
	return strcmp(x ? x : "", y ? y : "") == 0;
}

static bool same_finding(const struct reply *r, const struct columns *c, size_t a, size_t b)
{
	double number;
	return reply_number(r, a, c->hart, &number) && reply_number(r, b, c->hart, &number) &&
	       same_text(r, a, b, c->topic) && same_text(r, a, b, c->state) &&
	       same_text(r, a, b, c->finding) && same_text(r, a, b, c->remedy);
}

/* "hart 3", "harts 0-3, 8": the harts of a finding and of all later equal ones, marked as shown. */
static void write_harts(
	const struct reply *r, const struct columns *c, size_t row, bool *shown, FILE *f)
{
	long first = -1, last = -1;
	int n_ranges = 0;
	_cleanup_(freep) char *text = NULL;
	size_t size;
	FILE *ranges = open_memstream(&text, &size);
	bool plural = false;
	if (!ranges)
		return;

	for (size_t i = row; i <= r->n_rows; i++) {
		double number = -1;
		bool same = i < r->n_rows && (i == row || (r->n_rows <= FINDINGS_MERGED_MAX &&
								  same_finding(r, c, row, i)));
		if (i < r->n_rows && !same)
			continue;
		if (same) {
			shown[i] = true;
			reply_number(r, i, c->hart, &number);
		}
		plural |= i > row && same;
		if (same && first >= 0 && (long)number == last + 1) {
			last++;
			continue;
		}
		if (first >= 0)
			fprintf(ranges, last > first ? "%s%ld-%ld" : "%s%ld",
				n_ranges++ > 0 ? ", " : "", first, last);
		first = last = (long)number;
	}
	if (fclose(ranges) == 0)
		fprintf(f, "%s %s", plural ? "harts" : "hart", text);
}

static const char *state_colour(const char *state)
{
	return strcmp(state, "ok") == 0     ? "\033[32m"
	       : strcmp(state, "warn") == 0 ? "\033[33m"
	       : strcmp(state, "fail") == 0 ? "\033[1;31m"
					    : "\033[36m";
}

struct telling {
	const struct reply *reply;
	struct columns columns;
	bool *shown; /* by row: already shown */
	bool colour;
	FILE *file;
};

static void write_finding(struct telling *t, size_t row)
{
	const struct reply *r = t->reply;
	const struct columns *c = &t->columns;
	FILE *f = t->file;
	const char *state = reply_text(r, row, c->state);
	const char *topic = reply_text(r, row, c->topic);
	const char *finding = reply_text(r, row, c->finding);
	const char *remedy = reply_text(r, row, c->remedy);
	double hart;

	state = state ? state : "info";
	fprintf(f, "%s%-4.4s%s  ", t->colour ? state_colour(state) : "", state,
		t->colour ? "\033[0m" : "");
	if (topic)
		escape_terminal(f, topic);
	if (reply_number(r, row, c->hart, &hart)) {
		fputs(topic ? ", " : "", f);
		write_harts(r, c, row, t->shown, f);
	}
	fputs(": ", f);
	escape_terminal(f, finding ? finding : "-");
	fputc('\n', f);
	if (remedy && *remedy) {
		fputs("      → ", f);
		escape_terminal(f, remedy);
		fputc('\n', f);
	}
}

static int show(const struct options *o, const struct reply *r, FILE *f)
{
	struct table_options look = {0};
	if (o->look.json)
		return reply_write_json(r, f);

	_cleanup_(freep) bool *shown = calloc(r->n_rows + 1, sizeof(*shown));
	if (!shown)
		return -ENOMEM;
	table_look(stdout, o->look.no_color, &look);
	struct telling t = {
		.reply = r,
		.columns.hart = reply_column(r, "hart"),
		.columns.topic = reply_column(r, "topic"),
		.columns.state = reply_column(r, "state"),
		.columns.finding = reply_column(r, "finding"),
		.columns.remedy = reply_column(r, "remedy"),
		.shown = shown,
		.colour = look.colour,
		.file = f,
	};
	for (size_t i = 0; i < r->n_rows; i++)
		if (!shown[i])
			write_finding(&t, i);
	return 0;
}

static int print_findings(const struct options *o, const struct reply *reply)
{
	struct print p;
	int r = print_open_answer(&p, options_ask_data(o));
	if (r == 0)
		r = show(o, reply, p.file);
	return print_close_answer(&p, r);
}

static char *recording_path(const char *input)
{
	char what[512];
	char *path = realpath(input, NULL);
	int error = errno;
	if (!path) {
		snprintf(what, sizeof(what), "cannot read '%.400s': %s", input, strerror(error));
		say_failure(what, error == EACCES ? "Name a recording that you may read with -i"
						  : "Name a recording of `mperfctl record` "
						    "with -i");
	}
	return path;
}

/* One table has the findings of a recording first, then the machine's. */
static int take(void *reply, const Mperf__Answer *a)
{
	const struct reply *before = reply;
	if (a->body_case == MPERF__ANSWER__BODY_COLUMNS && before->columns)
		return 0;
	return reply_take(reply, a);
}

/* Ask about the machine (path NULL), or about a recording. Returns the exit status; *ret_ok: there
 * are findings. */
static int ask_doctor(char *path, struct reply *reply, bool *ret_ok)
{
	struct link l;
	if ((path ? link_open_private(&l) : link_open(&l)) != 0)
		return EXIT_FAILED;

	Mperf__DoctorRequest doctor = MPERF__DOCTOR_REQUEST__INIT;
	if (path)
		doctor.path = path;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_DOCTOR;
	request.doctor = &doctor;
	struct ask k = {.link = &l, .answer = take, .userdata = reply};
	int r = ask_run(&k, &request);
	link_close(&l);

	if (r < 0)
		ask_say_broken("asking", r);
	*ret_ok = r == 0;
	return r == 0 ? k.status : r > 0 ? k.exit_status : EXIT_FAILED;
}

/* A private mperfd reads the recording, but its rights differ from the service's. So ask about this
 * machine separately, as without a recording. If no mperfd answers that, show the recording's
 * findings alone. */
int client_doctor(const struct options *o)
{
	struct reply reply = {0};
	_cleanup_(freep) char *path = NULL;
	bool ok = true, any = false;
	int status = 0;

	if (o->input && !(path = recording_path(o->input)))
		return EXIT_FAILED;
	if (path)
		status = ask_doctor(path, &reply, &ok);
	if (ok) {
		any = path;
		int here = ask_doctor(NULL, &reply, &ok);
		status = here > status ? here : status;
	}
	if ((any || ok) && print_findings(o, &reply) != 0)
		status = EXIT_FAILED;
	reply_clear(&reply);
	return status;
}
