/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl list: the events that count here, under a heading per topic.
 */
#include <stdio.h>
#include <unistd.h>

#include "client/ask.h"
#include "client/command.h"
#include "client/options.h"
#include "client/print.h"
#include "client/reply.h"
#include "client/table.h"

static int show(const struct options *o, const struct reply *reply, FILE *f)
{
	struct table_options look = {.raw = o->raw, .group = "topic"};
	if (o->json)
		return reply_write_json(reply, f);
	table_look(stdout, o->no_color, &look);
	return table_print(reply, &look, f);
}

static int print_events(const struct options *o, const struct reply *reply)
{
	struct print p;
	int r = print_open(&p, STDOUT_FILENO);
	if (r == 0)
		r = print_close(&p, show(o, reply, p.file));
	if (r < 0)
		print_say_failed(NULL, r, "send stdout elsewhere");
	return r;
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
