/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * All of a program is counted as stat does it: where counters run out, events take turns, and the intervals
 * say what that costs. Processes, threads and functions have what rode on their samples, as hotspots -M has it,
 * and that is one group of events. Either way a rate is per second of CPU time, as one hart's roofs are.
 */
#include "client/roofline/roofline_counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/measure/capture.h"
#include "client/measure/run.h"
#include "client/measure/signals.h"
#include "client/roofline/roofline_print.h"
#include "client/show/say.h"
#include "proto/base/memory.h"

/* Advice for machines where events do not count. */
#define INSTEAD                                                                                    \
	"Without counters, `mperfctl roofline --from code` estimates from machine code, and "      \
	"programs built with mperf-cc count themselves"
#define NOTES_MAX 16

/* --- measuring -------------------------------------------------------------------------------- */

static int take(void *userdata, const Mperf__Answer *a)
{
	return reply_take(userdata, a);
}

/* Count everything as one program. 0, or the exit status after a message. *ret_exit: CMD's. */
static int count(const struct source_request *from, struct reply *reply, int *ret_exit)
{
	struct link l;
	int signal_fd;
	Mperf__StatRequest stat = MPERF__STAT_REQUEST__INIT;
	stat.n_metric = from->sampling->n_metrics;
	stat.metric = (char **)from->sampling->metric;
	stat.needed_metric = (char *)from->sampling->needed_metric;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_STAT;
	request.stat = &stat;
	if (link_open(&l) != 0)
		return EXIT_FAILED;
	if (signals_block(&signal_fd) < 0) {
		link_close(&l);
		return EXIT_FAILED;
	}
	struct run run = {.link = &l,
		.target = from->target,
		.instead = from->sampling->instead,
		.signal_fd = signal_fd,
		.answer = take,
		.userdata = reply};
	int r = run_request(&run, &request, &stat.target);
	signals_unblock(signal_fd);
	link_close(&l);
	*ret_exit = run.exit_status;
	return r == 0 ? 0 : run.exit_status;
}

/* Count with samples, grouped as --by says. Results as of count(). */
static int sample(const struct options *o, const struct source_request *from, struct reply *reply,
	int *ret_exit)
{
	struct source s;
	Mperf__Filter filter;
	int exit_status;
	if (source_start(&s, from, &exit_status) == 0) {
		source_filter(&s, from, &filter);
		Mperf__HotspotsRequest hotspots = MPERF__HOTSPOTS_REQUEST__INIT;
		hotspots.path = &s.path;
		hotspots.n_path = 1;
		hotspots.by = o->by;
		hotspots.filter = &filter;
		hotspots.limit = o->limit;
		hotspots.n_metric = from->sampling->n_metrics;
		hotspots.metric = (char **)from->sampling->metric;
		Mperf__Request request = MPERF__REQUEST__INIT;
		request.body_case = MPERF__REQUEST__BODY_HOTSPOTS;
		request.hotspots = &hotspots;
		exit_status = source_ask(&s, &request, reply_take, reply);
	}
	*ret_exit = s.exit_status;
	source_clear(&s);
	return exit_status;
}

/* --- showing ---------------------------------------------------------------------------------- */

static bool is_known(const struct reply *r, const char *column)
{
	double n;
	for (size_t i = 0; i < r->n_rows; i++)
		if (reply_number(r, i, reply_column(r, column), &n))
			return true;
	return false;
}

/* Add caveats about the figures, before the daemon's own notes. */
static int add_notes(const struct options *o, const struct reply *from, struct reply *r)
{
	char *note[NOTES_MAX];
	size_t n = 0;
	note[n++] =
		(char *)"DRAM bytes are a model: a line for each miss of the last cache, as the "
			"core's event counts them; `mperfctl list metrics` says what it leaves "
			"out.";
	note[n++] = (char *)(o->target.all && !o->by
				     ? "Rates are per second of each hart, idle time included."
				     : "Rates are per second of CPU time: what one hart reached.");
	if (!o->ops || strcmp(o->ops, "fp") == 0)
		if (!is_known(r, "dp_share"))
			note[n++] = (char *)"The precision of the operations was not counted: they "
					    "are compared with double-precision roofs.";
	const Mperf__Provenance *p = from->provenance;
	for (size_t i = 0; p && i < p->n_note && n < NOTES_MAX; i++)
		note[n++] = p->note[i];
	return reply_append_provenance(r, p, note, n);
}

static int show(const struct options *o, const struct reply *from)
{
	struct reply reply = {0};
	char reason[COUNTERS_REASON_BYTES];
	_cleanup_(freep) char *what = target_text(&o->target);
	int r = o->by ? roofline_counters_of_samples(from, o->ops, &reply, reason)
		      : roofline_counters_of_stat(from, o->ops, what ? what : "?", &reply, reason);
	int exit_status = EXIT_FAILED;
	if (r == COUNTERS_NONE)
		say_failure(reason, INSTEAD);
	else if (r != 0 || add_notes(o, from, &reply) != 0)
		say_failure("out of memory", "Free some memory, and try again");
	else if (reply.n_rows == 0)
		say_failure("there are no samples to show", "Measure for longer, or raise -F");
	else
		exit_status = roofline_print(&(struct showing){.o = o, .reply = &reply});
	reply_clear(&reply);
	return exit_status;
}

/* ---------------------------------------------------------------------------------------------- */

/* Sample, or count, what a roofline needs. */
static struct sampling sampling_of(const struct options *o)
{
	struct sampling s = o->sampling;
	const char *const *metric = roofline_counters_metrics(o->ops, o->by != NULL);
	for (s.n_metrics = 0; metric[s.n_metrics]; s.n_metrics++)
		s.metric[s.n_metrics] = (char *)metric[s.n_metrics];
	s.needed_metric = roofline_counters_needed(o->ops);
	if (o->by && strcmp(o->by, "function") != 0) {
		s.stack = MPERF__STACK_KIND__STACK_NONE;
		s.stack_given = true;
	}
	s.instead = INSTEAD;
	return s;
}

int roofline_counters(const struct options *o)
{
	struct reply reply = {0};
	const struct sampling sampling = sampling_of(o);
	struct source_request from = source_request_of(o);
	from.sampling = &sampling;
	int of_command = 0;
	int exit_status =
		o->by ? sample(o, &from, &reply, &of_command) : count(&from, &reply, &of_command);
	if (exit_status == 0)
		exit_status = show(o, &reply);
	reply_clear(&reply);
	return exit_status ? exit_status : of_command;
}
