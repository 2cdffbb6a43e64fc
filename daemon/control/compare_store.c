/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Only the daemon knows which jobs still have processes, so it notes these jobs when it chooses the
 * files. A child then finds the runs, gathers them and answers. The child ignores runs that began
 * after that moment, so a run whose job is not noted has ended.
 */
#include "daemon/control/compare_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/compare/answer.h"
#include "daemon/compare/compare.h"
#include "daemon/control/compare_runs.h"
#include "daemon/control/peer.h"
#include "daemon/control/query_request.h"
#include "daemon/control/store_query.h"
#include "daemon/query/load.h"
#include "daemon/service/service.h"
#include "proto/base/clock.h"

static const Mperf__CompareRequest *asked_of(const Mperf__Request *m)
{
	return m->body_case == MPERF__REQUEST__BODY_GATE ? m->gate : m->diff;
}

/* --- is the request right --------------------------------------------------------------------- */

static int check_uids(struct request *q, const Mperf__RunSelection *m)
{
	char what[80];
	for (size_t i = 0; i < m->n_uid; i++) {
		if (q->peer->sees_all || m->uid[i] == q->peer->uid)
			continue;
		snprintf(what, sizeof(what), "jobs of uid %u are not yours", m->uid[i]);
		int r = request_refuse_group(q, what);
		return r < 0 ? r : 1;
	}
	return 0;
}

/* 0, positive after a refusal, -errno. */
static int check_selection(struct request *q, const Mperf__RunSelection *m)
{
	struct label_fault fault = {""};
	struct label label;
	for (size_t i = 0; i < m->n_label && !*fault.text; i++)
		(void)label_parse(m->label[i], &label, &fault);
	if (m->n_label == 0 && m->since_ns <= 0)
		snprintf(fault.text, sizeof(fault.text), "a stretch of time needs its begin");
	else if (m->n_label == 0 && (m->last || m->n_uid))
		snprintf(fault.text, sizeof(fault.text),
			"only jobs can be counted and have users, not a stretch of time");
	else if (m->until_ns && m->until_ns <= m->since_ns)
		snprintf(fault.text, sizeof(fault.text), "a selection ends before it begins");
	if (!*fault.text)
		return check_uids(q, m);
	int r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
		"Write KEY=VALUE, with since=, until=, last= and user=; mperfctl-gate(1) says how.",
		"%s", fault.text);
	return r < 0 ? r : 1;
}

static int check_side(struct request *q, Mperf__RunSelection *const *m, size_t n)
{
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = check_selection(q, m[i]);
	return r;
}

static int check(struct request *q, const Mperf__CompareRequest *m)
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

/* --- what only the daemon knows --------------------------------------------------------------- */

/* With room for n sets. NULL without memory. */
static struct compare_known *make_known(size_t n)
{
	struct compare_known *k = calloc(1, sizeof(*k) + n * sizeof(*k->alive));
	if (k)
		k->text = calloc(n + 1, sizeof(*k->text));
	if (!k || !k->text) {
		free(k);
		return NULL;
	}
	return k;
}

static bool is_alive(const struct request *q, const struct label_set *set)
{
	return set->n_live > 0 && (q->peer->sees_all || set->uid == q->peer->uid);
}

static int know(struct request *q, const Mperf__Request *m, void **ret_known)
{
	struct walk *w = q->peer->options->service->walk;
	/* ends of processes so far are among the records; what comes now is stored by this query */
	int r = w ? walk_catch_up(w, clock_ns(CLOCK_MONOTONIC)) : 0;
	const size_t n_sets = w ? HASH_COUNT(w->tasks.label_sets.set) : 0;
	struct compare_known *k = r < 0 ? NULL : make_known(n_sets);
	(void)m;
	if (!k)
		return r < 0 ? r : -ENOMEM;
	k->until_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	const struct label_set *set = w ? w->tasks.label_sets.set : NULL;
	for (; set; set = set->hh.next)
		if (is_alive(q, set)) {
			k->alive[k->n_alive] = (struct query_job){set->uid, set->labels};
			k->text[k->n_alive++] = label_text_ref(set->text);
		}
	*ret_known = k;
	return 0;
}

static void forget(void *known)
{
	struct compare_known *k = known;
	for (size_t i = 0; i < k->n_alive; i++)
		label_text_unref(k->text[i]);
	free(k->text);
	free(k);
}

/* --- the question ----------------------------------------------------------------------------- */

static const Mperf__Filter *filter_of(const Mperf__Request *m)
{
	return asked_of(m)->filter;
}

/* Runs that are given by time have no labels, and are not counted here. */
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

static enum tier finest_first(const Mperf__Request *m, const struct query_filter *filter)
{
	(void)m;
	(void)filter;
	return STORE_FINEST_FIRST;
}

static int run(const struct store_question_run *run)
{
	return compare_runs_answer(
		run, asked_of(run->request), run->request->body_case == MPERF__REQUEST__BODY_GATE);
}

static const struct store_question question = {.filter = filter_of,
	.coarsest = finest_first,
	.run = run,
	.know = know,
	.forget = forget,
	.labels = labels_of,
	.all_time = true};

/* --- the wait for what is not stored yet ------------------------------------------------------ */

struct wait_job {
	struct job job;
	Mperf__Request *request; /* a copy */
};

static void wait_free(struct job *job)
{
	struct wait_job *j = (struct wait_job *)job;
	if (j->request)
		mperf__request__free_unpacked(j->request, NULL);
	free(j);
}

static uint64_t wait_deadline_ns(struct job *job, const struct request *q)
{
	(void)job;
	return service_fresh_ns(q->peer->options->service);
}

static int wait_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	if (now_ns < wait_deadline_ns(job, q))
		return 0;
	q->job = NULL;
	int r = store_query_start(q, ((struct wait_job *)job)->request, &question);
	wait_free(job);
	return r < 0 ? r : q->job ? 0 : JOB_DONE;
}

static const struct job_kind wait_kind = {
	.deadline_ns = wait_deadline_ns, .dispatch = wait_dispatch, .free = wait_free};

int compare_store_start(struct request *q, const Mperf__Request *request)
{
	int r = check(q, asked_of(request));
	if (r != 0)
		return r < 0 ? r : 0;
	if (!q->peer->options->service)
		return store_query_start(q, request, &question); /* says why not */
	struct wait_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->job.kind = &wait_kind;
	j->request = request_copy(&request->base);
	if (!j->request) {
		wait_free(&j->job);
		return -ENOMEM;
	}
	q->job = &j->job;
	return 0;
}
