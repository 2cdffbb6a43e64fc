/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl list: the events that count here, under a heading per topic.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/options/command.h"
#include "client/options/options.h"
#include "client/show/print.h"
#include "client/show/reply.h"
#include "client/show/table.h"
#include "client/wire/ask.h"
#include "proto/base/memory.h"

/* The columns of the answer, as daemon/control/list.c sends them. */
enum {
	COLUMN_TOPIC,
	COLUMN_EVENT,
	COLUMN_CODE,
	COLUMN_HARTS,
	COLUMN_COUNTS,
	COLUMN_SAYS,
	COLUMN_REASON,
	N_COLUMNS
};

static const char *text_at(const Mperf__Row *row, int column)
{
	const Mperf__Value *v = row->n_value == N_COLUMNS ? row->value[column] : NULL;
	return v && v->is_case == MPERF__VALUE__IS_TEXT ? v->text : "";
}

static bool counts(const Mperf__Row *row)
{
	return strcmp(text_at(row, COLUMN_COUNTS), "yes") == 0;
}

/* The number of events left out per topic; rows of a topic are adjacent. */
static void print_left_out(const struct reply *reply, FILE *f)
{
	for (size_t i = 0, end; i < reply->n_rows; i = end) {
		const char *topic = text_at(reply->row[i], COLUMN_TOPIC);
		size_t n = 0;
		for (end = i; end < reply->n_rows &&
			      strcmp(text_at(reply->row[end], COLUMN_TOPIC), topic) == 0;
			end++)
			n += !counts(reply->row[end]);
		if (n == 0)
			continue;
		fprintf(f, "\n%zu more under %s do%s not count here; `mperfctl list -a ", n, topic,
			n == 1 ? "es" : "");
		fprintf(f, "%s` says why.", topic);
	}
	fputc('\n', f);
}

/* Does that column have any value? */
static bool is_used(const struct reply *reply, int column)
{
	for (size_t i = 0; i < reply->n_rows; i++)
		if (*text_at(reply->row[i], column))
			return true;
	return false;
}

/* Columns to hide: empty ones, and with `counting` those with the same value in all rows. */
#define HIDE_MAX 5
static void choose_hidden(
	const struct reply *reply, bool counting, const char *hide[static HIDE_MAX])
{
	size_t n = 0;
	if (!is_used(reply, COLUMN_CODE))
		hide[n++] = "code";
	if (!is_used(reply, COLUMN_HARTS))
		hide[n++] = "harts";
	if (counting) {
		hide[n++] = "counts";
		hide[n++] = "reason";
	}
	hide[n] = NULL;
}

/* Rows that count; the others are only summarised. */
static int print_counting(const struct reply *reply, struct table_options *look, FILE *f)
{
	const char *hide[HIDE_MAX];
	_cleanup_(freep) Mperf__Row **row = calloc(reply->n_rows + 1, sizeof(*row));
	if (!row)
		return -ENOMEM;
	struct reply counting = *reply;
	counting.row = row;
	counting.n_rows = 0;
	for (size_t i = 0; i < reply->n_rows; i++)
		if (counts(reply->row[i]))
			row[counting.n_rows++] = reply->row[i];

	choose_hidden(&counting, true, hide);
	look->hide = hide;
	int r = counting.n_rows > 0 ? table_print(&counting, look, f) : 0;
	if (r == 0)
		print_left_out(reply, f);
	return r;
}

/* The fields of a code, a heading per core. */
static int show_decoded(const struct options *o, const struct reply *reply, FILE *f)
{
	struct table_options look = {.raw = o->look.raw, .group = "core"};
	table_look(stdout, o->look.no_color, &look);
	return table_print(reply, &look, f);
}

static int show(const struct options *o, const struct reply *reply, FILE *f)
{
	struct table_options look = {.raw = o->look.raw, .group = "topic"};
	if (o->look.json)
		return reply_write_json(reply, f);
	if (o->decode)
		return show_decoded(o, reply, f);
	const char *hide[HIDE_MAX];
	choose_hidden(reply, false, hide);
	look.hide = o->look.raw ? NULL : hide;
	table_look(stdout, o->look.no_color, &look);
	return o->target.all || o->look.raw ? table_print(reply, &look, f)
					    : print_counting(reply, &look, f);
}

static int print_events(const struct options *o, const struct reply *reply)
{
	struct print p;
	int r = print_open_answer(&p, options_ask_data(o));
	if (r == 0)
		r = show(o, reply, p.file);
	return print_close_answer(&p, r);
}

int client_list(const struct options *o)
{
	struct link l;
	struct reply reply = {0};

	if (link_open(&l) != 0)
		return EXIT_FAILED;

	Mperf__ListRequest list = MPERF__LIST_REQUEST__INIT;
	if (o->topic)
		list.topic = o->topic;
	if (o->decode)
		list.decode = o->decode;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_LIST;
	request.list = &list;
	struct ask k = {.link = &l, .answer = reply_take, .userdata = &reply};
	int r = ask_run(&k, &request);
	link_close(&l);

	int exit_status = r == 0 ? k.status : r > 0 ? k.exit_status : EXIT_FAILED;
	if (r < 0)
		ask_say_broken("asking", r);
	else if (r == 0 && print_events(o, &reply) != 0)
		exit_status = EXIT_FAILED;
	reply_clear(&reply);
	return exit_status;
}
