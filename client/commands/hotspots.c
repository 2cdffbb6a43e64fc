/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl hotspots: the table of where the time went.
 */
#include <stdio.h>
#include <unistd.h>

#include "client/measure/capture.h"
#include "client/options/command.h"
#include "client/show/print.h"
#include "client/show/reply.h"
#include "client/show/table.h"

static int show(const struct options *o, const struct reply *reply, FILE *f)
{
	/* People read the share; the nanoseconds are in --json and --raw. */
	static const char *const hide[] = {"self_ns", NULL};
	static const char *const hide_shares[] = {"self_ns", "self", "total", NULL};
	bool counts = o->per_process || o->per_cgroup;
	struct table_options look = {.raw = o->raw, .hide = counts ? hide_shares : hide};

	if (o->json)
		return reply_write_json(reply, f);
	table_look(stdout, o->no_color, &look);
	int r = table_print(reply, &look, f);
	if (r == 0 && !o->raw)
		reply_write_provenance(reply->provenance, f);
	return r;
}

static int ask(struct source *s, const struct options *o, struct reply *reply)
{
	Mperf__Filter filter;
	source_filter(s, o, &filter);
	Mperf__HotspotsRequest hotspots = MPERF__HOTSPOTS_REQUEST__INIT;
	hotspots.path = s->path;
	hotspots.by = (char *)(o->by ? o->by : "function");
	hotspots.filter = &filter;
	hotspots.limit = o->limit;
	hotspots.inlined = o->inlined;
	hotspots.n_metric = o->n_metrics;
	hotspots.metric = (char **)o->metric;
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
	source_clear(&s); /* before showing: quitting the pager must leave nothing behind */
	if (exit_status == 0) {
		struct print p;
		int r = print_open(
			&p, STDOUT_FILENO, options_ask_data(o) ? PRINT_DATA : PRINT_TEXT);
		if (r == 0)
			r = print_close(&p, show(o, &reply, p.file));
		if (r < 0) {
			print_say_failed(NULL, r, "send stdout elsewhere");
			exit_status = EXIT_FAILED;
		} else if (reply.n_rows == 0) {
			say_note(s.kept ? "no samples match; choose another time with --since and "
					  "--until, or relax the filters"
					: "no samples match; record longer, raise -F, or relax the "
					  "filters");
		}
	}
	reply_clear(&reply);
	return exit_status;
}
