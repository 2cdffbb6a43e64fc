/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mperfctl list: the events that count here, under a heading per topic.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/ask.h"
#include "client/command.h"
#include "client/options.h"
#include "client/reply.h"
#include "client/table.h"

static int show(const struct options *o, const struct reply *reply)
{
	struct table_options look = {.raw = o->raw, .group = "topic"};
	if (o->json)
		return reply_write_json(reply, stdout);
	table_look(stdout, o->no_color, &look);
	int r = table_print(reply, &look, stdout);
	return r == 0 && fflush(stdout) != 0 ? -errno : r;
}

int client_list(const struct options *o)
{
	struct link l;
	struct reply reply = {0};

	int r = link_open(&l);
	if (r < 0)
		say_note("cannot reach mperfd: %s", strerror(-r));
	if (r != 0)
		return EXIT_FAILED;

	Mperf__ListRequest list = MPERF__LIST_REQUEST__INIT;
	if (o->topic)
		list.topic = o->topic;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_LIST;
	request.list = &list;
	struct ask k = {.link = &l, .answer = reply_take, .userdata = &reply};
	r = ask_run(&k, &request);
	link_close(&l);

	int exit_status = r > 0 ? k.exit_status : k.status;
	if (r == 0)
		r = show(o, &reply);
	if (r < 0) {
		say_note("cannot list events: %s", strerror(-r));
		exit_status = EXIT_FAILED;
	}
	reply_clear(&reply);
	return exit_status;
}
