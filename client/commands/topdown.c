/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl topdown: counts a tree of metrics while something runs, and shows it as text, JSON or a
 * picture, with the commands to run next.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/commands/command.h"
#include "client/commands/run.h"
#include "client/commands/signals.h"
#include "client/show/escape.h"
#include "client/show/page.h"
#include "client/show/print.h"
#include "client/show/table.h"
#include "client/topdown/page.h"
#include "client/topdown/text.h"
#include "proto/memory.h"

struct showing {
	const struct options *options;
	const struct replies *replies;
	const struct topdown *tree;
	const char *what; /* was measured */
};

/* --- what to do next -------------------------------------------------------------------------- */

/* As a shell reads it. */
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

/* The same processes once more: " --pid 12". */
static void write_target(const struct options *o, FILE *f)
{
	if (o->all)
		fputs(" -a", f);
	for (size_t i = 0; i < o->n_pids; i++)
		fprintf(f, "%s%d", i ? "," : " --pid ", o->pid[i]);
	if (o->for_ns)
		fprintf(f, " --for %gs", (double)o->for_ns / 1e9);
	for (size_t i = 0; o->command_line && o->command_line[i]; i++) {
		fputs(i ? " " : " -- ", f);
		write_word(o->command_line[i], f);
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

static void write_next(const struct showing *s, FILE *f)
{
	const struct topdown_node *worst = topdown_worst(s->tree);
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
	for (const char *at = topdown_next(s->tree); *at;) {
		size_t n = strcspn(at, ";");
		_cleanup_(freep) char *group = strndup(at, n);
		write_command(s->options, "stat -M ", group ? group : "", f);
		at += n;
		at += strspn(at, ";");
	}
	write_command(s->options, "hotspots", "", f);
}

/* --- as text ---------------------------------------------------------------------------------- */

static void write_notes(const struct showing *s, FILE *f)
{
	const Mperf__Provenance *p = s->tree->notes;
	_cleanup_(freep) char *how = topdown_how(s->tree);
	if (how && *how)
		fprintf(f, "\n%s\n", how);
	for (size_t i = 0; p && i < p->n_note; i++) {
		fputs(i == 0 ? "\nNote: " : "Note: ", f);
		escape_terminal(f, p->note[i]);
		fputc('\n', f);
	}
}

static int show_text(const struct showing *s, FILE *f)
{
	const struct options *o = s->options;
	struct table_options table = {.raw = o->raw};
	if (o->json)
		return replies_write_json(s->replies, NULL, f);
	if (o->raw)
		return table_print(replies_table(s->replies, "node"), &table, f);
	table_look(stdout, o->no_color, &table);
	const struct topdown_look look = {table.width, table_wants_utf8(), table.colour};
	topdown_text_write(s->tree, &look, s->what, f);
	if (o->explain)
		topdown_text_explain(s->tree, f);
	write_next(s, f);
	write_notes(s, f);
	return 0;
}

static int print_text(const struct showing *s)
{
	struct print p;
	int r = print_open(&p, STDOUT_FILENO);
	if (r == 0)
		r = print_close(&p, show_text(s, p.file));
	if (r < 0)
		print_say_failed(NULL, r, "send stdout elsewhere");
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
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
	return topdown_page_write(s->tree, title, page_is_plain(s->options->output), f);
}

static int save(struct showing *s)
{
	int exit_status = page_save(s->options->output, write_picture, s);
	if (exit_status == EXIT_DONE && strcmp(s->options->output, "-") != 0)
		say_note("wrote %s: %zu rows", s->options->output, s->tree->n_nodes);
	return exit_status;
}

static int show(const struct options *o, const struct replies *replies)
{
	struct topdown tree;
	_cleanup_(freep) char *what = options_what(o);
	int r = topdown_read(&tree, replies);
	if (r != 0) {
		if (r < 0)
			say_failure("out of memory", "Free some memory, and try again");
		else
			say_failure("mperfd sent no tree",
				"Install mperfctl and mperfd of the same version");
		return EXIT_FAILED;
	}
	struct showing s = {o, replies, &tree, what ? what : "?"};
	int exit_status = o->output ? save(&s) : print_text(&s);
	topdown_clear(&tree);
	return exit_status;
}

/* --- the run ---------------------------------------------------------------------------------- */

static int count(const struct options *o, struct link *l, int signal_fd, struct replies *replies,
	int *ret_exit)
{
	Mperf__StatRequest stat = MPERF__STAT_REQUEST__INIT;
	stat.n_metric = o->n_metrics;
	stat.metric = (char **)o->metric;
	stat.user_only = o->user_only;
	stat.levels = o->levels;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_TOPDOWN;
	request.topdown = &stat;
	struct run run = {.link = l,
		.options = o,
		.signal_fd = signal_fd,
		.answer = replies_take,
		.userdata = replies};
	int r = run_request(&run, &request, &stat.target);
	*ret_exit = run.exit_status;
	return r;
}

int client_topdown(const struct options *o)
{
	struct link l;
	struct replies replies = {.n = 0};
	int signal_fd, exit_status = EXIT_FAILED;

	if (link_open(&l) != 0)
		return EXIT_FAILED;
	int r = signals_block(&signal_fd);
	if (r == 0) {
		r = count(o, &l, signal_fd, &replies, &exit_status);
		signals_unblock(signal_fd);
	}
	link_close(&l);
	if (r == 0) {
		int shown = show(o, &replies);
		exit_status = shown != EXIT_DONE ? shown : exit_status;
	}
	replies_clear(&replies);
	return exit_status;
}
