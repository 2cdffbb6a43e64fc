/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl timeline: how busy each process, hart or job was over time.
 */
#include <string.h>

#include "client/measure/capture.h"
#include "client/options/command.h"
#include "client/show/print.h"
#include "client/show/say.h"
#include "client/show/table.h"
#include "client/show/timeline.h"
#include "proto/syntax/event_name.h"

static const char *title_of(const struct options *o)
{
	return o->by && strcmp(o->by, "hart") == 0  ? "Hart"
	       : o->by && strcmp(o->by, "job") == 0 ? "Job"
						    : "Process";
}

static int show_raw(const struct replies *replies, const struct table_options *look, FILE *f)
{
	int r = 0;
	for (size_t i = 0; i < replies->n && r == 0; i++) {
		fprintf(f, "%s# %s\n", i ? "\n" : "", replies->table[i].columns->table);
		r = table_print(&replies->table[i], look, f);
	}
	return r;
}

static int show(const struct options *o, const struct replies *replies, FILE *f)
{
	struct table_options look = {.raw = o->look.raw};
	if (o->look.json)
		return replies_write_json(replies, NULL, f);
	table_look(stdout, o->look.no_color, &look);
	if (look.raw)
		return show_raw(replies, &look, f);
	const bool is_waiting =
		o->narrowing.of_event && event_name_is_waiting(o->narrowing.of_event);
	const struct timeline_look drawn = {.width = look.width,
		.utf8 = !print_is_ascii(),
		.title = title_of(o),
		.unit = is_waiting ? "thread" : "hart"};
	int r = timeline_print(replies, &drawn, f);
	if (r == 0)
		reply_write_provenance(replies->provenance, f);
	return r;
}

static bool is_empty(const struct replies *replies)
{
	const struct reply *rows = replies_table(replies, "timeline");
	return !rows || rows->n_rows == 0;
}

int client_timeline(const struct options *o)
{
	Mperf__TimelineRequest timeline = MPERF__TIMELINE_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	struct table_options look = {.raw = o->look.raw};
	struct replies replies = {0};
	struct print p;
	bool kept;
	table_look(stdout, o->look.no_color, &look);
	timeline.by = (char *)(o->by ? o->by : "process");
	timeline.limit = o->limit;
	timeline.every_ms = o->sampling.interval_ms;
	timeline.stretches = o->look.json || o->look.raw ? 0 : (uint32_t)timeline_room(look.width);
	request.body_case = MPERF__REQUEST__BODY_TIMELINE;
	request.timeline = &timeline;
	struct sampling sampling = o->sampling; /* of processes, which need no callers */
	sampling.stack = MPERF__STACK_KIND__STACK_NONE;
	sampling.stack_given = true;
	sampling.interval_ms = 0;
	struct source_request from = source_request_of(o);
	from.sampling = &sampling;
	int exit_status = source_query(&from, &request, replies_take, &replies, &kept);
	if (exit_status == 0) {
		int r = print_open_answer(&p, options_ask_data(o));
		if (r == 0)
			r = show(o, &replies, p.file);
		exit_status = print_close_answer(&p, r);
		if (exit_status == 0 && is_empty(&replies))
			say_note(kept ? "no samples match; choose another time with --since and "
					"--until, or relax the filters"
				      : "no samples match; record longer, raise -F, or relax the "
					"filters");
	}
	replies_clear(&replies);
	return exit_status;
}
