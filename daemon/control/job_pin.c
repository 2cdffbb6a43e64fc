/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/control/job_pin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/budget/turns.h"
#include "daemon/control/peer.h"
#include "daemon/jobs/pinner.h"
#include "daemon/service/service.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
/* Between looks whether the child has ended: it takes seconds, and a look takes nothing. */
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

/* --- the table of pins ------------------------------------------------------------------------ */

static const struct answer_column pin_columns[] = {
	{"job", "Job", MPERF__UNIT__UNIT_NONE},
	{"uid", "User", MPERF__UNIT__UNIT_NONE},
	{"since", "Since", MPERF__UNIT__UNIT_TIME},
	{"until", "Until", MPERF__UNIT__UNIT_TIME},
	{"bytes", "Size", MPERF__UNIT__UNIT_BYTES},
	{"kept", "Kept", MPERF__UNIT__UNIT_NONE},
	{"by", "Pinned by", MPERF__UNIT__UNIT_NONE},
	{"file", "File", MPERF__UNIT__UNIT_NONE},
};

/* May this peer see it? */
static bool is_shown(const struct store_pin *p, const struct peer *peer)
{
	return peer->sees_all || p->uid == peer->uid || p->by == peer->uid;
}

static int begin_rows(struct row_stream *stream, const struct answer *answer)
{
	int r = row_stream_table(stream, "pin");
	return r == 0 ? answer->columns(answer->userdata, pin_columns, LENGTH(pin_columns)) : r;
}

static int send_row(const struct answer *answer, const struct store_pin *p)
{
	char job[LABELS_BYTES_MAX], group[LABELS_BYTES_MAX];
	struct label label[LABELS_MAX];
	char kept[LABELS_BYTES_MAX + 32] = "until unpinned";
	struct answer_moment since, until;
	if (p->keep > 0)
		snprintf(kept, sizeof(kept), "last %u of %s", p->keep,
			labels_say_wanted(
				label, labels_read(p->group, label), group, sizeof(group)));
	struct answer_value v[] = {
		{.kind = ANSWER_TEXT, .text = labels_say_json(p->labels, job, sizeof(job))},
		{.kind = ANSWER_INTEGER, .integer = p->uid},
		answer_moment(&since, p->start_ns),
		answer_moment(&until, p->end_ns),
		{.kind = ANSWER_INTEGER, .integer = (int64_t)p->bytes},
		{.kind = ANSWER_TEXT, .text = kept},
		{.kind = ANSWER_INTEGER, .integer = p->by},
		{.kind = ANSWER_TEXT, .text = p->name},
	};
	return answer->row(answer->userdata, v, LENGTH(v));
}

int pin_rows_send(struct row_stream *stream, const struct answer *answer, const struct store *s,
	const struct peer *peer)
{
	int r = begin_rows(stream, answer);
	for (size_t i = 0; i < s->n_pins && r == 0; i++)
		if (is_shown(&s->pin[i], peer))
			r = send_row(answer, &s->pin[i]);
	return r;
}

/* --- pin -------------------------------------------------------------------------------------- */

struct pin_job_of_peer {
	struct job job;
	const struct service *service;
	uint64_t id, next_ns;
	struct selected selected;
};

/* The pinner that was asked; NULL: it is gone, with the request, and the service may have another. */
static struct pinner *pinner_of(const struct pin_job_of_peer *j)
{
	struct pinner *p = service_pinner(j->service);
	return p && pinner_has(p, j->id) ? p : NULL; /* ids of pinners differ */
}

static int tell(struct request *q, const struct pin_report *r)
{
	static const struct answer_column columns[] = {
		{"job", "Job", MPERF__UNIT__UNIT_NONE},
		{"uid", "User", MPERF__UNIT__UNIT_NONE},
		{"state", "Pinned", MPERF__UNIT__UNIT_NONE},
		{"bytes", "Size", MPERF__UNIT__UNIT_BYTES},
		{"file", "File", MPERF__UNIT__UNIT_NONE},
	};
	struct row_stream stream = {.request = NULL};
	const struct answer answer = row_stream_answer(&stream, q);
	int e = row_stream_table(&stream, "pin");
	if (e == 0)
		e = answer.columns(answer.userdata, columns, LENGTH(columns));
	for (uint32_t i = 0; i < r->n_jobs && e == 0; i++) {
		const struct pin_job *job = &r->job[i];
		char text[LABELS_BYTES_MAX];
		struct answer_value v[] = {
			{.kind = ANSWER_TEXT,
				.text = labels_say_json(job->labels, text, sizeof(text))},
			{.kind = ANSWER_INTEGER, .integer = job->uid},
			{.kind = ANSWER_TEXT, .text = pin_state_says(job->state)},
			{.kind = job->bytes ? ANSWER_INTEGER : ANSWER_ABSENT,
				.integer = (int64_t)job->bytes},
			{.kind = *job->name ? ANSWER_TEXT : ANSWER_ABSENT, .text = job->name},
		};
		e = answer.row(answer.userdata, v, LENGTH(v));
	}
	int ended = row_stream_end(&stream);
	return e == 0 ? ended : e;
}

static int fail(struct request *q, const struct pin_report *r, const struct selected *s)
{
	char wanted[512];
	labels_say_wanted(s->label, s->n, wanted, sizeof(wanted));
	switch (r->outcome) {
	case PIN_NONE:
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"List the jobs: mperfctl hotspots --by job --since -2d.",
			"no job of yours whose samples are kept in full has %s", wanted);
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
			"too many jobs wait for their end to be pinned; " PIN_WAITS_SAYS,
			PIN_WAITS_USER_MAX, PIN_WAITS_MAX);
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT, "Try again when they are done.",
		"too many requests to pin are waiting: mperfd takes %d of a user, %d in all",
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
			"no job is pinned here: mperf.conf says pinned = none");
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
	size_t n;   /* how many are gone */
	/* one that cannot be removed: it stays, and so do those before it */
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

/* Unpin some; each is in the answer. True: the slice is over; *ret_r as the callbacks of an answer. */
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
			*ret_r = send_row(answer, p);
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
		"See what is pinned: mperfctl job.", "nothing that you pinned has %s", wanted);
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
	struct row_stream stream = {.request = NULL};
	(void)now_ns;
	if (!j->service->store) {
		int r = fail_no_store(q);
		return r < 0 ? r : JOB_DONE;
	}
	if (j->last == 0 && p && !pinner_unpin(p, &j->waits, until_ns))
		return 0;
	const struct answer answer = row_stream_answer(&stream, q);
	int r = *j->at.name ? 0 : begin_rows(&stream, &answer);
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
