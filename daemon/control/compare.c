/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * diff and gate. Only a private daemon reads recordings, one in each round of the loop, so that the client can show
 * progress and cancel; then all are compared and the answer is sent. Runs of a service's store are compared by a
 * child (compare_runs.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/compare/answer.h"
#include "daemon/compare/values.h"
#include "daemon/control/compare_runs.h"
#include "daemon/control/peer.h"
#include "daemon/service/service.h"
#include "proto/base/clock.h"

static bool is_gate(const Mperf__Request *m)
{
	return m->body_case == MPERF__REQUEST__BODY_GATE;
}

static const Mperf__CompareRequest *asked_of(const Mperf__Request *m)
{
	return is_gate(m) ? m->gate : m->diff;
}

/* --- recordings ------------------------------------------------------------------------------- */

struct compare_job {
	struct job job;
	Mperf__Request *request; /* a copy */
	const Mperf__CompareRequest *asked;
	struct gather *gather;
	size_t n_read;
};

static void compare_free(struct job *job)
{
	struct compare_job *j = (struct compare_job *)job;
	if (j->request)
		mperf__request__free_unpacked(j->request, NULL);
	gather_free(j->gather);
	free(j);
}

static size_t n_files(const struct compare_job *j)
{
	return j->asked->n_baseline + j->asked->n_candidate;
}

/* The next file: 0, positive after a refusal, -errno. */
static int read_one(struct compare_job *j, struct request *q)
{
	const Mperf__CompareRequest *m = j->asked;
	const bool candidate = j->n_read >= m->n_baseline;
	const char *path =
		candidate ? m->candidate[j->n_read - m->n_baseline] : m->baseline[j->n_read];
	const struct query_filter filter = query_filter_of(q, m->filter);
	const struct query_metrics metrics = {q->peer->options->cores, m->metric, m->n_metric};
	const struct query_question question = {
		.inlined = m->inlined, .filter = &filter, .metrics = m->n_metric ? &metrics : NULL};
	struct query_error error = {"", "", 0};
	sqlite3 *db;

	int r = request_open_segment(q, path, &db);
	if (r != 0)
		return r;
	r = gather_run(j->gather, candidate, db, &question, &error);
	sqlite3_close(db);
	j->n_read++;
	if (r == GATHER_FULL)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT, COMPARE_TOO_MANY_REMEDY,
			"the recordings have more than %u rows, or values in them",
			GATHER_ROWS_MAX);
	else if (r == QUERY_FAILED)
		r = request_fail(q, error.kind, error.remedy, "%s: %s", path, error.text);
	else
		return r;
	return r < 0 ? r : 1;
}

static int tell_notes(const struct compare_job *j, const struct answer *to)
{
	char text[GATHER_VALUES_MAX + 1][200];
	struct answer_provenance p = {.event = "", .rung = "", .switches = ""};
	while (p.n_notes <= GATHER_VALUES_MAX &&
		compare_value_note(
			j->gather, n_files(j), p.n_notes, text[p.n_notes], sizeof(text[0]))) {
		p.note[p.n_notes] = text[p.n_notes];
		p.n_notes++;
	}
	return p.n_notes ? to->provenance(to->userdata, &p) : 0;
}

static int answer(struct compare_job *j, struct request *q)
{
	const Mperf__CompareRequest *m = j->asked;
	_cleanup_(freep) const char **name = calloc(n_files(j), sizeof(*name));
	struct query_error error = {"", "", 0};
	struct row_stream stream;
	const struct answer to = row_stream_answer(&stream, q);
	int status = 0;
	if (!name)
		return -ENOMEM;
	for (size_t i = 0; i < n_files(j); i++)
		name[i] = i < m->n_baseline ? m->baseline[i] : m->candidate[i - m->n_baseline];
	const struct compare_sides sides = {.asked = m,
		.is_gate = is_gate(j->request),
		.gather = j->gather,
		.name = name,
		.n_side = {m->n_baseline, m->n_candidate}};
	int r = compare_answer(&sides, &to, &status, &error);
	if (r == 0)
		r = tell_notes(j, &to);
	return query_answer_end(q, &stream, r, &error, status);
}

static uint64_t compare_deadline_ns(struct job *job, const struct request *q)
{
	(void)job;
	return request_has_room(q) ? 0 : UINT64_MAX;
}

static int compare_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct compare_job *j = (struct compare_job *)job;
	(void)now_ns;
	int r;
	if (j->n_read < n_files(j)) {
		r = read_one(j, q);
		if (r == 0)
			r = request_progress(q, "reading recordings", j->n_read, n_files(j));
		return r > 0 ? JOB_DONE : r;
	}
	r = answer(j, q);
	return r < 0 ? r : JOB_DONE;
}

static int compare_files(struct request *q, const Mperf__Request *request, int by)
{
	static const struct job_kind kind = {.deadline_ns = compare_deadline_ns,
		.dispatch = compare_dispatch,
		.free = compare_free};
	struct compare_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->job.kind = &kind;
	j->request = request_copy(&request->base);
	int r = j->request ? gather_new(by, &j->gather) : -ENOMEM;
	if (r < 0) {
		compare_free(&j->job);
		return r;
	}
	j->asked = asked_of(j->request);
	q->job = &j->job;
	return 0;
}

/* --- runs of the store ------------------------------------------------------------------------ */

static int check_side(struct request *q, Mperf__RunSelection *const *m, size_t n)
{
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = run_selection_check(q, m[i]);
	return r;
}

static int check_sides(struct request *q, const Mperf__CompareRequest *m)
{
	if (m->n_baseline_run == 0 || m->n_candidate_run == 0 || m->n_baseline || m->n_candidate) {
		int r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Select both sides from the store, or give recordings of both.",
			"one side is of the store, and the other is not");
		return r < 0 ? r : 1;
	}
	int r = check_side(q, m->baseline_run, m->n_baseline_run);
	return r == 0 ? check_side(q, m->candidate_run, m->n_candidate_run) : r;
}

/* Runs given by a time have no labels, and are not counted here. */
static size_t labels_of(const Mperf__Request *m, size_t i, char *const **ret_label)
{
	const Mperf__CompareRequest *c = asked_of(m);
	for (size_t k = 0; k < c->n_baseline_run + c->n_candidate_run; k++) {
		const Mperf__RunSelection *s = k < c->n_baseline_run
						       ? c->baseline_run[k]
						       : c->candidate_run[k - c->n_baseline_run];
		if (s->n_label == 0 || i-- > 0)
			continue;
		*ret_label = s->label;
		return s->n_label;
	}
	return 0;
}

static int run(struct question *a, const struct answer *to, struct query_error *ret_error)
{
	return compare_runs_answer(a, asked_of(a->request), is_gate(a->request), to, ret_error);
}

static int make(struct request *q, struct question *a)
{
	const Mperf__CompareRequest *m = asked_of(a->request);
	a->wanted = m->filter;
	a->filter = query_filter_of(q, m->filter);
	a->query.inlined = m->inlined;
	a->query.filter = &a->filter;
	a->coarsest = STORE_FINEST_FIRST;
	a->all_time = a->fresh = true;
	a->labels = labels_of;
	a->know = run_selection_know;
	a->forget = run_selection_forget;
	a->run = run;
	int r = question_add_metrics(q, a, m->metric, m->n_metric);
	return r == 0 ? check_sides(q, m) : r;
}

/* --- commands --------------------------------------------------------------------------------- */

static int start(struct request *q, const Mperf__Request *request)
{
	const Mperf__CompareRequest *m = asked_of(request);
	const int by = gather_by_parse(*m->by ? m->by : "function");
	struct machine machine; /* needed only to load the platform database */
	if (by < 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Use function, module, process, cgroup, line or loop.",
			"runs are not compared by '%s'", m->by);
	if (by == GATHER_BY_LOOP && m->n_metric)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Leave out -M, or compare by function.", "metrics are not known of loops");
	if (m->n_baseline_run || m->n_candidate_run)
		return question_ask(q, request, make);
	int r = m->n_metric ? request_read_machine(q, &machine) : 0;
	if (r != 0)
		return r < 0 ? r : 0;
	if (m->n_baseline == 0 || m->n_candidate == 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Name recordings of both sides.", "there is nothing to compare with");
	return compare_files(q, request, by);
}

int control_diff(struct request *q, const Mperf__Request *request)
{
	return start(q, request);
}

int control_gate(struct request *q, const Mperf__Request *request)
{
	return start(q, request);
}
