/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * status and store answer several tables at once; a table that a later daemon adds is shown under
 * its own name. Only a service answers here: a daemon of our own would have just started and have
 * nothing to report.
 */
#include "client/commands/tables.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/show/escape.h"
#include "client/show/print.h"
#include "client/show/reply.h"
#include "client/show/table.h"
#include "client/wire/ask.h"
#include "proto/base/memory.h"

static void write_heading(const char *says, const struct table_options *look, FILE *f)
{
	fputs(look->raw ? "# " : look->colour ? "\033[1m" : "", f);
	escape_terminal(f, says);
	fputs(look->colour && !look->raw ? "\033[0m\n" : "\n", f);
}

/* "  Taken   1,204": one line per column of a single row. */
static int write_upright(const struct reply *table, FILE *f)
{
	size_t width = 0;
	for (size_t i = 0; i < table->columns->n_column; i++) {
		size_t n = escape_width(table->columns->column[i]->title);
		width = n > width ? n : width;
	}
	for (size_t i = 0; i < table->columns->n_column; i++) {
		const Mperf__Column *c = table->columns->column[i];
		_cleanup_(freep) char *title = escape_terminal_dup(c->title);
		_cleanup_(freep) char *cell = table_cell(table->row[0]->value[i], c->unit, false);
		if (!title || !cell)
			return -ENOMEM;
		fprintf(f, "  %s%*s  %s\n", title, (int)(width - escape_width(title)), "", cell);
	}
	return 0;
}

static int write_table(const struct reply *table, const struct tables_heading *heading,
	const struct table_options *look, FILE *f)
{
	const char *name = table->columns->table;
	while (heading->table && strcmp(heading->table, name) != 0)
		heading++;
	write_heading(heading->table && !look->raw ? heading->says : name, look, f);
	if (look->raw)
		return table_print(table, look, f);
	struct table_options here = *look;
	here.hide = look->width > 0 && look->width < TABLES_WIDE ? heading->spare : NULL;
	if (table->n_rows == 0) {
		fputs("  none\n", f);
		return 0;
	}
	return heading->upright && table->n_rows == 1 ? write_upright(table, f)
						      : table_print(table, &here, f);
}

static int show(const struct options *o, const struct replies *replies,
	const struct tables_heading *heading, const struct tables_change *change, FILE *f)
{
	struct table_options look = {.raw = o->look.raw};
	int r = 0;

	if (o->look.json)
		return replies_write_json(replies, NULL, f);
	if (!o->look.raw && change->brief)
		return change->brief(replies, f);
	table_look(stdout, o->look.no_color, &look);
	for (size_t i = 0; i < replies->n && r == 0; i++) {
		fputs(i > 0 ? "\n" : "", f);
		r = write_table(&replies->table[i], heading, &look, f);
	}
	return r;
}

/* Users have names instead of numbers: people know them by these. */
static int name_users(struct replies *replies)
{
	int r = 0;
	for (size_t i = 0; i < replies->n && r == 0; i++) {
		struct reply *table = &replies->table[i];
		for (size_t c = 0; c < table->columns->n_column && r == 0; c++)
			if (strcmp(table->columns->column[c]->title, "User") == 0)
				r = reply_name_users(table, (int)c);
	}
	return r;
}

static int print_tables(const struct options *o, const struct replies *replies,
	const struct tables_heading *heading, const struct tables_change *change)
{
	struct print p;
	int r = print_open_answer(&p, options_ask_data(o));
	if (r == 0)
		r = show(o, replies, heading, change, p.file);
	return print_close_answer(&p, r);
}

int tables_ask_changed(const struct options *o, Mperf__Request *request,
	const struct tables_heading *heading, const struct tables_change *change)
{
	struct link l;
	struct replies replies = {0};

	int r = link_open_service(&l);
	if (r == LINK_ABSENT)
		link_say_no_service("there is nothing to show");
	if (r != 0)
		return EXIT_FAILED;
	struct ask k = {.link = &l, .answer = replies_take, .userdata = &replies};
	r = ask_run(&k, request);
	link_close(&l);
	if (r == 0 && change->amend)
		r = change->amend(&replies);
	if (r == 0 && !o->look.json && !o->look.raw)
		r = name_users(&replies);

	int exit_status = r == 0 ? k.status : r > 0 ? k.exit_status : EXIT_FAILED;
	if (r < 0)
		ask_say_broken("asking", r);
	else if (r == 0 && print_tables(o, &replies, heading, change) != 0)
		exit_status = EXIT_FAILED;
	replies_clear(&replies);
	return exit_status;
}

int tables_ask(
	const struct options *o, Mperf__Request *request, const struct tables_heading *heading)
{
	return tables_ask_changed(o, request, heading, &(struct tables_change){0});
}
