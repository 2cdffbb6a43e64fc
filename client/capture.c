/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The daemon seals a segment and streams it; we only append. Bytes must arrive in order and in
 * full: a recording that has a hole would be refused later, so it is refused now.
 */
#include "client/capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/print.h"
#include "client/reply.h"
#include "proto/memory.h"

/* As the daemon has it. */
#define WINDOW_MS_MAX 60000u

static int take_bytes(struct capture *c, const Mperf__Bytes *bytes)
{
	if (bytes->offset != c->out->bytes) {
		say_failure("mperfd sent a recording with a hole",
			"Try again; if it stays, this is a bug in mperfd");
		return RUN_FAILED;
	}
	c->total_bytes = bytes->total;
	int r = outfile_write(c->out, bytes->data.data, bytes->data.len);
	if (r < 0) {
		print_say_failed(c->out->temporary ? c->out->temporary : c->out->path, r,
			"write elsewhere (-o, or TMPDIR)");
		return RUN_FAILED;
	}
	say_progress(&c->run.ask.progress, "receiving the recording", c->out->bytes, bytes->total);
	return 0;
}

static int take_answer(void *userdata, const Mperf__Answer *a)
{
	struct capture *c = userdata;
	switch (a->body_case) {
	case MPERF__ANSWER__BODY_BYTES:
		return take_bytes(c, a->bytes);
	case MPERF__ANSWER__BODY_PROVENANCE:
		free(c->provenance_line);
		c->provenance_line = reply_provenance_line(a->provenance);
		c->samples = a->provenance->samples;
		return c->provenance_line ? 0 : -ENOMEM;
	default:
		return 0;
	}
}

int capture_run(struct capture *c, struct link *l, const struct options *o, int signal_fd,
	struct outfile *out, const char *feed)
{
	Mperf__RecordRequest record = MPERF__RECORD_REQUEST__INIT;
	record.hz = o->hz;
	record.n_event = o->n_events;
	record.event = (char **)o->event;
	record.stack = o->stack;
	record.stack_bytes = o->stack_bytes;
	record.user_only = o->user_only;
	if (o->loops) { /* callers are of no use, and a window each so often is */
		record.stack = MPERF__STACK_KIND__STACK_NONE;
		record.window_ms = o->interval_ms < WINDOW_MS_MAX ? o->interval_ms : WINDOW_MS_MAX;
		record.feed_period_ms = record.window_ms;
	}
	if (feed)
		record.feed = (char *)feed;
	_cleanup_(freep) char *what = options_what(o);
	if (what)
		record.command = what;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_RECORD;
	request.record = &record;

	*c = (struct capture){.out = out};
	c->run.link = l;
	c->run.options = o;
	c->run.signal_fd = signal_fd;
	c->run.answer = take_answer;
	c->run.userdata = c;
	int r = run_request(&c->run, &request, &record.target);
	if (r != 0)
		return r;
	if (out->bytes == 0 || out->bytes != c->total_bytes) {
		say_failure("mperfd sent no whole recording",
			"Try again; if it stays, this is a bug in mperfd");
		c->run.exit_status = EXIT_FAILED;
		return RUN_FAILED;
	}
	return 0;
}

void capture_clear(struct capture *c)
{
	free(c->provenance_line);
	c->provenance_line = NULL;
}
