/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * job: labels for a process and what it starts, and which there are. A label changes how samples of a
 * process are shown to all who see them, so only its user may give it, and root.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/attribute/attribute.h"
#include "daemon/attribute/proc_reader.h"
#include "daemon/control/job_pin.h"
#include "daemon/control/peer.h"
#include "daemon/control/pin_rows.h"
#include "daemon/control/request.h"
#include "daemon/service/pinner.h"
#include "daemon/service/service.h"
#include "proto/clock.h"
#include "proto/memory.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* --- whose ------------------------------------------------------------------------------------ */

static bool is_others(const struct request *q, int32_t pid, bool if_gone)
{
	struct rights rights;
	if (q->peer->uid == 0)
		return false;
	return proc_reader_rights(q->peer->options->reader, pid, 0, &rights) == 0
		       ? rights.uid != q->peer->uid
		       : if_gone;
}

/* Members of the group may not label processes of others either, so the remedy is not to join it. */
static int refuse_others(struct request *q, int32_t pid)
{
	int r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
		"Label processes of your own, or do it as root.",
		"process %d does not belong wholly to you", (int)pid);
	return r < 0 ? r : 1;
}

/* Hold the process, if the peer may label it. 0; positive after a refusal; -errno. The caller clears
 * *held in any case. */
static int hold_process(struct request *q, int32_t pid, struct held_pids *held)
{
	if (is_others(q, pid, false))
		return refuse_others(q, pid);
	int r = request_hold_pids(q, &pid, 1, false, held);
	return r == 0 && is_others(q, pid, true) ? refuse_others(q, pid) : r;
}

/* --- start and end ---------------------------------------------------------------------------- */

static int start(struct request *q, struct service *s, const Mperf__JobRequest *m)
{
	struct walk *w = s->walk;
	_cleanup_(freep) char *json = NULL;
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	int r = request_read_labels(q, m->label, m->n_label, &json);
	if (r != 0)
		return r < 0 ? r : 0;
	r = walk_catch_up(w, now_ns); /* forks so far belong to the job before */
	if (r == 0)
		r = attribute_set_labels(w->attribute, m->pid, q->peer->uid, json, now_ns);
	if (r == ATTRIBUTE_GONE)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING, "Try again.",
			"mperfd does not know process %d yet", (int)m->pid);
	if (r == ATTRIBUTE_FULL)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"End some, or use fewer different labels.",
			"there are as many jobs as mperfd keeps: %d of a user, %d in all",
			LABEL_SETS_USER_MAX, LABEL_SETS_MAX);
	if (r == 0)
		r = service_job_began(s, m->pid, now_ns);
	return r < 0 ? r : request_done(q, 0);
}

/* The live processes with these labels. At most n pids; returns how many there are. */
static size_t of_job(const struct walk *w, const struct label_set *set, pid_t *pid, size_t n)
{
	size_t found = 0;
	for (const struct task *t = w->tasks.live; t; t = t->hh.next)
		if (t->process == t && t->labels == set) {
			if (found < n)
				pid[found] = t->pid;
			found++;
		}
	return found;
}

/* The job of a process. 0; positive after a refusal; -errno. */
static int find_job(struct request *q, struct walk *w, pid_t pid, uint64_t now_ns,
	const struct label_set **ret_set)
{
	int r = walk_catch_up(w, now_ns);
	if (r < 0)
		return r;
	const struct task *task = task_find(&w->tasks, pid);
	const struct label_set *set = task ? task->process->labels : NULL;
	if (set && (set->uid == q->peer->uid || q->peer->uid == 0)) {
		*ret_set = set;
		return 0;
	}
	r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING, "See `mperfctl job`.",
		"process %d is in no job of yours", (int)pid);
	return r < 0 ? r : 1;
}

static int end(struct request *q, struct walk *w, const Mperf__JobRequest *m)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	const struct label_set *set;
	int r = find_job(q, w, m->pid, now_ns, &set);
	if (r != 0)
		return r < 0 ? r : 0;
	size_t n = of_job(w, set, NULL, 0);
	_cleanup_(freep) pid_t *pid = calloc(n + 1, sizeof(*pid));
	if (!pid)
		return -ENOMEM;
	of_job(w, set, pid, n);
	for (size_t i = 0; i < n && r >= 0; i++)
		r = attribute_set_labels(w->attribute, pid[i], q->peer->uid, NULL, now_ns);
	return r < 0 ? r : request_done(q, 0);
}

static int pin_of(struct request *q, struct walk *w, const Mperf__JobRequest *m)
{
	const struct label_set *set;
	int r = find_job(q, w, m->pid, clock_ns(CLOCK_MONOTONIC), &set);
	return r != 0 ? (r < 0 ? r : 0) : job_pin(q, set, m);
}

/* --- list ------------------------------------------------------------------------------------- */

static const struct answer_column columns[] = {
	{"job", "Job", MPERF__UNIT__UNIT_NONE},
	{"uid", "User", MPERF__UNIT__UNIT_NONE},
	{"processes", "Processes", MPERF__UNIT__UNIT_COUNT},
	{"pid", "One of them", MPERF__UNIT__UNIT_NONE},
	{"pinned", "Pinned", MPERF__UNIT__UNIT_NONE},
};

struct member {
	const struct label_set *set;
	pid_t pid;
};

static int by_set(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	return x->set->id != y->set->id ? (x->set->id > y->set->id ? 1 : -1)
					: (x->pid > y->pid) - (x->pid < y->pid);
}

/* All processes in jobs that the peer may see, by job. 0 or -ENOMEM. */
static int find_members(
	const struct request *q, const struct walk *w, struct member **ret_member, size_t *ret_n)
{
	struct member *member = calloc((size_t)HASH_COUNT(w->tasks.live) + 1, sizeof(*member));
	size_t n = 0;
	if (!member)
		return -ENOMEM;
	for (const struct task *t = w->tasks.live; t; t = t->hh.next)
		if (t->process == t && t->labels &&
			(q->peer->sees_all || t->labels->uid == q->peer->uid))
			member[n++] = (struct member){t->labels, t->pid};
	qsort(member, n, sizeof(*member), by_set);
	*ret_member = member;
	*ret_n = n;
	return 0;
}

static int tell_job(const struct answer *answer, const struct pinner *pinner,
	const struct member *first, size_t n)
{
	struct label label[LABELS_MAX];
	char says[LABELS_BYTES_MAX];
	labels_say(label, labels_read(first->set->labels, label), says, sizeof(says));
	struct answer_value v[] = {
		{.kind = ANSWER_TEXT, .text = says},
		{.kind = ANSWER_INTEGER, .integer = first->set->uid},
		{.kind = ANSWER_INTEGER, .integer = (int64_t)n},
		{.kind = ANSWER_INTEGER, .integer = first->pid},
		pinner && pinner_awaits(pinner, first->set)
			? (struct answer_value){.kind = ANSWER_TEXT, .text = "when it ends"}
			: (struct answer_value){.kind = ANSWER_ABSENT},
	};
	return answer->row(answer->userdata, v, LENGTH(v));
}

static int list(struct request *q, const struct walk *w)
{
	const struct service *service = q->peer->options->service;
	const struct pinner *pinner = service_pinner(service);
	struct row_stream stream = {.request = NULL};
	const struct answer answer = row_stream_answer(&stream, q);
	_cleanup_(freep) struct member *member = NULL;
	size_t n;
	int r = find_members(q, w, &member, &n);
	if (r < 0)
		return r;
	r = row_stream_table(&stream, "job");
	if (r == 0)
		r = answer.columns(answer.userdata, columns, LENGTH(columns));
	for (size_t i = 0, end; i < n && r == 0; i = end) {
		for (end = i + 1; end < n && member[end].set == member[i].set;)
			end++;
		r = tell_job(&answer, pinner, &member[i], end - i);
	}
	if (r == 0 && service->store)
		r = pin_rows_send(&stream, &answer, service->store, q->peer);
	int ended = row_stream_end(&stream);
	if (r == 0)
		r = ended;
	return r == 0 ? request_done(q, 0) : r < 0 ? r : 0;
}

/* ---------------------------------------------------------------------------------------------- */

int control_job(struct request *q, const Mperf__Request *m)
{
	struct service *s = q->peer->options->service;
	const Mperf__JobRequest *job = m->job;
	_cleanup_(held_pids_clear) struct held_pids held = {.n = 0};
	if (!s)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Run `systemctl start mperfd`, and try again.",
			"this mperfd keeps no jobs: it serves only one client");
	if (job->action == MPERF__JOB_ACTION__JOB_UNPIN)
		return job_unpin(q, job);
	if (!s->walk)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"See `mperfctl doctor`.", "mperfd samples nothing now: %s", s->trouble);
	if (job->action == MPERF__JOB_ACTION__JOB_LIST)
		return list(q, s->walk);
	if (job->action == MPERF__JOB_ACTION__JOB_PIN && job->pid == 0)
		return job_pin(q, NULL, job);
	int r = hold_process(q, job->pid, &held);
	if (r != 0)
		return r < 0 ? r : 0;
	return job->action == MPERF__JOB_ACTION__JOB_START ? start(q, s, job)
	       : job->action == MPERF__JOB_ACTION__JOB_PIN ? pin_of(q, s->walk, job)
							   : end(q, s->walk, job);
}
