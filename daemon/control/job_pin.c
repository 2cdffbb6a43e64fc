/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/control/job_pin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/answer/row.h"
#include "daemon/budget/loop_latency.h"
#include "daemon/control/peer.h"
#include "daemon/jobs/pinner.h"
#include "daemon/service/service.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* Interval at which we check whether the child has ended: the child takes seconds, and a check
 * costs nothing. */
#define LOOK_NS 100000000u

struct selected {
	struct label label[LABELS_MAX];
	size_t n;
};

/* The labels of a request. 0; positive after a refusal; -errno. */
static int read_selection(struct request *q, const Mperf__JobRequest *m, struct selected *s)
{
	struct label_fault fault = {"a selection has at least one label, and at most 16"};
	int r = m->n_label == 0 || m->n_label > LABELS_MAX ? LABELS_WRONG : 0;
	s->n = 0;
	for (size_t i = 0; i < m->n_label && r == 0; i++)
		r = label_parse(m->label[i], &s->label[s->n++], &fault);
	if (r <= 0)
		return r;
	r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
		"Write what to pin as KEY=VALUE[,KEY=VALUE...]; mperfctl(1) says what they are.",
		"%s", fault.text);
	return r < 0 ? r : 1;
}

static int fail_no_store(struct request *q)
{
	const char *why = q->peer->options->service->store_trouble;
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
		"See mperfd's journal, and try again once samples are stored.",
		"nothing can be pinned, since nothing is stored now%s%s", *why ? ": " : "", why);
}

/* --- what is pinned --------------------------------------------------------------------------- */

#define PIN_TABLE(COLUMN, KNOWN_IF)                                                                \
	COLUMN(job, "Job", text, labels_say_json(p->labels, job, sizeof(job)))                     \
	COLUMN(uid, "User", number, p->uid)                                                        \
	COLUMN(since, "Since", time, p->start_ns)                                                  \
	COLUMN(until, "Until", time, p->end_ns)                                                    \
	COLUMN(bytes, "Size", bytes, p->bytes)                                                     \
	COLUMN(kept, "Kept", text, kept)                                                           \
	COLUMN(by, "Pinned by", number, p->by)                                                     \
	COLUMN(file, "File", text, p->name)

static int send_pin(const struct answer *to, const struct store_pin *p)
{
	struct label label[LABELS_MAX];
	char job[LABELS_BYTES_MAX], group[LABELS_BYTES_MAX];
	char kept[LABELS_BYTES_MAX + 32] = "until unpinned";
	if (p->keep > 0)
		snprintf(kept, sizeof(kept), "last %u of %s", p->keep,
			labels_say_wanted(
				label, labels_read(p->group, label), group, sizeof(group)));
	return TABLE_ROW(to, PIN_TABLE);
}

int job_pins_send(const struct answer *to, const struct store *s, const struct peer *peer)
{
	int r = TABLE_BEGIN(to, "pin", PIN_TABLE);
	for (size_t i = 0; i < s->n_pins && r == 0; i++) {
		const struct store_pin *p = &s->pin[i];
		if (peer->sees_all || p->uid == peer->uid || p->by == peer->uid)
			r = send_pin(to, p);
	}
	return r;
}

/* --- pin -------------------------------------------------------------------------------------- */

struct pin_job_of_peer {
	struct job job;
	const struct service *service;
	uint64_t id, next_ns;
	struct selected selected;
};

/* The pinner that has the request; NULL: it and the request are gone, and the service may have
 * another pinner. */
static struct pinner *pinner_of(const struct pin_job_of_peer *j)
{
	struct pinner *p = service_pinner(j->service);
	return p && pinner_has(p, j->id) ? p : NULL; /* ids of pinners differ */
}

#define PINNED_TABLE(COLUMN, KNOWN_IF)                                                             \
	COLUMN(job, "Job", text, labels_say_json(job->labels, says, sizeof(says)))                 \
	COLUMN(uid, "User", number, job->uid)                                                      \
	COLUMN(state, "Pinned", text, pin_state_says(job->state))                                  \
	KNOWN_IF(bytes, "Size", bytes, job->bytes, job->bytes)                                     \
	KNOWN_IF(file, "File", text, *job->name, job->name)

static int tell(struct request *q, const struct pin_report *report)
{
	struct row_stream stream;
	const struct answer to = row_stream_answer(&stream, q);
	char says[LABELS_BYTES_MAX];
	int r = TABLE_BEGIN(&to, "pin", PINNED_TABLE);
	for (uint32_t i = 0; i < report->n_jobs && r == 0; i++) {
		const struct pin_job *job = &report->job[i];
		r = TABLE_ROW(&to, PINNED_TABLE);
	}
	int ended = row_stream_end(&stream);
	return r == 0 ? ended : r;
}

static int fail(struct request *q, const struct pin_report *r, const struct selected *s)
{
	char wanted[512];
	labels_say_wanted(s->label, s->n, wanted, sizeof(wanted));
	switch (r->outcome) {
	case PIN_NONE:
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"List the jobs: mperfctl hotspots --by job --since -2d.",
			"you have no job with %s whose samples are kept in full", wanted);
	case PIN_MANY:
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Pin the latest of them: ...,last=N, or --keep N.",
			"more than %d jobs have %s", PIN_JOBS_MAX, wanted);
	default:
		return request_fail(q,
			r->outcome == PIN_FULL ? MPERF__FAILURE_KIND__FAILURE_LIMIT
					       : MPERF__FAILURE_KIND__FAILURE_BROKEN,
			r->remedy, "%s", r->text);
	}
}

static uint64_t deadline_ns(struct job *job, const struct request *q)
{
	(void)q;
	return ((struct pin_job_of_peer *)job)->next_ns;
}

static int dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct pin_job_of_peer *j = (struct pin_job_of_peer *)job;
	struct pinner *p = pinner_of(j);
	j->next_ns = now_ns + LOOK_NS;
	if (!p) {
		int r = fail_no_store(q);
		return r < 0 ? r : JOB_DONE;
	}
	const struct pin_report *report = pinner_report(p, j->id);
	if (!report)
		return 0;
	int r = report->n_jobs > 0 ? tell(q, report) : 0;
	if (r == 0)
		r = report->outcome == PIN_WELL ? request_done(q, 0)
						: fail(q, report, &j->selected);
	return r < 0 ? r : JOB_DONE;
}

static void release(struct job *job)
{
	struct pin_job_of_peer *j = (struct pin_job_of_peer *)job;
	struct pinner *p = pinner_of(j);
	if (p)
		pinner_forget(p, j->id);
	free(j);
}

static int refuse_busy(struct request *q, int why)
{
	if (why == PINNER_WAITS)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Try again when some have ended, or unpin them.",
			"too many running jobs will be pinned at their end; " PIN_WAITS_SAYS,
			PIN_WAITS_USER_MAX, PIN_WAITS_MAX);
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT, "Try again when they are done.",
		"too many requests to pin are waiting: at most %d per user and %d in total",
		PIN_ASKS_USER_MAX, PIN_ASKS_MAX);
}

int job_pin(struct request *q, struct label_set *only, const Mperf__JobRequest *m)
{
	static const struct job_kind kind = {
		.deadline_ns = deadline_ns, .dispatch = dispatch, .free = release};
	struct pinner *p = service_pinner(q->peer->options->service);
	struct selected selected;
	int r = read_selection(q, m, &selected);
	if (r != 0 || !p)
		return r < 0 ? r : r > 0 ? 0 : fail_no_store(q);
	if (q->peer->options->conf->pinned_ppm == 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"Give pinned a part of the budget in mperf.conf.",
			"jobs cannot be pinned: mperf.conf says pinned = none");
	if (only && !store_pin_matches(only->labels, selected.label, selected.n))
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Name labels that the job has.",
			"the job of process %d does not have these labels", (int)m->pid);
	struct pin_ask ask = {.by = (uint32_t)q->peer->uid,
		.all_users = q->peer->sees_all,
		.n_labels = selected.n,
		.only = only,
		.last = m->last,
		.keep = m->keep};
	memcpy(ask.label, selected.label, sizeof(ask.label));
	_cleanup_(freep) struct pin_job_of_peer *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	*j = (struct pin_job_of_peer){
		.job.kind = &kind, .service = q->peer->options->service, .selected = selected};
	r = pinner_ask(p, &ask, &j->id);
	if (r != 0)
		return r < 0 ? r : refuse_busy(q, r);
	q->job = &TAKE_PTR(j)->job;
	return 0;
}

/* --- unpin ------------------------------------------------------------------------------------
 *
 * There may be thousands of pins that the peer may unpin, and a pattern takes long to compare, so they are looked at in
 * slices. Pins that are made meanwhile are not looked at.
 */

struct unpin_job {
	struct job job;
	struct service *service;
	struct selected selected;
	uint32_t last; /* only the latest of them, this many at most; 0: all */
	struct pinner_unpin waits;
	struct store_pin
		at; /* the last pin that was looked at, without its texts; name "": none was */
	size_t n;   /* number of pins removed */
	/* a pin that cannot be removed: it stays, and so do those before it */
	int error; /* errno; 0: none */
};

static bool may_unpin(const struct request *q, const struct store_pin *p)
{
	return q->peer->sees_all || p->by == q->peer->uid;
}

/* The next older one that the peer may unpin; n_pins: there is none. */
static size_t next_pin(const struct request *q, const struct store *s, const struct store_pin *at)
{
	size_t i = *at->name ? store_pin_older(s, at) : s->n_pins > 0 ? s->n_pins - 1 : s->n_pins;
	while (i < s->n_pins && !may_unpin(q, &s->pin[i]))
		i = i > 0 ? i - 1 : s->n_pins;
	return i;
}

/* Unpin some pins, each with a row in the answer. True: the slice is over; *ret_r as the callbacks
 * of an answer. */
static bool unpin_some(struct unpin_job *j, const struct request *q, const struct answer *answer,
	uint64_t until_ns, int *ret_r)
{
	struct store *s = j->service->store;
	size_t i;
	while (*ret_r == 0 && j->error == 0 && (j->last == 0 || j->n < j->last) &&
		(i = next_pin(q, s, &j->at)) < s->n_pins) {
		const struct store_pin *p = &s->pin[i];
		j->at = *p;
		j->at.labels = j->at.group = NULL;
		if (store_pin_matches(p->labels, j->selected.label, j->selected.n)) {
			*ret_r = send_pin(answer, p);
			j->error = *ret_r == 0 ? -store_pin_remove(s, i) : 0;
			j->n += *ret_r == 0 && j->error == 0;
		}
		if (slice_is_over(until_ns))
			return true;
	}
	return false;
}

static int fail_none(struct request *q, const struct selected *selected)
{
	char wanted[512];
	labels_say_wanted(selected->label, selected->n, wanted, sizeof(wanted));
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
		"See what is pinned: mperfctl job.", "none of your pinned jobs has %s", wanted);
}

static int unpin_end(const struct unpin_job *j, struct request *q)
{
	if (j->error != 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_BROKEN,
			"Let mperfd write to its store, and try again.", "%s cannot be removed: %s",
			j->at.name, strerror(j->error));
	return j->n + j->waits.n_removed > 0 ? request_done(q, 0) : fail_none(q, &j->selected);
}

static int unpin_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct unpin_job *j = (struct unpin_job *)job;
	struct pinner *p = service_pinner(j->service);
	const uint64_t until_ns = slice_begin();
	struct row_stream stream;
	(void)now_ns;
	if (!j->service->store) {
		int r = fail_no_store(q);
		return r < 0 ? r : JOB_DONE;
	}
	if (j->last == 0 && p && !pinner_unpin(p, &j->waits, until_ns))
		return 0;
	const struct answer answer = row_stream_answer(&stream, q);
	int r = *j->at.name ? 0 : TABLE_BEGIN(&answer, "pin", PIN_TABLE);
	bool more = unpin_some(j, q, &answer, until_ns, &r);
	int ended = row_stream_end(&stream);
	r = r == 0 ? ended : r;
	if (r == 0 && !more)
		r = unpin_end(j, q);
	return r < 0 ? r : r == 0 && more ? 0 : JOB_DONE;
}

static uint64_t unpin_deadline_ns(struct job *job, const struct request *q)
{
	(void)job;
	return request_has_room(q) ? 0 : UINT64_MAX;
}

static void unpin_free(struct job *job)
{
	free(job);
}

int job_unpin(struct request *q, const Mperf__JobRequest *m)
{
	static const struct job_kind kind = {
		.deadline_ns = unpin_deadline_ns, .dispatch = unpin_dispatch, .free = unpin_free};
	struct selected selected;
	int r = read_selection(q, m, &selected);
	if (r != 0 || !q->peer->options->service->store)
		return r < 0 ? r : r > 0 ? 0 : fail_no_store(q);
	struct unpin_job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	*j = (struct unpin_job){.job.kind = &kind,
		.service = q->peer->options->service,
		.selected = selected,
		.last = m->last};
	j->waits = (struct pinner_unpin){.by = (uint32_t)q->peer->uid,
		.all = q->peer->sees_all,
		.label = j->selected.label,
		.n_labels = selected.n};
	q->job = &j->job;
	return 0;
}
