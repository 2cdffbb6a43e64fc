/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * stat: counters that are read at intervals, or once at the end; topdown is a stat of a tree of metrics.
 * Times of the command itself (elapsed, user, sys) are the client's, who waited for it.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/control/stat_metrics.h"
#include "daemon/control/topdown.h"
#include "daemon/pmu/annotate.h"
#include "daemon/pmu/ladder.h"
#include "daemon/pmu/plan_says.h"
#include "proto/memory.h"
#include "proto/unit.h"

/* Counters are read so often at least, since the kernel notices that one has wrapped when it is read, where no
 * interrupt says so. The narrowest that we know have 40 bits (U74), which 10 events in each nanosecond fill
 * in 110 s. Source: SiFive U74 manual, hpmcounters; riscv_pmu_event_update() of Linux 6.12. */
#define LOOK_NS UINT64_C(60000000000)

struct stat_job {
	struct job job;
	struct counter *counter;
	struct counter_value *last;   /* n_events, as of the last interval */
	struct stat_metrics *metrics; /* NULL: none was asked for */
	struct plan_says *says;       /* NULL: nobody asked for the plan */
	struct machine machine;
	uint64_t interval_ns, next_ns, look_ns;
	struct user *user; /* the user charged for the descriptors of `counter`: */
	size_t n_fds;
};

static void stat_free(struct job *job)
{
	struct stat_job *j = (struct stat_job *)job;
	counter_free(j->counter);
	stat_metrics_free(j->metrics);
	plan_says_free(j->says);
	user_give(j->user, USER_DESCRIPTORS, j->n_fds);
	free(j->last);
	free(j);
}

static uint64_t stat_deadline_ns(struct job *job, const struct request *q)
{
	struct stat_job *j = (struct stat_job *)job;
	uint64_t reading_ns = j->metrics ? scatter_due_ns(j->metrics->scatter) : UINT64_MAX;
	(void)q;
	if (j->look_ns < reading_ns)
		reading_ns = j->look_ns;
	return j->interval_ns && j->next_ns < reading_ns ? j->next_ns : reading_ns;
}

/* Read the counters; if metrics follow from them, also for their errors. */
static int read_counters(struct stat_job *j)
{
	uint64_t before_ns = kernel_real.now_ns(NULL);
	int r = counter_read(j->counter);
	uint64_t now_ns = kernel_real.now_ns(NULL);
	j->look_ns = now_ns + LOOK_NS;
	if (r == 0 && j->metrics)
		stat_metrics_read(j->metrics, j->counter, now_ns, now_ns - before_ns);
	return r;
}

/* --- answers ---------------------------------------------------------------------------------- */

static const struct answer_column columns[] = {
	STAT_COLUMNS,
	{"unit", "unit", MPERF__UNIT__UNIT_NONE}, /* of a metric; the count is its value */
	{"formula", "formula", MPERF__UNIT__UNIT_NONE},
	/* of metrics, if there are any; half of the 95 % interval, in the metric's unit */
	{"error", "error", MPERF__UNIT__UNIT_NONE},
	{"passes", "passes", MPERF__UNIT__UNIT_NONE},
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))
#define N_COLUMNS_OF_METRICS 2 /* the last ones */

static size_t n_columns(const struct stat_job *j)
{
	return j->metrics ? N_COLUMNS : N_COLUMNS - N_COLUMNS_OF_METRICS;
}

static int send_event(const struct stat_job *j, const struct answer *answer,
	const struct stat_counts *counts, int e)
{
	char reason[STAT_REASON_BYTES];
	struct answer_value v[N_COLUMNS] = {{.kind = ANSWER_ABSENT}};
	stat_counts_row(counts, e, reason, v);
	return answer->row(answer->userdata, v, n_columns(j));
}

static int send_metric(const struct stat_job *j, const struct answer *answer, size_t i,
	const struct metric_value *value)
{
	const struct platform_metric *m = metric_plan_metric(j->metrics->plan, i)->metric;
	struct answer_value v[N_COLUMNS] = {answer_text(m->name)};
	char passes[METRIC_PASSES_BYTES];
	stat_metrics_passes(j->metrics, i, passes);
	if (isfinite(value->value)) {
		v[2] = answer_real(value->value);
		v[5] = answer_real(value->running);
		if (isfinite(value->error))
			v[N_STAT_COLUMNS + 2] = answer_real(value->error);
	} else {
		v[STAT_COLUMN_REASON] = answer_text(value->reason);
	}
	v[N_STAT_COLUMNS] = answer_text(m->unit);
	v[N_STAT_COLUMNS + 1] = answer_text(m->text);
	if (*passes)
		v[N_STAT_COLUMNS + 3] = answer_text(passes);
	return answer->row(answer->userdata, v, N_COLUMNS);
}

static int send_table(const struct stat_job *j, const struct stat_counts *counts,
	const struct metric_values *values, const struct answer *answer)
{
	int r = answer->columns(answer->userdata, columns, n_columns(j));
	for (int e = 0; e < j->counter->events.n_events && r == 0; e++)
		r = send_event(j, answer, counts, e);
	size_t n = j->metrics ? metric_plan_n_metrics(j->metrics->plan) : 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = send_metric(j, answer, i, &values->metric[i]);
	return r;
}

static int send_tree(const struct stat_job *j, const struct stat_counts *counts,
	const struct metric_values *values, struct row_stream *stream, const struct answer *answer)
{
	const struct platform *p = metric_plan_platform(j->counter->cores);
	int r = row_stream_table(stream, "core");
	if (r == 0)
		r = topdown_send_core(j->metrics, p ? p->title : "", answer);
	if (r == 0)
		r = row_stream_table(stream, "node");
	if (r == 0)
		r = topdown_send_nodes(j->metrics, values, answer);
	if (r == 0)
		r = row_stream_table(stream, "event");
	return r == 0 ? topdown_send_events(j->metrics, counts, answer) : r;
}

static int send_values(struct stat_job *j, struct request *q)
{
	int r = read_counters(j);
	if (r < 0)
		return r;
	struct stat_counts counts;
	struct metric_values values = {NULL, NULL};
	stat_counts_take(&counts, &j->machine, j->counter, j->last);
	if (j->metrics)
		r = stat_metrics_values(j->metrics, &counts, &values);
	if (r < 0)
		return r;
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	r = j->metrics && j->metrics->tree ? send_tree(j, &counts, &values, &stream, &answer)
					   : send_table(j, &counts, &values, &answer);
	int ended = row_stream_end(&stream);
	metric_values_clear(&values);
	memcpy(j->last, j->counter->value, (size_t)j->counter->events.n_events * sizeof(*j->last));
	if (j->metrics)
		scatter_restart(j->metrics->scatter);
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
	for (size_t i = 0; i < n && p.n_notes < QUERY_NOTES_MAX - 2; i++)
		if (note[i].event < 0 || c->value[note[i].event].error == 0)
			p.note[p.n_notes++] = note[i].says;
	/* Who shows a tree says it of all passes. */
	if (!(j->metrics && j->metrics->tree) && say_shared(c, shared, sizeof(shared)))
		p.note[p.n_notes++] = shared;
	if (j->metrics && metric_plan_condition(j->metrics->plan))
		p.note[p.n_notes++] = metric_plan_condition(j->metrics->plan);
	for (size_t i = 0; j->says && j->says->line[i] && p.n_notes < QUERY_NOTES_MAX; i++)
		p.note[p.n_notes++] = j->says->line[i];
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	int r = answer.provenance(answer.userdata, &p);
	int ended = row_stream_end(&stream);
	return r != 0 ? r : ended;
}

static int stat_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct stat_job *j = (struct stat_job *)job;
	if (now_ns >= j->look_ns || (j->metrics && now_ns >= scatter_due_ns(j->metrics->scatter))) {
		int r = read_counters(j);
		if (r < 0)
			return r;
	}
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

/* --- the start -------------------------------------------------------------------------------- */

/* What a person without a tree can do: with counters, and without. */
#define STILL_COUNTS                                                                               \
	"`mperfctl stat -M General` still counts ratios, and `mperfctl hotspots` shows where the " \
	"time goes."
#define STILL_SAMPLES                                                                              \
	"`mperfctl hotspots` and `mperfctl flamegraph` still show where the time goes; `mperfctl " \
	"doctor` says why."

/* 0: cycles count here; else as event_probe_for. */
static int try_cycles(const struct stat_job *j, const struct cores *cores)
{
	struct event_list cycles = {.n_events = 0};
	struct event_error error;
	return event_parse(&kernel_real, "cycles", &cycles, &error) == 0
		       ? event_probe_for(&kernel_real, &j->machine, cores, &cycles.event[0])
		       : -ENOENT;
}

/* There is no tree: say so, and what there is. A machine may have no counters, or not let us use them. */
static int refuse_tree(const struct stat_job *j, struct request *q, const char *because)
{
	int r = try_cycles(j, q->peer->options->cores);
	if (r == PROBE_ZERO || r == -ENOENT || r == -EOPNOTSUPP || r == -ENODEV)
		because = "there are no hardware counters here to count a top-down tree with";
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
		       r == 0 ? STILL_COUNTS : STILL_SAMPLES, "%s", because)
		       ?: 1;
}

/* Plan the metrics that were asked for, and add their events. 0; positive after a refusal; -errno. */
static int add_metrics(struct stat_job *j, struct request *q, const Mperf__StatRequest *m,
	bool is_tree, struct event_list *events)
{
	struct event_error error = {""};
	const struct metric_wish wish = {m->metric, m->n_metric, is_tree, (int)m->levels};
	if (m->n_metric == 0 && !is_tree)
		return 0;
	int r = stat_metrics_new(&kernel_real, &j->machine, q->peer->options->cores, &wish, events,
		&j->metrics, &error);
	if (r <= 0)
		return r;
	if (r == METRIC_NO_TREE || (is_tree && (r == METRIC_CORES_DIFFER || r == METRIC_NO_EVENT)))
		return refuse_tree(j, q, error.text);
	if (r == METRIC_NO_EVENT)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			       "mperfctl doctor says what this machine can do.", "%s", error.text)
			       ?: 1;
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
		       r == METRIC_NO_LEVEL ? "Leave out -l for all of it."
					    : "`mperfctl list metrics` shows those of this "
					      "machine's cores.",
		       "%s", error.text)
		       ?: 1;
}

/* Open and start the counters of j. 0; positive after the peer was told why not; -errno. */
static int stat_open(
	struct stat_job *j, struct request *q, const Mperf__StatRequest *m, bool is_tree)
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
		r = add_metrics(j, q, m, is_tree, events);
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
	if (r == COUNTER_REFUSED && is_tree)
		return refuse_tree(j, q, error.text);
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
	if (m->explain)
		r = plan_says_new(&kernel_real, o.cores, &j->counter->events,
			j->metrics ? (size_t)j->metrics->first
				   : (size_t)j->counter->events.n_events,
			j->metrics ? j->metrics->plan : NULL, &j->says);
	if (r != 0)
		return r;
	j->last = calloc((size_t)j->counter->events.n_events, sizeof(*j->last));
	return j->last ? counter_start(j->counter) : -ENOMEM;
}

static int start(struct request *q, const Mperf__StatRequest *m, bool is_tree)
{
	if (!m->target || (!m->target->all && m->target->n_pid == 0))
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Give -a, --pid or a command.", "nothing to count was named");
	struct stat_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->job.kind = &stat_kind;

	int r = stat_open(j, q, m, is_tree);
	if (r != 0) {
		stat_free(&j->job);
		return r < 0 ? r : 0;
	}
	j->interval_ns = (uint64_t)m->interval_ms * 1000000u;
	j->next_ns = kernel_real.now_ns(NULL) + j->interval_ns;
	j->look_ns = kernel_real.now_ns(NULL) + LOOK_NS;
	q->job = &j->job;
	r = request_ready(q, j->counter->user_only ? "user space only" : "");
	return r < 0 ? r : 0;
}

int control_stat(struct request *q, const Mperf__Request *request)
{
	return start(q, request->stat, false);
}

int control_topdown(struct request *q, const Mperf__Request *request)
{
	return start(q, request->topdown, true);
}
