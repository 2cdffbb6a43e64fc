/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl topdown: counts a tree of metrics while something runs, or reads what was counted, and shows it
 * as text, JSON or a picture, with the commands to run next. A machine with several kinds of core has a
 * tree for each.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/measure/capture.h"
#include "client/measure/run.h"
#include "client/measure/signals.h"
#include "client/options/command.h"
#include "client/show/escape.h"
#include "client/show/page.h"
#include "client/show/print.h"
#include "client/show/table.h"
#include "client/topdown/page.h"
#include "client/topdown/text.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

struct showing {
	const struct options *options;
	const struct replies *replies;
	const struct topdown *tree; /* n */
	size_t n;
	const char *what; /* was measured */
};

/* --- what to do next -------------------------------------------------------------------------- */

/* Write a word with the quotes that a shell needs. */
static void write_word(const char *word, FILE *f)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-./,:=+@%";
	bool quoted = !*word || word[strspn(word, plain)];
	fputs(quoted ? "'" : "", f);
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", f);
		else
			fputc(*word, f);
	fputs(quoted ? "'" : "", f);
}

/* Were the counts made earlier, so that we cannot measure again? */
static bool is_kept(const struct options *o)
{
	return o->input || o->narrowing.since_ns || o->narrowing.until_ns;
}

/* Write the options that measure the same processes again: " --pid 12". */
static void write_target(const struct options *o, FILE *f)
{
	if (is_kept(o)) {
		fputs(" -a --for 10s", f);
		return;
	}
	if (o->target.all)
		fputs(" -a", f);
	for (size_t i = 0; i < o->target.n_pids; i++)
		fprintf(f, "%s%d", i ? "," : " --pid ", o->target.pid[i]);
	if (o->target.for_ns)
		fprintf(f, " --for %gs", (double)o->target.for_ns / 1e9);
	for (size_t i = 0; o->target.command_line && o->target.command_line[i]; i++) {
		fputs(i ? " " : " -- ", f);
		write_word(o->target.command_line[i], f);
	}
}

/* A line with a command, indented. */
static void write_command(
	const struct options *o, const char *command, const char *argument, FILE *f)
{
	char *line = NULL;
	size_t bytes;
	FILE *memory = open_memstream(&line, &bytes);
	if (!memory)
		return;
	fprintf(memory, "mperfctl %s", command);
	if (*argument)
		write_word(argument, memory);
	write_target(o, memory);
	if (fclose(memory) == 0) {
		fputs("  ", f);
		escape_terminal(f, line);
		fputc('\n', f);
	}
	free(line);
}

static void write_next(const struct showing *s, const struct topdown *tree, FILE *f)
{
	const struct topdown_node *worst = topdown_worst(tree);
	char deeper[48];
	if (!worst)
		return;
	fputs("\nThe most is lost to ", f);
	escape_terminal(f, worst->name);
	if (*worst->says) {
		fputs(" (", f);
		escape_terminal(f, worst->says);
		fputs(")", f);
	}
	fputs(". Look next:\n", f);
	if (worst->has_more) {
		snprintf(deeper, sizeof(deeper), "topdown -l %d", worst->level + 1);
		write_command(s->options, deeper, "", f);
	}
	for (const char *at = topdown_next(tree); *at;) {
		size_t n = strcspn(at, ";");
		_cleanup_(freep) char *group = strndup(at, n);
		write_command(s->options, "stat -M ", group ? group : "", f);
		at += n;
		at += strspn(at, ";");
	}
	write_command(s->options, "hotspots", "", f);
}

/* --- as text ---------------------------------------------------------------------------------- */

static void write_how(const struct topdown *tree, FILE *f)
{
	_cleanup_(freep) char *how = topdown_how(tree);
	if (how && *how)
		fprintf(f, "\n%s\n", how);
}

static void write_notes(const struct showing *s, FILE *f)
{
	const Mperf__Provenance *p = s->tree->notes;
	for (size_t i = 0; p && i < p->n_note; i++) {
		fputs(i == 0 ? "\nNote: " : "Note: ", f);
		escape_terminal(f, p->note[i]);
		fputc('\n', f);
	}
}

static int show_text(const struct showing *s, FILE *f)
{
	const struct options *o = s->options;
	struct table_options table = {.raw = o->look.raw};
	if (o->look.json)
		return replies_write_json(s->replies, NULL, f);
	if (o->look.raw)
		return table_print(replies_table(s->replies, "node"), &table, f);
	table_look(stdout, o->look.no_color, &table);
	const struct topdown_look look = {table.width, !print_is_ascii(), table.colour};
	for (size_t i = 0; i < s->n; i++) {
		fputs(i > 0 ? "\n" : "", f);
		topdown_text_write(&s->tree[i], &look, s->what, f);
		if (o->explain)
			topdown_text_explain(&s->tree[i], f);
		if (!o->live)
			write_next(s, &s->tree[i], f);
		write_how(&s->tree[i], f);
	}
	write_notes(s, f);
	return 0;
}

static int print_text(const struct showing *s)
{
	struct print p;
	int r = print_open_answer(&p, options_ask_data(s->options));
	if (r == 0)
		r = show_text(s, p.file);
	return print_close_answer(&p, r);
}

/* --- as a picture ----------------------------------------------------------------------------- */

static int write_picture(void *userdata, FILE *f)
{
	const struct showing *s = userdata;
	_cleanup_(freep) char *title = NULL;
	if (asprintf(&title, "Top-down of %s", s->what) < 0) {
		title = NULL;
		return -ENOMEM;
	}
	return topdown_page_write(s->tree, s->n, title, page_is_plain(s->options->output), f);
}

static int save(struct showing *s)
{
	int exit_status = page_save(s->options->output, s->options->force, write_picture, s);
	size_t n_rows = 0;
	for (size_t i = 0; i < s->n; i++)
		n_rows += s->tree[i].n_nodes;
	if (exit_status == EXIT_DONE && strcmp(s->options->output, "-") != 0)
		say_note("wrote %s: %zu rows", s->options->output, n_rows);
	return exit_status;
}

/* Name the source for the title: the file, the service's counts, or the command. The caller frees. */
static char *what_is_shown(const struct options *o)
{
	if (o->input)
		return strdup(o->input);
	return is_kept(o) ? strdup("what the service counted") : target_text(&o->target);
}

static int read_trees(struct topdown *tree, const struct replies *replies, size_t *ret_n)
{
	size_t n = topdown_count(replies);
	int r = n > 0 ? 0 : TOPDOWN_MALFORMED;
	for (size_t i = 0; i < n && r == 0; i++) {
		r = topdown_read(&tree[i], replies, i);
		*ret_n += r == 0;
	}
	return r;
}

static int show(const struct options *o, const struct replies *replies)
{
	struct topdown tree[TOPDOWN_TREES_MAX];
	size_t n = 0;
	_cleanup_(freep) char *what = what_is_shown(o);
	int r = read_trees(tree, replies, &n), exit_status = EXIT_FAILED;
	struct showing s = {o, replies, tree, n, what ? what : "?"};
	if (r < 0)
		say_failure("out of memory", "Free some memory, and try again");
	else if (r > 0)
		say_failure(
			"mperfd sent no tree", "Install mperfctl and mperfd of the same version");
	else
		exit_status = o->output ? save(&s) : print_text(&s);
	for (size_t i = 0; i < n; i++)
		topdown_clear(&tree[i]);
	return exit_status;
}

/* --- frames ----------------------------------------------------------------------------------- */

#define LIVE_MS 1000
#define CLEAR_SCREEN "\033[H\033[2J"

struct watching {
	const struct options *options;
	struct replies replies;
	struct run *run;
	uint32_t n_frames;
	bool on_terminal;
	int exit_status; /* of showing them */
};

/* Show a frame: one line of JSON, or the tree in place of the last one. */
static int show_frame(struct watching *w)
{
	const struct replies_frame frame = {"node", (double)clock_ns(CLOCK_REALTIME) / 1e9};
	if (w->options->look.json)
		return replies_write_json(&w->replies, &frame, stdout) == 0 && fflush(stdout) == 0
			       ? EXIT_DONE
			       : EXIT_FAILED;
	if (w->on_terminal)
		fputs(CLEAR_SCREEN, stdout);
	else if (w->n_frames > 0)
		fputc('\n', stdout);
	fflush(stdout);
	return show(w->options, &w->replies);
}

/* Take an answer; a frame is complete with the rows of its last table. */
static bool ends_frame(const struct watching *w, const Mperf__Answer *a)
{
	const struct replies *r = &w->replies;
	return a->body_case == MPERF__ANSWER__BODY_ROWS && r->n > 0 &&
	       strcmp(r->table[r->current].columns->table, "event") == 0;
}

static int take_frame(void *userdata, const Mperf__Answer *a)
{
	struct watching *w = userdata;
	const struct options *o = w->options;
	int r = replies_take(&w->replies, a);
	bool is_over = w->run->finishing || (o->frames && w->n_frames >= o->frames);
	if (r != 0 || is_over || !ends_frame(w, a))
		return r;
	w->exit_status = show_frame(w);
	w->n_frames++;
	if (w->exit_status == EXIT_DONE && (o->frames == 0 || w->n_frames < o->frames))
		return 0;
	w->run->finishing = true;
	return ask_finish(&w->run->ask);
}

/* --- the run ---------------------------------------------------------------------------------- */

static Mperf__StatRequest request_of(const struct options *o)
{
	Mperf__StatRequest stat = MPERF__STAT_REQUEST__INIT;
	stat.n_metric = o->sampling.n_metrics;
	stat.metric = (char **)o->sampling.metric;
	stat.user_only = o->sampling.user_only;
	stat.levels = o->levels;
	return stat;
}

/* Count until the run ends; answers go to `run`. */
static int count(struct run *run, const struct options *o)
{
	struct link l;
	int signal_fd;
	Mperf__StatRequest stat = request_of(o);
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_TOPDOWN;
	request.topdown = &stat;
	if (o->live)
		stat.interval_ms = o->sampling.interval_ms ? o->sampling.interval_ms : LIVE_MS;
	run->exit_status = EXIT_FAILED;
	if (link_open(&l) != 0)
		return RUN_FAILED;
	int r = signals_block(&signal_fd);
	if (r == 0) {
		run->link = &l;
		run->target = &o->target;
		run->signal_fd = signal_fd;
		r = run_request(run, &request, &stat.target);
		signals_unblock(signal_fd);
	}
	link_close(&l);
	return r;
}

static int watch(const struct options *o)
{
	struct watching w = {.options = o, .on_terminal = isatty(STDOUT_FILENO) && !o->look.json};
	struct run run = {.answer = take_frame, .userdata = &w};
	w.run = &run;
	int r = count(&run, o);
	replies_clear(&w.replies);
	/* enough frames were shown: that is how it ends */
	if (r == 0 && o->frames && w.n_frames >= o->frames && !o->target.command_line)
		return w.exit_status;
	return w.exit_status != EXIT_DONE ? w.exit_status : run.exit_status;
}

static int count_and_show(const struct options *o)
{
	struct replies replies = {.n = 0};
	struct run run = {.answer = replies_take, .userdata = &replies};
	int r = count(&run, o);
	int exit_status = run.exit_status;
	if (r == 0) {
		int shown = show(o, &replies);
		exit_status = shown != EXIT_DONE ? shown : exit_status;
	}
	replies_clear(&replies);
	return exit_status;
}

/* Ask about counts of a file or of the service's store. */
static int ask_and_show(const struct options *o)
{
	struct replies replies = {.n = 0};
	Mperf__StatRequest stat = request_of(o);
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_TOPDOWN;
	request.topdown = &stat;
	const struct source_request from = source_request_of(o);
	int exit_status = source_query(&from, &request, replies_take, &replies, NULL);
	if (exit_status == EXIT_DONE)
		exit_status = show(o, &replies);
	replies_clear(&replies);
	return exit_status;
}

int client_topdown(const struct options *o)
{
	return is_kept(o) ? ask_and_show(o) : o->live ? watch(o) : count_and_show(o);
}
