/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl job report: a line on the run, the chain of processes that bounded it, and the programs. Only a daemon of our
 * own reads a recording, with our rights; jobs are in the service's store.
 */
#include "client/commands/job_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/compare/selection.h"
#include "client/measure/capture.h"
#include "client/show/escape.h"
#include "client/show/print.h"
#include "client/show/reply.h"
#include "client/show/say.h"
#include "client/show/table.h"
#include "client/wire/ask.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define ANY_JOB LABEL_JOB "=*"
/* Columns of arguments in Markdown, whose tables nobody scrolls. */
#define ARGUMENTS_WIDE 80

static const char *const chain_columns[] = {
	"start_ns", "ns", "cpu_ns", "alone_ns", "waited_ns", "waits", "comm", "pid", "argv", NULL};
static const char *const program_columns[] = {
	"chain_ns", "share", "without_ns", "processes", "cpu_ns", "wall_ns", "comm", NULL};

static const struct {
	const char *table, *says;
	const char *const *column;
} parts[] = {
	{"chain", "What bounded it", chain_columns},
	{"program", "By program", program_columns},
};

/* --- the line on the run ---------------------------------------------------------------------- */

static char *cell(const struct reply *t, size_t row, const char *column)
{
	const int c = reply_column(t, column);
	return c < 0 ? NULL : table_cell(t->row[row]->value[c], t->columns->column[c]->unit, false);
}

static void write_cell(const struct reply *run, const char *column, const char *before,
	const char *behind, FILE *f)
{
	_cleanup_(freep) char *value = cell(run, 0, column);
	if (value && strcmp(value, "-") != 0)
		fprintf(f, "%s%s%s", before, value, behind);
}

/* "took 12.3 s from …; 21.0 s of CPU time, 1.7 harts at work on average; …" */
static void write_run(const struct replies *replies, FILE *f)
{
	const struct reply *run = replies_table(replies, "run");
	const Mperf__Wall *wall = replies->provenance ? replies->provenance->wall : NULL;
	const bool guessed = wall && wall->least < wall->most;
	const char *state = reply_text(run, 0, reply_column(run, "state"));
	const bool ended = state && strcmp(state, "ended") == 0;
	write_cell(run, "ns", ended ? "took " : "has taken ", "", f);
	write_cell(run, "begin", " from ", "", f);
	fputs(ended ? "" : ", and has not ended", f);
	write_cell(run, "cpu_ns", "; ", " of CPU time", f);
	write_cell(run, "harts", ", ", " harts at work on average", f);
	write_cell(run, "idle_ns",
		guessed ? "; nothing of it worked for about " : "; nothing of it worked for ", "",
		f);
	write_cell(run, "processes", "; ", " processes", f);
}

static void write_heading(const struct replies *replies, FILE *f)
{
	const struct reply *run = replies_table(replies, "run");
	_cleanup_(freep) char *says = cell(run, 0, "job");
	fprintf(f, "%s: ", says ? says : "");
	write_run(replies, f);
	fputs("\n", f);
}

/* --- Markdown --------------------------------------------------------------------------------- */

static bool is_shown(const struct reply *t, int column)
{
	for (size_t i = 0; i < t->n_rows && column >= 0; i++)
		if (t->row[i]->value[column]->is_case != MPERF__VALUE__IS__NOT_SET)
			return true;
	return false;
}

static void cut(char *text)
{
	const size_t n = text ? escape_cut(text, ARGUMENTS_WIDE) : 0;
	if (text && strlen(text) > n + sizeof("…") - 1)
		memcpy(text + n, "…", sizeof("…"));
}

static void markdown_row(const struct reply *t, size_t row, const char *const *column, FILE *f)
{
	for (; *column; column++) {
		const int c = reply_column(t, *column);
		if (!is_shown(t, c))
			continue;
		_cleanup_(freep) char *value = cell(t, row, *column);
		cut(value);
		fputc(' ', f);
		if (reply_text(t, row, c))
			escape_markdown(f, value ? value : "", true);
		else if (value && strcmp(value, "-") != 0)
			fputs(value, f);
		fputs(" |", f);
	}
}

/* Figures to the right, texts to the left. */
static void markdown_table(const struct reply *t, const char *const *column, FILE *f)
{
	fputc('|', f);
	for (size_t k = 0; column[k]; k++)
		if (is_shown(t, reply_column(t, column[k])))
			fprintf(f, " %s |", t->columns->column[reply_column(t, column[k])]->title);
	fputs("\n|", f);
	for (size_t k = 0; column[k]; k++) {
		const int c = reply_column(t, column[k]);
		if (is_shown(t, c))
			fputs(t->columns->column[c]->unit == MPERF__UNIT__UNIT_NONE ? "---|"
										    : "--:|",
				f);
	}
	for (size_t i = 0; i < t->n_rows; i++) {
		fputs("\n|", f);
		markdown_row(t, i, column, f);
	}
	fputs("\n", f);
}

static void markdown(const struct replies *replies, FILE *f)
{
	const struct reply *run = replies_table(replies, "run");
	const Mperf__Provenance *p = replies->provenance;
	_cleanup_(freep) char *says = cell(run, 0, "job");
	fputs("### ", f);
	escape_markdown(f, says ? says : "", false);
	fputs("\n\n", f);
	write_run(replies, f);
	fputs(".\n", f);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		fprintf(f, "\n**%s**\n\n", parts[i].says);
		markdown_table(replies_table(replies, parts[i].table), parts[i].column, f);
	}
	for (size_t i = 0; p && i < p->n_note; i++) {
		fputs(i ? "- " : "\n- ", f);
		escape_markdown(f, p->note[i], false);
		fputc('\n', f);
	}
}

/* --- text ------------------------------------------------------------------------------------- */

static int show(const struct options *o, const struct replies *replies, FILE *f)
{
	struct table_options look = {.raw = o->look.raw};
	if (o->look.json)
		return replies_write_json(replies, NULL, f);
	if (o->look.markdown) {
		markdown(replies, f);
		return 0;
	}
	table_look(stdout, o->look.no_color, &look);
	if (look.raw) {
		fputs("# run\n", f);
		int r = table_print(replies_table(replies, "run"), &look, f);
		if (r != 0)
			return r;
	} else
		write_heading(replies, f);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		look.show = look.raw ? NULL : parts[i].column;
		fprintf(f, look.raw ? "\n# %s\n" : "\n%s\n",
			look.raw ? parts[i].table : parts[i].says);
		int r = table_print(replies_table(replies, parts[i].table), &look, f);
		if (r != 0)
			return r;
	}
	if (!look.raw)
		reply_write_provenance(replies->provenance, f);
	return 0;
}

/* --- asking ----------------------------------------------------------------------------------- */

/* NAME, KEY=VALUE[,…], or nothing: any job. With the labels of --label. 0, or an exit status after a message. */
static int parse_run(const struct options *o, struct selection *ret_selection)
{
	_cleanup_(freep) char *named = NULL;
	struct selection_fault fault = {"a report is of one job: leave out last="};
	const char *text = o->job ? o->job : ANY_JOB;
	if (!memchr(text, '=', strcspn(text, ","))) {
		if (asprintf(&named, LABEL_JOB "=%s", text) < 0)
			named = NULL;
		text = named;
	}
	int r = text ? selection_parse(
			       text, (int64_t)clock_ns(CLOCK_REALTIME), ret_selection, &fault)
		     : -ENOMEM;
	struct selection *s = ret_selection;
	if (r == 0 && (s->last > 1 || s->n_labels == 0)) {
		selection_clear(s);
		r = SELECTION_WRONG;
	}
	for (size_t i = 0; r == 0 && i < o->narrowing.n_labels; i++) {
		if (s->n_labels == LABELS_MAX) {
			snprintf(fault.text, sizeof(fault.text), "a job has at most %d labels",
				LABELS_MAX);
			r = SELECTION_WRONG;
		} else if (!(s->label[s->n_labels++] = strdup(o->narrowing.label[i])))
			r = -ENOMEM;
		if (r != 0)
			selection_clear(s);
	}
	if (r < 0)
		say_failure("out of memory", "Free some memory, and try again");
	else if (r > 0)
		say_failure(fault.text,
			"Write NAME, or KEY=VALUE[,KEY=VALUE...][,since=TIME][,user=NAME]");
	return r == 0 ? 0 : r > 0 ? EXIT_USAGE : EXIT_FAILED;
}

/* 0, or an exit status after a message. */
static int ask(const struct options *o, Mperf__JobRequest *job, struct replies *replies)
{
	Mperf__Request request = MPERF__REQUEST__INIT;
	struct link l;
	int r = o->input ? link_open_private(&l) : link_open_service(&l);
	if (r == LINK_ABSENT)
		link_say_no_service("there is no store to report on jobs of; -i reads a recording");
	if (r != 0)
		return EXIT_FAILED;
	request.body_case = MPERF__REQUEST__BODY_JOB;
	request.job = job;
	struct ask k = {.link = &l, .answer = replies_take, .userdata = replies};
	r = ask_run(&k, &request);
	link_close(&l);
	if (r < 0)
		ask_say_broken("asking", r);
	if (r == 0 &&
		(!replies_table(replies, "run") || replies_table(replies, "run")->n_rows != 1 ||
			!replies_table(replies, "chain") || !replies_table(replies, "program"))) {
		say_failure("mperfd answered without a report", "Use one version of both.");
		return EXIT_FAILED;
	}
	return r == 0 ? k.status : r > 0 ? k.exit_status : EXIT_FAILED;
}

int job_report(const struct options *o)
{
	Mperf__JobRequest job = MPERF__JOB_REQUEST__INIT;
	Mperf__RunSelection run = MPERF__RUN_SELECTION__INIT;
	_cleanup_(selection_clear) struct selection s = {.n_labels = 0};
	_cleanup_(freep) char *path = o->input ? source_absolute(o->input) : strdup("");
	struct replies replies = {0};
	struct print p;
	const bool selects = !o->input || o->job || o->narrowing.n_labels > 0;
	int exit_status = path ? 0 : EXIT_FAILED;
	if (exit_status == 0 && selects)
		exit_status = parse_run(o, &s);
	if (exit_status != 0)
		return exit_status;
	job.action = MPERF__JOB_ACTION__JOB_REPORT;
	job.path = path;
	job.limit = o->limit;
	job.run = &run;
	run.n_label = s.n_labels, run.label = s.label;
	run.since_ns = s.since_ns ? s.since_ns : o->narrowing.since_ns;
	run.until_ns = s.until_ns;
	run.n_uid = s.n_uids, run.uid = s.uid;
	exit_status = ask(o, &job, &replies);
	if (exit_status == 0) {
		int r = print_open_answer(&p, options_ask_data(o));
		if (r == 0)
			r = show(o, &replies, p.file);
		exit_status = print_close_answer(&p, r);
	}
	replies_clear(&replies);
	return exit_status;
}
