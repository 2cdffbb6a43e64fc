/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl doctor: findings with what mends them. Most machines have many harts of one kind, so a
 * finding that several share is told once, with the harts that it holds for.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ask.h"
#include "client/command.h"
#include "client/escape.h"
#include "client/options.h"
#include "client/reply.h"
#include "client/table.h"
#include "proto/memory.h"

/* Comparing every finding with every other is quadratic; so many are told one by one. */
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

/* "hart 3", "harts 0-3, 8": of a finding and all later ones that are the same, marked as told. */
static void write_harts(
	const struct reply *r, const struct columns *c, size_t row, bool *told, FILE *f)
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
			told[i] = true;
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

static void write_finding(
	const struct reply *r, const struct columns *c, size_t row, bool *told, bool colour)
{
	const char *state = reply_text(r, row, c->state);
	const char *topic = reply_text(r, row, c->topic);
	const char *finding = reply_text(r, row, c->finding);
	const char *remedy = reply_text(r, row, c->remedy);
	double hart;

	state = state ? state : "info";
	printf("%s%-4.4s%s  ", colour ? state_colour(state) : "", state, colour ? "\033[0m" : "");
	if (topic)
		escape_terminal(stdout, topic);
	if (reply_number(r, row, c->hart, &hart)) {
		fputs(topic ? ", " : "", stdout);
		write_harts(r, c, row, told, stdout);
	}
	fputs(": ", stdout);
	escape_terminal(stdout, finding ? finding : "-");
	fputc('\n', stdout);
	if (remedy && *remedy) {
		fputs("      → ", stdout);
		escape_terminal(stdout, remedy);
		fputc('\n', stdout);
	}
}

static int show(const struct options *o, const struct reply *r)
{
	struct table_options look = {0};
	const struct columns c = {
		.hart = reply_column(r, "hart"),
		.topic = reply_column(r, "topic"),
		.state = reply_column(r, "state"),
		.finding = reply_column(r, "finding"),
		.remedy = reply_column(r, "remedy"),
	};
	if (o->json)
		return reply_write_json(r, stdout);

	_cleanup_(freep) bool *told = calloc(r->n_rows + 1, sizeof *told);
	if (!told)
		return -ENOMEM;
	table_look(stdout, o->no_color, &look);
	for (size_t i = 0; i < r->n_rows; i++)
		if (!told[i])
			write_finding(r, &c, i, told, look.colour);
	return fflush(stdout) != 0 ? -errno : 0;
}

int client_doctor(const struct options *o)
{
	struct link l;
	struct reply reply = {0};
	_cleanup_(freep) char *path = NULL;

	if (o->input && !(path = realpath(o->input, NULL))) {
		say_note("cannot read '%s': %s", o->input, strerror(errno));
		return EXIT_FAILED;
	}
	int r = link_open(&l);
	if (r < 0)
		say_note("cannot reach mperfd: %s", strerror(-r));
	if (r != 0)
		return EXIT_FAILED;

	Mperf__DoctorRequest doctor = MPERF__DOCTOR_REQUEST__INIT;
	if (path)
		doctor.path = path;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_DOCTOR;
	request.doctor = &doctor;
	struct ask k = {.link = &l, .answer = reply_take, .userdata = &reply};
	r = ask_run(&k, &request);
	link_close(&l);

	int exit_status = r > 0 ? k.exit_status : k.status;
	if (r == 0)
		r = show(o, &reply);
	if (r < 0) {
		say_note("cannot tell the findings: %s", strerror(-r));
		exit_status = EXIT_FAILED;
	}
	reply_clear(&reply);
	return exit_status;
}
