/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * stat: counters that are read at intervals, or once at the end. Times of the command itself
 * (elapsed, user, sys) are the client's, who waited for it.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/pmu/annotate.h"
#include "daemon/pmu/counter.h"
#include "daemon/pmu/metric_plan.h"
#include "daemon/pmu/plausible.h"
#include "platform-db/expression.h"
#include "proto/memory.h"
#include "proto/unit.h"

struct stat_job {
	struct job job;
	struct counter *counter;
	struct counter_value *last;  /* n_events, as of the last interval */
	struct metric_plan *metrics; /* NULL: none was asked for */
	int first_of_metrics;        /* the first of their events; they are the last ones */
	struct machine machine;
	uint64_t interval_ns, next_ns;
	struct user *user; /* the user charged for the descriptors of `counter`: */
	size_t n_fds;
};

static void stat_free(struct job *job)
{
	struct stat_job *j = (struct stat_job *)job;
	counter_free(j->counter);
	metric_plan_free(j->metrics);
	user_give(j->user, USER_DESCRIPTORS, j->n_fds);
	free(j->last);
	free(j);
}

static uint64_t stat_deadline_ns(struct job *job, const struct request *q)
{
	struct stat_job *j = (struct stat_job *)job;
	(void)q;
	return j->interval_ns ? j->next_ns : UINT64_MAX;
}

static const struct answer_column columns[] = {
	{"event", "event", MPERF__UNIT__UNIT_NONE},
	{"value", "raw count", MPERF__UNIT__UNIT_COUNT},
	{"scaled", "count", MPERF__UNIT__UNIT_COUNT},
	{"enabled_ns", "enabled", MPERF__UNIT__UNIT_NS},
	{"running_ns", "running", MPERF__UNIT__UNIT_NS},
	{"running_share", "running", MPERF__UNIT__UNIT_SHARE},
	{"reason", "not counted because", MPERF__UNIT__UNIT_NONE},
	{"unit", "unit", MPERF__UNIT__UNIT_NONE}, /* of a metric; the count is its value */
	{"formula", "formula", MPERF__UNIT__UNIT_NONE},
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

static struct answer_value integer(uint64_t v)
{
	return (struct answer_value){.kind = ANSWER_INTEGER, .integer = (int64_t)v};
}

static struct answer_value real(double v)
{
	return (struct answer_value){.kind = ANSWER_REAL, .real = v};
}

/* As a whole each hart and thread was scaled by its own times. Of an interval only the sums are
 * known: a difference of two scaled counts could fall below zero. */
static double scaled_since(const struct counter_value *now, const struct counter_value *last)
{
	uint64_t running = now->running_ns - last->running_ns;
	double value = (double)(now->value - last->value);
	if (last->enabled_ns == 0)
		return now->scaled;
	return running ? value * (double)(now->enabled_ns - last->enabled_ns) / (double)running
		       : value;
}

/* What each event counted since `last`, to be held against each other. */
static void fill_counts(const struct stat_job *j, struct plausible_count *ret_counts)
{
	for (int e = 0; e < j->counter->events.n_events; e++) {
		const struct counter_value *now = &j->counter->value[e], *last = &j->last[e];
		uint64_t running = now->running_ns - last->running_ns;
		bool counted = !now->error && running > 0;
		ret_counts[e] = (struct plausible_count){
			.event = j->counter->events.event[e].name,
			.count = counted ? scaled_since(now, last) : -1,
			.ns = (double)(now->enabled_ns - last->enabled_ns),
			.is_scaled = running < now->enabled_ns - last->enabled_ns,
		};
	}
}

/* One event's row: what it counted since `last`. */
static int send_value(struct stat_job *j, const struct answer *answer,
	const struct plausible_count *counts, int e)
{
	char doubt[PLAUSIBLE_TEXT_BYTES];
	const struct counter_value *now = &j->counter->value[e], *last = &j->last[e];
	struct answer_value v[N_COLUMNS] = {
		{.kind = ANSWER_TEXT, .text = j->counter->events.event[e].name}};
	uint64_t value = now->value - last->value;
	uint64_t enabled = now->enabled_ns - last->enabled_ns;
	uint64_t running = now->running_ns - last->running_ns;
	if (now->error) {
		v[6] = (struct answer_value){.kind = ANSWER_TEXT,
			.text = refusal_explain(
				&j->counter->events.event[e], now->error, false, &j->machine)
					.says};
	} else if (running == 0 && enabled > 0) {
		v[6] = (struct answer_value){
			.kind = ANSWER_TEXT, .text = "it opened but never got a counter"};
	} else if (plausible_doubt(counts, (size_t)j->counter->events.n_events, (size_t)e, doubt)) {
		v[6] = (struct answer_value){.kind = ANSWER_TEXT, .text = doubt};
	} else {
		v[1] = integer(value);
		v[2] = real(scaled_since(now, last));
		v[3] = integer(enabled);
		v[4] = integer(running);
		v[5] = real(enabled ? (double)running / (double)enabled : 1.0);
	}
	return answer->row(answer->userdata, v, N_COLUMNS);
}

/* Why a metric has no value, as a sentence. */
static void say_without_value(
	const struct planned_metric *m, int result, const char *missing, char says[256])
{
	if (m->fate == PLAN_IMPOSSIBLE)
		snprintf(says, 256, "%s", m->because);
	else if (result == EXPRESSION_MISSING)
		snprintf(says, 256, "%s was not counted", missing);
	else
		snprintf(says, 256, "nothing to divide by: a count in it is 0");
}

/* The part of the time in which a metric's events were counted, the least of them. */
static double metric_running(const struct stat_job *j, size_t metric)
{
	const struct planned_metric *m = metric_plan_metric(j->metrics, metric);
	double least = 1;
	for (int e = j->first_of_metrics; e < j->counter->events.n_events; e++) {
		const struct counter_value *now = &j->counter->value[e], *last = &j->last[e];
		uint64_t enabled = now->enabled_ns - last->enabled_ns;
		uint64_t running = now->running_ns - last->running_ns;
		size_t position = (size_t)(e - j->first_of_metrics);
		if (enabled && metric_plan_needs(j->metrics, m, position))
			least = fmin(least, (double)running / (double)enabled);
	}
	return least;
}

/* A metric's row. `counts` are of its plan's events. */
static int send_metric(
	struct stat_job *j, const struct answer *answer, const double *counts, size_t i)
{
	const struct planned_metric *m = metric_plan_metric(j->metrics, i);
	struct answer_value v[N_COLUMNS] = {{.kind = ANSWER_TEXT, .text = m->metric->name}};
	const char *missing = "";
	char says[256];
	double value;
	int result = m->fate == PLAN_IMPOSSIBLE
			     ? EXPRESSION_MISSING
			     : metric_plan_value(j->metrics, i, counts, &value, &missing);
	if (result == 0) {
		v[2] = real(value);
		v[5] = real(metric_running(j, i));
	} else {
		say_without_value(m, result, missing, says);
		v[6] = (struct answer_value){.kind = ANSWER_TEXT, .text = says};
	}
	v[7] = (struct answer_value){.kind = ANSWER_TEXT, .text = m->metric->unit};
	v[8] = (struct answer_value){.kind = ANSWER_TEXT, .text = m->metric->text};
	return answer->row(answer->userdata, v, N_COLUMNS);
}

static int send_metrics(
	struct stat_job *j, const struct answer *answer, const struct plausible_count *counts)
{
	double count[EVENTS_MAX];
	char doubt[PLAUSIBLE_TEXT_BYTES];
	const size_t n = (size_t)j->counter->events.n_events;
	int r = 0;
	for (size_t e = (size_t)j->first_of_metrics; e < n; e++) {
		bool counted = counts[e].count >= 0 && !plausible_doubt(counts, n, e, doubt);
		count[e - (size_t)j->first_of_metrics] = counted ? counts[e].count : NAN;
	}
	for (size_t i = 0; i < metric_plan_n_metrics(j->metrics) && r == 0; i++)
		r = send_metric(j, answer, count, i);
	return r;
}

static int send_values(struct stat_job *j, struct request *q)
{
	int r = counter_read(j->counter);
	if (r < 0)
		return r;
	struct plausible_count counts[EVENTS_MAX];
	fill_counts(j, counts);
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	r = answer.columns(answer.userdata, columns, N_COLUMNS);
	for (int e = 0; e < j->counter->events.n_events && r == 0; e++)
		r = send_value(j, &answer, counts, e);
	if (r == 0 && j->metrics)
		r = send_metrics(j, &answer, counts);
	int ended = row_stream_end(&stream);
	memcpy(j->last, j->counter->value, (size_t)j->counter->events.n_events * sizeof(*j->last));
	return r != 0 ? r : ended;
}

/* Counters took turns: say how long the event that had the least of them was counted. False if there
 * is nothing to say. */
static bool say_shared(const struct counter *c, char *text, size_t n)
{
	char part[UNIT_TEXT_BYTES];
	double least;
	int e = counter_scarcest(c, &least);
	if (e < 0 || !unit_part_text(least, part))
		return false;
	snprintf(text, n,
		"counts are scaled: another profiler uses counters, or you asked for more events "
		"than there are counters; %s was counted %s of the time",
		c->events.event[e].name, part);
	return true;
}

/* What the counts mean less than they seem to. */
static int send_notes(struct stat_job *j, struct request *q)
{
	const struct counter *c = j->counter;
	struct answer_provenance p = {.event = ""};
	char shared[256];
	_cleanup_(freep) struct annotation *note = calloc(ANNOTATIONS_MAX, sizeof(*note));
	if (!note)
		return -ENOMEM;
	const struct annotate_question about = {
		.cores = c->cores,
		.harts = j->machine.online,
		.events = &c->events,
		.user_only = c->user_only,
		.unexcluded = c->unexcluded,
		.by_raw = c->by_raw,
	};
	size_t n = annotate(&about, note);
	for (size_t i = 0; i < n && p.n_notes < QUERY_NOTES_MAX - 1; i++)
		if (note[i].event < 0 || c->value[note[i].event].error == 0)
			p.note[p.n_notes++] = note[i].says;
	if (say_shared(c, shared, sizeof(shared)))
		p.note[p.n_notes++] = shared;
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	int r = answer.provenance(answer.userdata, &p);
	int ended = row_stream_end(&stream);
	return r != 0 ? r : ended;
}

static int stat_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct stat_job *j = (struct stat_job *)job;
	if (!j->interval_ns || now_ns < j->next_ns)
		return 0;
	j->next_ns += (now_ns - j->next_ns) / j->interval_ns * j->interval_ns + j->interval_ns;
	/* A client that does not read gets longer intervals. */
	if (!request_has_room(q))
		return 0;
	int r = send_values(j, q);
	return r < 0 ? r : 0;
}

static int stat_finish(struct job *job, struct request *q)
{
	struct stat_job *j = (struct stat_job *)job;
	int r = send_values(j, q);
	if (r == 0)
		r = send_notes(j, q);
	if (r < 0)
		return r;
	r = request_done(q, 0);
	return r < 0 ? r : JOB_DONE;
}

static const struct job_kind stat_kind = {
	.deadline_ns = stat_deadline_ns,
	.dispatch = stat_dispatch,
	.finish = stat_finish,
	.free = stat_free,
};

/* Charge the counter's descriptors to the peer's user. 0; positive after a refusal; -errno. */
static int hold_descriptors(struct stat_job *j, struct request *q)
{
	size_t n = counter_n_fds(j->counter);
	int r = request_take(q, USER_DESCRIPTORS, n);
	if (r != 0)
		return r;
	j->user = q->peer->user;
	j->n_fds = n;
	return 0;
}

static int fail_start(struct request *q, int outcome, const struct event_error *error)
{
	if (outcome == COUNTER_FULL && q->peer->user)
		return request_refuse_limit(q, USER_DESCRIPTORS);
	if (outcome == COUNTER_GONE)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Find its pid with ps.", "%s",
			*error->text ? error->text : "there is no such process");
	if (outcome == COUNTER_REFUSED)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			"mperfctl doctor says what this machine can do.", "%s", error->text);
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_INTERNAL, "",
		"counting could not be started: %s", strerror(-outcome));
}

/* Plan the metrics that were asked for, and add their events. 0; positive after a refusal; -errno. */
static int add_metrics(struct stat_job *j, struct request *q, const Mperf__StatRequest *m,
	struct event_list *events)
{
	struct event_error error = {""};
	const struct cores *cores = q->peer->options->cores;
	if (m->n_metric == 0)
		return 0;
	int r = metric_plan_new(
		&kernel_real, &j->machine, cores, m->metric, m->n_metric, &j->metrics, &error);
	if (r < 0)
		return r;
	if (r > 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			       "`mperfctl list metrics` shows those of this machine's cores.", "%s",
			       error.text)
			       ?: 1;
	j->first_of_metrics = events->n_events;
	for (size_t pass = 0; metric_plan_events(j->metrics, pass) && r == 0; pass++) {
		char *text = (char *)metric_plan_events(j->metrics, pass);
		r = request_parse_events(q, &text, 1, events);
	}
	return r;
}

/* None of the metrics can be counted: say why, by the first. */
static int fail_metrics(struct request *q, const struct metric_plan *metrics)
{
	const struct planned_metric *m = metric_plan_metric(metrics, 0);
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
		       "mperfctl doctor says what this machine can do.",
		       "no event of %s can be counted: %s", m->metric->name,
		       m->because ? m->because : "it needs none")
		       ?: 1;
}

/* Open and start the counters of j. 0; positive after the peer was told why not; -errno. */
static int stat_open(struct stat_job *j, struct request *q, const Mperf__StatRequest *m)
{
	_cleanup_(freep) struct event_list *events = calloc(1, sizeof(*events));
	if (!events)
		return -ENOMEM;
	_cleanup_(held_pids_clear) struct held_pids held = {.n = 0};
	bool all = m->target->all;
	size_t n_pids = all ? 0 : request_drop_twins(m->target->pid, m->target->n_pid);
	int r = request_parse_events(q, m->event, m->n_event, events);
	if (r == 0)
		r = request_read_machine(q, &j->machine);
	if (r == 0)
		r = add_metrics(j, q, m, events);
	if (r == 0 && events->n_events == 0 && m->n_metric > 0)
		r = fail_metrics(q, j->metrics);
	if (r == 0 && all && !q->peer->sees_all)
		r = request_refuse_group(q, "you may not count the whole system") ?: 1;
	if (r == 0)
		r = request_hold_pids(q, m->target->pid, n_pids, j->machine.may_see_all, &held);
	if (r != 0)
		return r;

	const uint64_t room = user_room(q->peer->user, USER_DESCRIPTORS);
	struct counter_options o = {
		.events = events->n_events ? events : NULL,
		.pids = all ? NULL : m->target->pid,
		.n_pids = n_pids,
		.user_only = m->user_only || !j->machine.may_see_kernel,
		.never_kernel = !q->peer->sees_all,
		.cores = q->peer->options->cores,
		.fds_max = room ? room : 1, /* 0 means no limit; charging it fails below */
	};
	struct event_error error = {""};
	r = counter_new(&kernel_real, &j->machine, &o, &j->counter, &error);
	if (r != 0) {
		r = fail_start(q, r, &error);
		return r < 0 ? r : 1;
	}
	r = hold_descriptors(j, q);
	if (r != 0)
		return r;
	/* The kernel checks our rights, not the peer's, and a set-user-ID program may have started
	 * since the first check. One that starts later loses its counters: Source: fs/exec.c of
	 * Linux 6.12, begin_new_exec, perf_event_exit_task. They count from here on. */
	r = request_recheck_pids(q, &held, j->machine.may_see_all);
	if (r != 0)
		return r;
	j->last = calloc((size_t)j->counter->events.n_events, sizeof(*j->last));
	return j->last ? counter_start(j->counter) : -ENOMEM;
}

int control_stat(struct request *q, const Mperf__Request *request)
{
	const Mperf__StatRequest *m = request->stat;
	if (!m->target || (!m->target->all && m->target->n_pid == 0))
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Give -a, --pid or a command.", "nothing to count was named");
	struct stat_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->job.kind = &stat_kind;

	int r = stat_open(j, q, m);
	if (r != 0) {
		stat_free(&j->job);
		return r < 0 ? r : 0;
	}
	j->interval_ns = (uint64_t)m->interval_ms * 1000000u;
	j->next_ns = kernel_real.now_ns(NULL) + j->interval_ns;
	q->job = &j->job;
	r = request_ready(q, j->counter->user_only ? "user space only" : "");
	return r < 0 ? r : 0;
}
