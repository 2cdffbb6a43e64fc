/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl hotspots: the table of where the time went.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/capture.h"
#include "client/command.h"
#include "client/reply.h"
#include "client/table.h"
#include "proto/memory.h"

static int show(const struct options *o, const struct reply *reply)
{
	/* The share says it for people; the nanoseconds are in --json and --raw. */
	static const char *const hide[] = {"self_ns", NULL};
	struct table_options look = {.raw = o->raw, .hide = hide};

	if (o->json)
		return reply_write_json(reply, stdout);
	table_look(stdout, o->no_color, &look);
	int r = table_print(reply, &look, stdout);
	if (r == 0 && reply->provenance && !o->raw) {
		_cleanup_(freep) char *line = reply_provenance_line(reply->provenance);
		if (line)
			printf("\n%s\n", line);
	}
	if (r == 0 && fflush(stdout) != 0)
		r = -errno;
	return r;
}

static int ask(struct source *s, const struct options *o, struct reply *reply)
{
	Mperf__Filter filter;
	source_filter(o, &filter);
	Mperf__HotspotsRequest hotspots = MPERF__HOTSPOTS_REQUEST__INIT;
	hotspots.path = s->path;
	hotspots.by = (char *)(o->by ? o->by : "function");
	hotspots.filter = &filter;
	hotspots.limit = o->limit;
	hotspots.inlined = o->inlined;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_HOTSPOTS;
	request.hotspots = &hotspots;
	return source_ask(s, &request, reply_take, reply);
}

int client_hotspots(const struct options *o)
{
	struct source s;
	struct reply reply = {0};
	int exit_status;

	if (source_open(&s, o, &exit_status) == 0)
		exit_status = ask(&s, o, &reply);
	source_clear(&s); /* before showing: who quits the pager leaves nothing behind */
	if (exit_status == 0) {
		int r = show(o, &reply);
		if (r < 0) {
			say_note("cannot print the answer: %s", strerror(-r));
			exit_status = EXIT_FAILED;
		}
		if (reply.n_rows == 0)
			say_note("no samples fit; record longer, raise -F, or ask for less with the filters");
	}
	reply_clear(&reply);
	return exit_status;
}
