/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The daemon seals a segment and streams it; we only append. Bytes must arrive in order and
 * complete: a recording with a gap would be refused later, so we refuse it now.
 */
#include "client/measure/capture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/measure/signals.h"
#include "client/show/print.h"
#include "client/show/reply.h"
#include "proto/base/memory.h"

/* The daemon's own limit. */
#define WINDOW_MS_MAX 60000u

#define METRIC_WINDOW_MS 100 /* the least that the daemon allows */

static int take_bytes(struct capture *c, const Mperf__Bytes *bytes)
{
	if (bytes->offset != c->out->bytes) {
		say_failure("mperfd sent a recording with a gap",
			"Try again; if it fails again, report a bug in mperfd");
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

/* 0; RUN_FAILED after an error message. */
static int check_complete(struct capture *c)
{
	if (c->out->bytes > 0 && c->out->bytes == c->total_bytes)
		return 0;
	say_failure("mperfd sent an incomplete recording",
		"Try again; if it fails again, report a bug in mperfd");
	c->run.exit_status = EXIT_FAILED;
	return RUN_FAILED;
}

/* Default rates, without -F. At 99 Hz a program of 0.4 s has 40 samples, so one program gets a
 * higher rate. Sampling the whole machine costs more and runs longer, and with counted loops
 * samples only divide the time. */
#define HZ_OF_SOME 999
#define HZ_OF_ALL 99

int capture_run(struct capture *c, struct link *l, const struct source_request *q, int signal_fd,
	struct outfile *out, const char *feed)
{
	Mperf__RecordRequest record = MPERF__RECORD_REQUEST__INIT;
	const struct sampling *s = q->sampling;
	record.hz = s->hz                                         ? s->hz
		    : q->target->all || (s->loops && !s->of_code) ? HZ_OF_ALL
								  : HZ_OF_SOME;
	record.hz_at_most = !s->hz;
	record.period = s->period;
	record.overhead_ppm = s->overhead_ppm;
	record.n_event = s->n_events;
	record.event = (char **)s->event;
	record.stack = s->stack;
	record.stack_bytes = s->stack_bytes;
	record.user_only = s->user_only;
	record.wakers = s->wakers;
	record.n_metric = s->n_metrics;
	record.metric = (char **)s->metric;
	if (s->needed_metric)
		record.needed_metric = (char *)s->needed_metric;
	if (q->narrowing->gives_labels) {
		record.n_label = q->narrowing->n_labels;
		record.label = (char **)q->narrowing->label;
	}
	if (s->n_metrics) /* errors need several windows, also of a short run */
		record.window_ms = METRIC_WINDOW_MS;
	*c = (struct capture){.out = out};
	if (s->loops) { /* a window per interval, and mostly no callers */
		record.window_ms = s->interval_ms < WINDOW_MS_MAX ? s->interval_ms : WINDOW_MS_MAX;
		record.feed_period_ms = record.window_ms;
	}
	if (s->loops && !s->callers) {
		record.stack = MPERF__STACK_KIND__STACK_NONE;
	} else if (!s->stack_given && s->n_events == 0) {
		/* requested events may fire at each occurrence, and copies of stacks would fill the ring */
		record.stack = MPERF__STACK_KIND__STACK_DWARF;
		record.stack_at_most =
			q->target->all; /* a walk of its own of all would cost as much again */
	}
	if (feed)
		record.feed = (char *)feed;
	_cleanup_(freep) char *what = target_text(q->target);
	if (what)
		record.command = what;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_RECORD;
	request.record = &record;

	c->run.link = l;
	c->run.target = q->target;
	c->run.instead = s->instead;
	c->run.signal_fd = signal_fd;
	c->run.answer = take_answer;
	c->run.userdata = c;
	int r = run_request(&c->run, &request, &record.target);
	return r == 0 ? check_complete(c) : r;
}

/* --- what the service has kept ---------------------------------------------------------------- */

static int on_signal(void *userdata)
{
	struct capture *c = userdata;
	if (signals_take(c->run.signal_fd) == 0)
		return 0;
	return c->run.n_signals++ == 0 ? ask_cancel(&c->run.ask) : -EINTR;
}

static int take_stored(void *userdata, const Mperf__Answer *a)
{
	if (a->body_case == MPERF__ANSWER__BODY_READY && *a->ready->note)
		say_note("%s", a->ready->note);
	return take_answer(userdata, a);
}

int capture_stored(struct capture *c, struct link *l, Mperf__Filter *filter, int signal_fd,
	struct outfile *out)
{
	Mperf__RecordRequest record = MPERF__RECORD_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	record.stored = filter;
	record.command = "the service's store";
	request.body_case = MPERF__REQUEST__BODY_RECORD;
	request.record = &record;
	*c = (struct capture){
		.out = out, .run.signal_fd = signal_fd, .run.exit_status = EXIT_FAILED};
	c->run.ask = (struct ask){.link = l, .answer = take_stored, .userdata = c};
	c->run.ask.watch[0] = (struct ask_watch){.fd = signal_fd, .ready = on_signal};

	int r = ask_run(&c->run.ask, &request);
	if (r == ASK_CANCELLED || r == -EINTR) {
		say_failure("cancelled; nothing was kept", NULL);
		c->run.exit_status = EXIT_SIGNAL_BASE + SIGINT;
	} else if (r < 0) {
		ask_say_broken("saving", r);
	} else if (r == ASK_FAILED) {
		c->run.exit_status = c->run.ask.exit_status;
	} else {
		c->run.exit_status = EXIT_DONE;
		return check_complete(c);
	}
	return RUN_FAILED;
}

void capture_clear(struct capture *c)
{
	free(c->provenance_line);
	c->provenance_line = NULL;
}
