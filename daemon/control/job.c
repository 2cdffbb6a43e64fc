/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * job: gives labels to a process and all that it starts, and lists jobs. job_report.c reports on one. A label changes how
 * samples of a process are shown to every user who sees them, so only the user of the process and
 * root may give it.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/answer/row.h"
#include "daemon/attribute/attribute.h"
#include "daemon/attribute/proc_reader.h"
#include "daemon/budget/loop_latency.h"
#include "daemon/control/job_pin.h"
#include "daemon/control/job_report.h"
#include "daemon/control/offload_job.h"
#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/jobs/pinner.h"
#include "daemon/service/service.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

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
		"Label your own processes, or run mperfctl as root.",
		"process %d has other rights than you", (int)pid);
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
	r = walk_catch_up(w, now_ns); /* forks until now belong to the previous job */
	if (r == 0)
		r = attribute_set_labels(w->attribute, m->pid, q->peer->uid, json, now_ns);
	if (r == ATTRIBUTE_GONE)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING, "Try again.",
			"mperfd does not know process %d yet", (int)m->pid);
	if (r == ATTRIBUTE_FULL)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"End some, or use fewer different labels.",
			"mperfd keeps at most %d jobs per user and %d in total",
			LABEL_SETS_USER_MAX, LABEL_SETS_MAX);
	if (r == 0)
		r = service_job_began(s, m->pid, now_ns);
	return r < 0 ? r : request_done(q, 0);
}

/* The job of a process. 0; positive after a refusal; -errno. */
static int find_job(
	struct request *q, struct walk *w, pid_t pid, uint64_t now_ns, struct label_set **ret_set)
{
	int r = walk_catch_up(w, now_ns);
	if (r < 0)
		return r;
	const struct task *task = task_find(&w->tasks, pid);
	struct label_set *set = task ? task->process->labels : NULL;
	if (set && (set->uid == q->peer->uid || q->peer->uid == 0)) {
		*ret_set = set;
		return 0;
	}
	r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING, "See `mperfctl job`.",
		"process %d is not in a job of yours", (int)pid);
	return r < 0 ? r : 1;
}

/* A job may have as many processes as the machine: they lose their labels in slices. */
struct end_job {
	struct job job;
	const struct service *service;
	const struct walk *walk; /* to recognise it; the service may have another by now */
	uint32_t id;             /* of the labels */
};

static uint64_t end_deadline_ns(struct job *job, const struct request *q)
{
	(void)job;
	(void)q;
	return 0;
}

static void end_free(struct job *job)
{
	free(job);
}

static struct label_set *find_set(const struct walk *w, uint32_t id)
{
	struct label_set *set = w->tasks.label_sets.set;
	while (set && set->id != id)
		set = set->hh.next;
	return set;
}

static int end_some(struct walk *w, struct label_set *set, uid_t uid, uint64_t now_ns)
{
	const uint64_t until_ns = slice_begin();
	int r = 0;
	while (set->live && r >= 0 && !slice_is_over(until_ns)) {
		struct task *process = set->live;
		r = attribute_set_labels(w->attribute, process->pid, uid, NULL, now_ns);
		if (set->live == process)
			task_set_labels(&w->tasks, process, NULL);
	}
	return r < 0 ? r : 0;
}

static int end_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct end_job *j = (struct end_job *)job;
	struct walk *w = j->service->walk;
	struct label_set *set = w && w == j->walk ? find_set(w, j->id) : NULL;
	int r = 0;
	bool more = false;
	if (set) {
		label_set_hold(set);
		r = end_some(w, set, q->peer->uid, now_ns);
		more = set->live;
		(void)label_set_unref(&w->tasks.label_sets, set);
	}
	if (r == 0 && !more)
		r = request_done(q, 0);
	return r < 0 || more ? r : JOB_DONE;
}

static int end(struct request *q, const struct service *s, const Mperf__JobRequest *m)
{
	static const struct job_kind kind = {
		.deadline_ns = end_deadline_ns, .dispatch = end_dispatch, .free = end_free};
	struct label_set *set;
	int r = find_job(q, s->walk, m->pid, clock_ns(CLOCK_MONOTONIC), &set);
	if (r != 0)
		return r < 0 ? r : 0;
	struct end_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	*j = (struct end_job){.job.kind = &kind, .service = s, .walk = s->walk, .id = set->id};
	q->job = &j->job;
	return 0;
}

static int pin_of(struct request *q, struct walk *w, const Mperf__JobRequest *m)
{
	struct label_set *set;
	int r = find_job(q, w, m->pid, clock_ns(CLOCK_MONOTONIC), &set);
	return r != 0 ? (r < 0 ? r : 0) : job_pin(q, set, m);
}

/* --- list ------------------------------------------------------------------------------------- */

static bool may_see(const struct request *q, const struct label_set *set)
{
	return q->peer->sees_all || set->uid == q->peer->uid;
}

#define JOB_TABLE(COLUMN, KNOWN_IF)                                                                \
	COLUMN(job, "Job", text, labels_say_json(set->labels, says, sizeof(says)))                 \
	COLUMN(uid, "User", number, set->uid)                                                      \
	COLUMN(processes, "Processes", count, set->n_live)                                         \
	COLUMN(pid, "One of them", number, first)                                                  \
	KNOWN_IF(pinned, "Pinned", text, (pinner && pinner_awaits(pinner, set)), "when it ends")

static int tell_job(
	const struct answer *to, const struct pinner *pinner, const struct label_set *set)
{
	char says[LABELS_BYTES_MAX];
	pid_t first = set->live->pid;
	for (const struct task *t = set->live; t; t = t->labels_next)
		first = t->pid < first ? t->pid : first;
	return TABLE_ROW(to, JOB_TABLE);
}

/* In a child, for there may be thousands of jobs and pins. */
static int list_in_child(struct request *q, void *userdata)
{
	const struct service *service = userdata;
	const struct pinner *pinner = service_pinner(service);
	struct row_stream stream;
	const struct answer to = row_stream_answer(&stream, q);
	const struct label_set *set = service->walk->tasks.label_sets.set;
	int r = TABLE_BEGIN(&to, "job", JOB_TABLE);
	for (; set && r == 0; set = set->hh.next)
		if (set->n_live > 0 && may_see(q, set))
			r = tell_job(&to, pinner, set);
	if (r == 0 && service->store)
		r = job_pins_send(&to, service->store, q->peer);
	return row_stream_done(&stream, r);
}

static int list(struct request *q, struct service *s)
{
	static const struct offload_answer in_child = {.run = list_in_child};
	return offload_start(q, &in_child, s);
}

/* ---------------------------------------------------------------------------------------------- */

int control_job(struct request *q, const Mperf__Request *m)
{
	struct service *s = q->peer->options->service;
	const Mperf__JobRequest *job = m->job;
	_cleanup_(held_pids_clear) struct held_pids held = {.n = 0};
	if (job->action == MPERF__JOB_ACTION__JOB_REPORT)
		return job_report(q, m);
	if (!s)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Run `systemctl start mperfd`, and try again.",
			"this mperfd keeps no jobs: it serves only one client");
	if (job->action == MPERF__JOB_ACTION__JOB_UNPIN)
		return job_unpin(q, job);
	if (!s->walk)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"See `mperfctl doctor`.", "mperfd is not sampling: %s", s->trouble);
	if (job->action == MPERF__JOB_ACTION__JOB_LIST)
		return list(q, s);
	if (job->action == MPERF__JOB_ACTION__JOB_PIN && job->pid == 0)
		return job_pin(q, NULL, job);
	int r = hold_process(q, job->pid, &held);
	if (r != 0)
		return r < 0 ? r : 0;
	return job->action == MPERF__JOB_ACTION__JOB_START ? start(q, s, job)
	       : job->action == MPERF__JOB_ACTION__JOB_PIN ? pin_of(q, s->walk, job)
							   : end(q, s, job);
}
