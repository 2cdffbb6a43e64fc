/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * diff and gate of recordings: one is read each turn, so that the client can show progress and cancel;
 * then all are compared and the answer is sent. Only a private daemon reads files. Runs of a service's
 * store are compared by a child of it (compare_store.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/compare/answer.h"
#include "daemon/compare/values.h"
#include "daemon/control/compare_store.h"
#include "daemon/control/peer.h"
#include "daemon/control/query_request.h"

struct compare_job {
	struct job job;
	Mperf__Request *request; /* a copy */
	const Mperf__CompareRequest *asked;
	bool is_gate;
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

/* --- reading ---------------------------------------------------------------------------------- */

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
		.is_gate = j->is_gate,
		.gather = j->gather,
		.name = name,
		.n_side = {m->n_baseline, m->n_candidate}};
	int r = compare_answer(&sides, &to, &status, &error);
	if (r == 0)
		r = tell_notes(j, &to);
	return query_answer_end_with(q, &stream, r, &error, status);
}

/* --- the job ---------------------------------------------------------------------------------- */

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

static int start(struct request *q, const Mperf__Request *request, const Mperf__CompareRequest *m,
	bool is_gate)
{
	static const struct job_kind kind = {.deadline_ns = compare_deadline_ns,
		.dispatch = compare_dispatch,
		.free = compare_free};
	const int by = gather_by_parse(*m->by ? m->by : "function");
	struct machine machine; /* needed only to load the platform database */
	if (by < 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Use function, module, process, cgroup, line or loop.",
			"runs are not compared by '%s'", m->by);
	if (by == GATHER_BY_LOOP && m->n_metric)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Leave out -M, or compare by function.", "metrics are not known of loops");
	int r = m->n_metric ? request_read_machine(q, &machine) : 0;
	if (r != 0)
		return r < 0 ? r : 0;
	if (m->n_baseline_run || m->n_candidate_run)
		return compare_store_start(q, request);
	if (m->n_baseline == 0 || m->n_candidate == 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Name recordings of both sides.", "there is nothing to compare with");
	struct compare_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->job.kind = &kind;
	j->is_gate = is_gate;
	j->request = request_copy(&request->base);
	r = j->request ? gather_new(by, &j->gather) : -ENOMEM;
	if (r < 0) {
		compare_free(&j->job);
		return r;
	}
	j->asked = is_gate ? j->request->gate : j->request->diff;
	q->job = &j->job;
	return 0;
}

int control_diff(struct request *q, const Mperf__Request *request)
{
	return start(q, request, request->diff, false);
}

int control_gate(struct request *q, const Mperf__Request *request)
{
	return start(q, request, request->gate, true);
}
