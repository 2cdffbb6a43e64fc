/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * stat: counters that are read at intervals, or once at the end; topdown is a stat of a tree of metrics.
 * The client measures the times of the command itself (elapsed, user, sys), since it waited for it.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/budget/loop_latency.h"
#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/control/stat_parts.h"
#include "daemon/control/topdown.h"
#include "daemon/sampler/annotate.h"
#include "proto/base/memory.h"
#include "proto/syntax/unit.h"

struct stat_job {
	struct job job;
	struct stat_parts parts;
	struct platform_db *data; /* the database of its formulas, kept across a reload */
	struct machine machine;
	bool is_tree;
	uint64_t interval_ns, next_ns;
	/* While its counters are opened, in slices; NULL: they are open, and count. */
	Mperf__StatRequest *request;
	struct held_pids held;
	uint64_t n_held;   /* descriptors charged for them */
	bool is_finishing; /* the client wants its results, as soon as there are any */
};

/* Note that the stat opens no more counters. */
static void end_opening(struct stat_job *j)
{
	held_pids_clear(&j->held);
	user_give(j->parts.user, USER_DESCRIPTORS, j->n_held);
	j->n_held = 0;
	if (j->request)
		mperf__stat_request__free_unpacked(j->request, NULL);
	j->request = NULL;
}

static void stat_free(struct job *job)
{
	struct stat_job *j = (struct stat_job *)job;
	end_opening(j);
	stat_parts_clear(&j->parts);
	platform_db_free(j->data);
	free(j);
}

static uint64_t stat_deadline_ns(struct job *job, const struct request *q)
{
	struct stat_job *j = (struct stat_job *)job;
	(void)q;
	if (j->request)
		return 0;
	uint64_t reading_ns = stat_parts_due_ns(&j->parts);
	return j->interval_ns && j->next_ns < reading_ns ? j->next_ns : reading_ns;
}

/* --- answers ---------------------------------------------------------------------------------- */

enum {
	STAT_UNIT = N_STAT_COLUMNS, /* of a metric; the count is its value */
	STAT_FORMULA,
	STAT_ERROR, /* half of the 95 % interval that scaling causes, in the row's unit */
	STAT_PASSES,
	STAT_HARTS,
	N_COLUMNS
};
static const struct answer_column columns[N_COLUMNS] = {
	STAT_COLUMNS,
	{"unit", "unit", MPERF__UNIT__UNIT_NONE},
	{"formula", "formula", MPERF__UNIT__UNIT_NONE},
	{"error", "error", MPERF__UNIT__UNIT_NONE},
	{"passes", "passes", MPERF__UNIT__UNIT_NONE},
	{"harts", "harts", MPERF__UNIT__UNIT_NONE},
};

/* Passes are those of metrics; harts are named where there is more than one set of them. */
static size_t n_columns(const struct stat_job *j)
{
	return j->parts.is_divided        ? N_COLUMNS
	       : j->parts.part[0].metrics ? STAT_HARTS
					  : STAT_PASSES;
}

static int send_event(const struct stat_job *j, const struct stat_part *part,
	const struct answer *answer, const struct counts *counts, int e)
{
	char reason[COUNTS_REASON_BYTES];
	struct answer_value v[N_COLUMNS] = {{.kind = ANSWER_ABSENT}};
	stat_row_fill(counts, e, reason, v);
	double error = counts_error(counts, e);
	if (v[STAT_COLUMN_REASON].kind == ANSWER_ABSENT && isfinite(error))
		v[STAT_ERROR] = answer_real(error);
	v[STAT_HARTS] = answer_text(part->says);
	return answer->row(answer->userdata, v, n_columns(j));
}

static int send_metric(const struct stat_job *j, const struct stat_part *part,
	const struct answer *answer, size_t i, const struct metric_value *value)
{
	const struct platform_metric *m = metric_plan_metric(part->metrics->plan, i)->metric;
	struct answer_value v[N_COLUMNS] = {answer_text(m->name)};
	char passes[METRIC_PASSES_BYTES];
	live_metrics_passes(part->metrics, i, passes);
	if (isfinite(value->value)) {
		v[2] = answer_real(value->value);
		v[5] = answer_real(value->running);
		if (isfinite(value->error))
			v[STAT_ERROR] = answer_real(value->error);
	} else {
		v[STAT_COLUMN_REASON] = answer_text(value->reason);
	}
	v[STAT_UNIT] = answer_text(m->unit);
	v[STAT_FORMULA] = answer_text(m->text);
	if (*passes)
		v[STAT_PASSES] = answer_text(passes);
	v[STAT_HARTS] = answer_text(part->says);
	return answer->row(answer->userdata, v, n_columns(j));
}

static int send_part(
	const struct stat_job *j, const struct stat_part *part, const struct answer *answer)
{
	struct counts counts;
	struct metric_values values = {NULL, NULL};
	stat_part_counts(part, &j->machine, &counts);
	int r = part->metrics ? live_metrics_values(part->metrics, &counts, &values) : 0;
	for (int e = 0; e < part->counter->events.n_events && r == 0; e++)
		r = send_event(j, part, answer, &counts, e);
	size_t n = part->metrics ? metric_plan_n_metrics(part->metrics->plan) : 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = send_metric(j, part, answer, i, &values.metric[i]);
	metric_values_clear(&values);
	return r;
}

static int send_table(const struct stat_job *j, const struct answer *answer)
{
	int r = answer->columns(answer->userdata, columns, n_columns(j));
	for (size_t i = 0; i < j->parts.n && r == 0; i++)
		r = send_part(j, &j->parts.part[i], answer);
	return r;
}

/* Inputs of one part's tree. */
struct counted_tree {
	struct counts counts;
	struct metric_values values;
	struct topdown_counted counted;
};

static int count_tree(const struct stat_job *j, const struct stat_part *part,
	struct counted_tree *c, struct topdown_tree *ret_tree)
{
	stat_part_counts(part, &j->machine, &c->counts);
	int r = live_metrics_values(part->metrics, &c->counts, &c->values);
	c->counted = (struct topdown_counted){.metrics = part->metrics,
		.counts = &c->counts,
		.values = &c->values,
		.core = part->platform->title,
		.harts = part->says};
	if (r == 0)
		*ret_tree = topdown_of_counted(&c->counted);
	return r;
}

static int send_trees(
	const struct stat_job *j, struct row_stream *stream, const struct answer *answer)
{
	size_t n = j->parts.n;
	int r = 0;
	_cleanup_(freep) struct counted_tree *counted = calloc(n, sizeof(*counted));
	_cleanup_(freep) struct topdown_tree *tree = calloc(n, sizeof(*tree));
	if (!counted || !tree)
		return -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++)
		r = count_tree(j, &j->parts.part[i], &counted[i], &tree[i]);
	if (r == 0)
		r = topdown_send(tree, n, stream, answer);
	for (size_t i = 0; i < n; i++)
		metric_values_clear(&counted[i].values);
	return r;
}

static int send_values(struct stat_job *j, struct request *q)
{
	int r = stat_parts_read(&j->parts);
	if (r < 0)
		return r;
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	r = j->is_tree ? send_trees(j, &stream, &answer) : send_table(j, &answer);
	int ended = row_stream_end(&stream);
	stat_parts_restart(&j->parts);
	return r != 0 ? r : ended;
}

/* --- notes ------------------------------------------------------------------------------------ */

/* Describe the rotation of counters: for how long the least counted event was counted. False: no
 * note is needed. */
static bool say_shared(const struct stat_parts *parts, char *text, size_t n)
{
	char part[UNIT_TEXT_BYTES];
	const char *name = NULL;
	double least = 1;
	for (size_t i = 0; i < parts->n; i++) {
		const struct counter *c = parts->part[i].counter;
		double running;
		int e = counter_scarcest(c, &running);
		if (e < 0 || (name && running >= least))
			continue;
		name = c->events.event[e].name;
		least = running;
	}
	if (!name || !unit_part_text(least, part))
		return false;
	snprintf(text, n,
		"counts are scaled: another profiler uses counters, or you requested more events "
		"than there are counters; %s was counted %s of the time",
		name, part);
	return true;
}

static void add_note(struct answer_provenance *p, const char *says)
{
	for (size_t i = 0; i < p->n_notes; i++)
		if (strcmp(p->note[i], says) == 0)
			return;
	if (p->n_notes < ANSWER_NOTES_MAX)
		p->note[p->n_notes++] = says;
}

/* The caveats of one part; `note` holds their texts. */
static void annotate_part(
	const struct stat_part *part, struct annotation *note, struct answer_provenance *p)
{
	const struct counter *c = part->counter;
	const struct annotate_question about = {
		.cores = c->terms.cores,
		.harts = part->harts,
		.events = &c->events,
		.user_only = c->terms.user_only,
		.unexcluded = c->unexcluded,
		.by_raw = c->by_raw,
	};
	size_t n = annotate(&about, note);
	for (size_t i = 0; i < n; i++)
		if (note[i].event < 0 || c->value[note[i].event].error == 0)
			add_note(p, note[i].says);
	if (part->metrics && metric_plan_condition(part->metrics->plan))
		add_note(p, metric_plan_condition(part->metrics->plan));
	for (size_t i = 0; part->says_plan && part->says_plan->line[i]; i++)
		add_note(p, part->says_plan->line[i]);
}

/* Of harts that are alike the first is enough. */
static bool is_annotated(const struct stat_parts *p, size_t part)
{
	for (size_t i = 0; i < part; i++)
		if (p->part[i].platform == p->part[part].platform)
			return true;
	return false;
}

/* Caveats of the counts. */
static int send_notes(struct stat_job *j, struct request *q)
{
	const struct stat_parts *parts = &j->parts;
	struct answer_provenance p = {.event = ""};
	char shared[256];
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	_cleanup_(freep) struct annotation *note =
		calloc(parts->n * ANNOTATIONS_MAX, sizeof(*note));
	if (!note)
		return -ENOMEM;
	if (*parts->left_out)
		add_note(&p, parts->left_out);
	/* For a tree, the client shows this for all passes. */
	if (!j->is_tree && say_shared(parts, shared, sizeof(shared)))
		add_note(&p, shared);
	for (size_t i = 0; i < parts->n; i++)
		if (!is_annotated(parts, i))
			annotate_part(&parts->part[i], note + i * ANNOTATIONS_MAX, &p);
	int r = answer.provenance(answer.userdata, &p);
	int ended = row_stream_end(&stream);
	return r != 0 ? r : ended;
}

/* --- the start -------------------------------------------------------------------------------- */

static struct stat_asked asked_of(struct stat_job *j, struct request *q)
{
	const Mperf__Target *t = j->request->target;
	return (struct stat_asked){.q = q,
		.machine = &j->machine,
		.request = j->request,
		.is_tree = j->is_tree,
		.pids = t->all ? NULL : t->pid,
		.n_pids = t->all ? 0 : t->n_pid};
}

/* Begin to count, once all is open. 0; positive after a refusal; -errno. */
static int begin_counting(struct stat_job *j, struct request *q)
{
	/* The kernel checks our rights, not the peer's, and a set-user-ID program may have started
	 * since the first check. A set-user-ID program that starts later loses its counters:
	 * Source: fs/exec.c of Linux 6.12, begin_new_exec, perf_event_exit_task. They count from
	 * here on. */
	int r = request_recheck_pids(q, &j->held, j->machine.may_see_all);
	if (r == 0)
		r = stat_parts_start(&j->parts);
	if (r != 0)
		return r;
	j->next_ns = kernel_real.now_ns(NULL) + j->interval_ns;
	end_opening(j);
	r = request_ready(q, j->parts.part[0].counter->terms.user_only ? "user space only" : "");
	return r < 0 ? r : 0;
}

/* Open counters for a slice of time. As begin_counting; STAT_PARTS_MORE: others follow. */
static int open_some(struct stat_job *j, struct request *q)
{
	const struct stat_asked asked = asked_of(j, q);
	const struct slice slice = slice_of_waits();
	int r;
	do
		r = stat_parts_open(&asked, &j->parts);
	while (r == STAT_PARTS_MORE && !slice_of_waits_is_over(&slice));
	user_spend(q->peer->user, USER_LOOP, slice_waited_ns(&slice));
	if (r == 0 && slice_of_waits_is_over(&slice))
		return STAT_PARTS_MORE; /* enabling thousands has a round of its own */
	return r == 0 ? begin_counting(j, q) : r;
}

/* Hold the processes to count, and begin to open counters. Results as of open_some. */
static int stat_begin(struct stat_job *j, struct request *q)
{
	Mperf__Target *t = j->request->target;
	int r = request_read_machine(q, &j->machine);
	j->data = cores_database(q->peer->options->cores);
	t->n_pid = t->all ? 0 : request_drop_twins(t->pid, t->n_pid);
	if (r == 0 && t->all && !q->peer->sees_all)
		r = request_refuse_group(q, "you may not count the whole system") ?: 1;
	if (r == 0)
		r = request_hold_pids(q, t->pid, t->n_pid, j->machine.may_see_all, &j->held);
	const struct stat_asked asked = asked_of(j, q);
	if (r == 0)
		r = stat_parts_divide(&asked, &j->parts);
	if (r == 0 && (r = request_take(q, USER_DESCRIPTORS, j->held.n)) == 0)
		j->n_held = j->held.n;
	return r == 0 ? open_some(j, q) : r;
}

/* --- the job ---------------------------------------------------------------------------------- */

static int stat_finish(struct job *job, struct request *q)
{
	struct stat_job *j = (struct stat_job *)job;
	j->is_finishing = true;
	if (j->request)
		return 0;
	int r = send_values(j, q);
	if (r == 0)
		r = send_notes(j, q);
	if (r < 0)
		return r;
	r = request_done(q, 0);
	return r < 0 ? r : JOB_DONE;
}

static int stat_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct stat_job *j = (struct stat_job *)job;
	if (j->request) {
		int r = open_some(j, q);
		if (r == 0 && j->is_finishing)
			return stat_finish(job, q);
		return r == STAT_PARTS_MORE ? 0 : r > 0 ? JOB_DONE : r;
	}
	if (now_ns >= stat_parts_due_ns(&j->parts)) {
		int r = stat_parts_read(&j->parts);
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

static const struct job_kind stat_kind = {
	.deadline_ns = stat_deadline_ns,
	.dispatch = stat_dispatch,
	.finish = stat_finish,
	.free = stat_free,
};

static int start(struct request *q, const Mperf__StatRequest *m, bool is_tree)
{
	if (!m->target || (!m->target->all && m->target->n_pid == 0))
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Give -a, --pid or a command.", "nothing to count was named");
	struct stat_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->job.kind = &stat_kind;
	j->is_tree = is_tree;
	j->interval_ns = (uint64_t)m->interval_ms * 1000000u;

	j->request = request_copy(&m->base);
	int r = j->request ? stat_begin(j, q) : -ENOMEM;
	if (r != 0 && r != STAT_PARTS_MORE) {
		stat_free(&j->job);
		return r < 0 ? r : 0;
	}
	q->job = &j->job;
	return 0;
}

int control_stat(struct request *q, const Mperf__Request *request)
{
	return start(q, request->stat, false);
}

int control_topdown(struct request *q, const Mperf__Request *request)
{
	const Mperf__StatRequest *m = request->topdown;
	return *m->path || m->filter ? topdown_stored(q, request) : start(q, m, true);
}
