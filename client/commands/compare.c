/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/commands/compare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/compare/recordings.h"
#include "client/compare/selection.h"
#include "client/compare/side_by_side.h"
#include "client/show/escape.h"
#include "client/show/print.h"
#include "client/show/reply.h"
#include "client/show/table.h"
#include "client/wire/ask.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* A side: recordings, or selections of the store. */
struct side {
	struct recordings files;
	struct selection selection[OPTIONS_LIST_MAX];
	Mperf__RunSelection message[OPTIONS_LIST_MAX], *run[OPTIONS_LIST_MAX];
	size_t n_selections;
	const char *file, *selected; /* the first of each, as the user wrote it */
};

static int add_selection(struct side *side, const char *text)
{
	_cleanup_(freep) char *what = NULL;
	struct selection_fault fault;
	struct selection *s = &side->selection[side->n_selections];
	int r = selection_parse(text, (int64_t)clock_ns(CLOCK_REALTIME), s, &fault);
	if (r == 0) {
		Mperf__RunSelection *m = &side->message[side->n_selections];
		*m = (Mperf__RunSelection)MPERF__RUN_SELECTION__INIT;
		m->n_label = s->n_labels, m->label = s->label;
		m->since_ns = s->since_ns, m->until_ns = s->until_ns, m->last = s->last;
		m->n_uid = s->n_uids, m->uid = s->uid;
		side->run[side->n_selections++] = m;
		return 0;
	}
	if (r > 0 && asprintf(&what, "'%.100s' is not a selection: %s", text, fault.text) < 0)
		what = NULL;
	say_failure(what ? what : "out of memory",
		"Write KEY=VALUE[,KEY=VALUE][,since=TIME][,until=TIME][,last=N][,user=NAME], or ./ "
		"before the name of a file");
	return r > 0 ? EXIT_USAGE : EXIT_FAILED;
}

static int add_side(struct side *side, char *const *text, size_t n)
{
	int exit_status = 0;
	for (size_t i = 0; i < n && exit_status == 0; i++) {
		const bool selects = selection_is_one(text[i]);
		const char **first = selects ? &side->selected : &side->file;
		if (!*first)
			*first = text[i];
		exit_status = selects ? add_selection(side, text[i])
				      : recordings_add_or_say(&side->files, text[i], "one side");
	}
	return exit_status;
}

/* Are all arguments recordings, or all selections? Only the client may open your files, and only
 * the service its store. */
static int check_kinds(const struct side *a, const struct side *b)
{
	_cleanup_(freep) char *what = NULL;
	const char *file = a->file ? a->file : b->file;
	const char *selected = a->selected ? a->selected : b->selected;
	if (!file || !selected)
		return 0;
	if (asprintf(&what, "'%.100s' is a recording, and '%.100s' selects from the store", file,
		    selected) < 0)
		what = NULL;
	say_failure(what ? what : "out of memory",
		"Give only recordings, or only selections: jobs by their labels, or time ranges");
	return EXIT_USAGE;
}

/* A recording is one run, however often it was given; for gate it may be on one side only. */
static int check_twice(const struct side *a, const struct side *b, bool is_gate)
{
	_cleanup_(freep) char *what = NULL;
	const size_t n_twice = a->files.n_twice + b->files.n_twice;
	const char *both = recordings_both(&a->files, &b->files);
	if (n_twice > 0)
		say_note("%zu recording%s given twice: %s once", n_twice,
			n_twice == 1 ? " was" : "s were",
			n_twice == 1 ? "it counts" : "they count");
	if (!both || !is_gate)
		return 0;
	if (asprintf(&what, "'%.300s' is on both sides", both) < 0)
		what = NULL;
	say_failure(what ? what : "out of memory", "Give each recording on one side");
	return EXIT_USAGE;
}

static void side_free(struct side *side)
{
	if (!side)
		return;
	recordings_clear(&side->files);
	for (size_t i = 0; i < side->n_selections; i++)
		selection_clear(&side->selection[i]);
	free(side);
}

struct verdict_asked compare_asked(const struct options *o, bool is_gate)
{
	return (struct verdict_asked){
		.margin = (o->margin_ppm ? o->margin_ppm : COMPARE_MARGIN_PPM) / 1e6,
		.effect = (o->effect_ppm ? o->effect_ppm : COMPARE_EFFECT_PPM) / 1e6,
		.looks = o->looks  ? o->looks
			 : is_gate ? COMPARE_LOOKS
				   : 1,
	};
}

static void fill(const struct options *o, bool is_gate, const struct side *a, const struct side *b,
	Mperf__Filter *filter, Mperf__CompareRequest *m)
{
	filter->n_pid = o->target.n_pids;
	filter->pid = (int32_t *)o->target.pid;
	filter->event = o->narrowing.of_event ? o->narrowing.of_event : filter->event;
	filter->n_comm = o->narrowing.n_comms;
	filter->comm = (char **)o->narrowing.comm;
	filter->n_cgroup = o->narrowing.n_cgroups;
	filter->cgroup = (char **)o->narrowing.cgroup;
	filter->n_label = o->narrowing.n_labels;
	filter->label = (char **)o->narrowing.label;
	filter->n_cpu = o->target.n_cpus;
	filter->cpu = (uint32_t *)o->target.cpu;
	m->n_baseline = a->files.n;
	m->baseline = (char **)a->files.path;
	m->n_candidate = b->files.n;
	m->candidate = (char **)b->files.path;
	m->n_baseline_run = a->n_selections;
	m->baseline_run = (Mperf__RunSelection **)a->run;
	m->n_candidate_run = b->n_selections;
	m->candidate_run = (Mperf__RunSelection **)b->run;
	m->by = o->by ? o->by : (char *)"function";
	m->filter = filter;
	m->limit = o->limit;
	m->inlined = o->inlined;
	m->margin_ppm = o->margin_ppm ? o->margin_ppm : COMPARE_MARGIN_PPM;
	m->effect_ppm = o->effect_ppm ? o->effect_ppm : COMPARE_EFFECT_PPM;
	m->allowance_ppm = o->allowance_ppm;
	m->looks = compare_asked(o, is_gate).looks;
	m->any_order = o->any_order;
	m->side_by_side = o->side_by_side;
	m->n_metric = o->sampling.n_metrics;
	m->metric = (char **)o->sampling.metric;
}

/* 0 or EXIT_FAILED, after an error message. */
static int open_link(struct link *l, const struct side *a)
{
	int r = a->n_selections ? link_open_service(l) : link_open_private(l);
	if (r == LINK_ABSENT)
		link_say_no_service("there is no store to select runs from");
	return r == 0 ? 0 : EXIT_FAILED;
}

static int run(const struct options *o, bool is_gate, const struct side *a, const struct side *b,
	struct replies *replies, bool *ret_answered)
{
	struct link l = {.fd = -1};
	Mperf__Filter filter = MPERF__FILTER__INIT;
	Mperf__CompareRequest compare = MPERF__COMPARE_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;

	fill(o, is_gate, a, b, &filter, &compare);
	request.body_case = is_gate ? MPERF__REQUEST__BODY_GATE : MPERF__REQUEST__BODY_DIFF;
	if (is_gate)
		request.gate = &compare;
	else
		request.diff = &compare;
	if (open_link(&l, a) != 0)
		return EXIT_FAILED;
	struct ask k = {.link = &l, .answer = replies_take, .userdata = replies};
	int r = ask_run(&k, &request);
	link_close(&l);
	if (r < 0)
		ask_say_broken("asking", r);
	if (r == 0 && !verdict_is_there(replies) && !side_by_side_is_there(replies)) {
		say_failure("mperfd answered without a verdict", "Use one version of both.");
		r = -EPROTO;
	}
	*ret_answered = r == 0;
	return r == 0 ? k.status : r > 0 ? k.exit_status : EXIT_FAILED;
}

int compare_ask(const struct options *o, bool is_gate, struct replies *replies, bool *ret_answered)
{
	struct side *a = calloc(1, sizeof(*a)), *b = calloc(1, sizeof(*b));
	int exit_status = a && b ? 0 : EXIT_FAILED;

	*ret_answered = false;
	if (exit_status == 0)
		exit_status = add_side(a, o->baseline, o->n_baselines);
	if (exit_status == 0)
		exit_status = add_side(b, o->candidate, o->n_candidates);
	if (exit_status == 0)
		exit_status = check_kinds(a, b);
	if (exit_status == 0)
		exit_status = check_twice(a, b, is_gate);
	if (exit_status == 0)
		exit_status = run(o, is_gate, a, b, replies, ret_answered);
	side_free(a);
	side_free(b);
	return exit_status;
}

/* Which runs were compared, and which were not. */
static void show_notes(const struct replies *replies, FILE *f)
{
	const Mperf__Provenance *p = replies->provenance;
	for (size_t i = 0; p && i < p->n_note; i++) {
		_cleanup_(freep) char *escaped = escape_terminal_dup(p->note[i]);
		fprintf(f, "%s.\n", escaped ? escaped : "");
	}
}

/* --- the table -------------------------------------------------------------------------------- */

#define SHOWN_MAX REPLY_COLUMNS_MAX

struct shown {
	const char *column[SHOWN_MAX + 1]; /* up to NULL */
	size_t n;
};

static void show_columns(struct shown *s, const char *const *column)
{
	for (; *column && s->n < SHOWN_MAX; column++)
		s->column[s->n++] = *column;
}

/* Show the columns of metrics, all columns after `last`: -M may name a group, so their names are
 * not known here. */
static void show_metrics(struct shown *s, const struct reply *table, const char *last)
{
	const Mperf__Columns *c = table->columns;
	size_t from = 0;
	while (from < c->n_column && strcmp(c->column[from]->name, last) != 0)
		from++;
	for (size_t i = from + 1; i < c->n_column && s->n < SHOWN_MAX; i++)
		s->column[s->n++] = c->column[i]->name;
}

static int show_beside(const struct options *o, const struct replies *replies, FILE *f)
{
	static const char *const figures[] = {"share_a", "share_b", "ns_a", "ns_b", "ratio",
		"instructions_a", "instructions_b", "instructions_ratio", "ipc_a", "ipc_b", NULL};
	static const char *const names[] = {
		"function", "comm", "cgroup", "nest", "source", "line", "module", "became", NULL};
	const struct reply *table = replies_table(replies, "beside");
	struct shown shown = {.n = 0};
	struct table_options look = {.raw = o->look.raw, .show = o->look.raw ? NULL : shown.column};

	show_columns(&shown, figures);
	if (o->sampling.n_metrics)
		show_metrics(&shown, table, "became");
	show_columns(&shown, names);
	if (o->look.markdown) {
		side_by_side_markdown(replies, f);
		return 0;
	}
	table_look(stdout, o->look.no_color, &look);
	if (!o->look.raw)
		side_by_side_head(replies, f);
	int r = table_print(table, &look, f);
	if (r == 0 && !o->look.raw && replies->provenance) {
		fputs("\n", f);
		show_notes(replies, f);
	}
	return r;
}

static void show_change(const struct options *o, const struct reply *table, struct shown *shown)
{
	static const char *const change[] = {"change", "low", "high", NULL};
	static const char *const time[] = {"adds", "p", "baseline_ns", "candidate_ns", NULL};
	static const char *const counts[] = {"instructions_change", "instructions_low",
		"instructions_high", "ipc_change", "ipc_low", "ipc_high", NULL};
	static const char *const loops[] = {"iterations_change", "ops_change", "int_ops_change",
		"bytes_change", "baseline_gops", "candidate_gops", "baseline_gbytes",
		"candidate_gbytes", NULL};
	static const char *const names[] = {"verdict", "function", "comm", "cgroup", "nest",
		"source", "line", "module", "became", NULL};
	show_columns(shown, change);
	show_columns(shown, time);
	if (o->sampling.n_metrics)
		show_metrics(shown, table,
			reply_column(table, "ipc_high") < 0 ? "runs_needed" : "ipc_high");
	else if (reply_column(table, "nest") >= 0)
		show_columns(shown, loops);
	else
		show_columns(shown, counts);
	show_columns(shown, names);
}

/* A gate's rows that were tested, or all if none was: a table whose rows are borrowed. ret_n: how many are left out. The
 * caller frees its array of rows; NULL without memory. */
static Mperf__Row **tested_rows(const struct reply *table, struct reply *ret_tested, size_t *ret_n)
{
	const int verdict = reply_column(table, "verdict");
	Mperf__Row **row = calloc(table->n_rows + 1, sizeof(*row));
	*ret_tested = *table;
	*ret_n = 0;
	if (!row)
		return NULL;
	size_t n = 0;
	for (size_t i = 0; i < table->n_rows; i++) {
		const char *text = reply_text(table, i, verdict);
		if (!text || strcmp(text, "untested") != 0)
			row[n++] = table->row[i];
	}
	if (n > 0) {
		*ret_n = table->n_rows - n;
		ret_tested->row = row;
		ret_tested->n_rows = n;
	}
	return row;
}

static int print_changes(const struct options *o, bool is_gate, const struct reply *table,
	const struct table_options *look, FILE *f)
{
	struct reply tested;
	size_t n_left;
	if (!is_gate || o->look.raw || o->target.all)
		return table_print(table, look, f);
	_cleanup_(freep) Mperf__Row **row = tested_rows(table, &tested, &n_left);
	if (!row)
		return -ENOMEM;
	int r = table_print(&tested, look, f);
	if (r == 0 && n_left > 0)
		fputs("Rows that were not tested are left out; --all -n 0 shows them.\n", f);
	return r;
}

static int show(const struct options *o, bool is_gate, const struct replies *replies, FILE *f)
{
	const struct reply *table = replies_table(replies, "change");
	struct shown shown = {.n = 0};
	const struct verdict_asked asked = compare_asked(o, is_gate);
	struct table_options look = {.raw = o->look.raw, .show = o->look.raw ? NULL : shown.column};

	if (o->look.json)
		return replies_write_json(replies, NULL, f);
	if (side_by_side_is_there(replies))
		return show_beside(o, replies, f);
	if (o->look.markdown) {
		verdict_markdown(replies, &asked, f);
		return 0;
	}
	table_look(stdout, o->look.no_color, &look);
	if (!o->look.raw) {
		_cleanup_(freep) char *line = verdict_line(replies, &asked);
		_cleanup_(freep) char *escaped = line ? escape_terminal_dup(line) : NULL;
		fprintf(f, "%s\n\n", escaped ? escaped : "");
	}
	show_change(o, table, &shown);
	int r = print_changes(o, is_gate, table, &look, f);
	if (r == 0 && !o->look.raw) {
		fputs("\n", f);
		verdict_notes(replies, &asked, f);
		show_notes(replies, f);
	}
	return r;
}

int compare_show(const struct options *o, bool is_gate, const struct replies *replies)
{
	struct print p;
	int r = print_open_answer(&p, options_ask_data(o));
	if (r == 0)
		r = show(o, is_gate, replies, p.file);
	return print_close_answer(&p, r);
}
