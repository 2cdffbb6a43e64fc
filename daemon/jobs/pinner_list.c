/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One list has all requests. A job has ended when no process has its labels any more; until then its request holds
 * them, and is not in the queue. Of the queue, each of a user's requests is of another round, so that nobody's many
 * jobs keep another's waiting.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "daemon/jobs/pinner_private.h"
#include "proto/base/clock.h"

#define SAY_NS 60000000000ull /* time between log lines about requests without a waiting client */

struct pin_request *pinner_find(const struct pinner *p, uint64_t id)
{
	for (size_t i = 0; i < p->n_requests; i++)
		if (p->request[i].id == id)
			return &p->request[i];
	return NULL;
}

static void clear(struct pinner *p, struct pin_request *q)
{
	free(q->group);
	free(q->labels);
	free(q->report);
	(void)label_set_unref(&p->o.tasks->label_sets, q->set);
}

void pinner_remove(struct pinner *p, struct pin_request *q)
{
	clear(p, q);
	p->n_requests--;
	memmove(q, q + 1, (size_t)(&p->request[p->n_requests] - q) * sizeof(*q));
}

struct pin_request *pinner_add(struct pinner *p, const struct pin_ask *ask, const char *group,
	uint32_t uid, const char *labels)
{
	struct pin_request q = {.ask = *ask,
		.group = strdup(group),
		.labels = labels ? strdup(labels) : NULL,
		.uid = uid,
		.id = ++p->last_id,
		.nobody_waits = labels};
	q.ask.only = NULL; /* the client may free it at any time */
	if (!q.group || (labels && !q.labels)) {
		clear(p, &q);
		return NULL;
	}
	p->request[p->n_requests] = q;
	return &p->request[p->n_requests++];
}

static bool is_queued(const struct pin_request *q)
{
	return !q->set && !q->report;
}

void pinner_enter_queue(struct pinner *p, struct pin_request *q)
{
	q->since_ns = clock_ns(CLOCK_MONOTONIC);
	q->round = p->round;
	for (size_t i = 0; i < p->n_requests; i++) {
		const struct pin_request *other = &p->request[i];
		if (other != q && is_queued(other) && other->ask.by == q->ask.by &&
			other->round >= q->round)
			q->round = other->round + 1;
	}
}

static bool comes_before(const struct pin_request *a, const struct pin_request *b)
{
	return a->round != b->round ? a->round < b->round : a->since_ns < b->since_ns;
}

struct pin_request *pinner_next(const struct pinner *p)
{
	struct pin_request *next = NULL;
	for (size_t i = 0; i < p->n_requests; i++)
		if (is_queued(&p->request[i]) && (!next || comes_before(&p->request[i], next)))
			next = &p->request[i];
	return next;
}

/* --- jobs that run ---------------------------------------------------------------------------- */

static struct pin_request *find_waiting(const struct pinner *p, const struct label_set *set)
{
	for (size_t i = 0; i < p->n_requests; i++)
		if (p->request[i].set == set)
			return &p->request[i];
	return NULL;
}

/* Is the request for that ended job, and not started yet? */
static bool is_queued_for(
	const struct pinner *p, const struct pin_request *q, const struct label_set *set)
{
	return q->labels && is_queued(q) && q->id != p->child_id && q->uid == set->uid &&
	       strcmp(q->labels, set->labels) == 0;
}

bool pinner_awaits(const struct pinner *p, const struct label_set *set)
{
	for (size_t i = 0; i < p->n_requests; i++)
		if (p->request[i].set == set || is_queued_for(p, &p->request[i], set))
			return true;
	return false;
}

bool pinner_has_place(const struct pinner *p, uint32_t by, const struct pin_request *from)
{
	size_t n = 0, own = 0;
	for (size_t i = 0; i < p->n_requests; i++) {
		const struct pin_request *q = &p->request[i];
		n += q->nobody_waits && q != from;
		own += q->nobody_waits && q != from && q->ask.by == by;
	}
	return n < PIN_WAITS_MAX && own < PIN_WAITS_USER_MAX && p->n_requests < PIN_REQUESTS_MAX;
}

int pinner_await(struct pinner *p, const struct pin_ask *ask, const char *group,
	struct label_set *set, const struct pin_request *from)
{
	struct pin_request *earlier = find_waiting(p, set);
	if (earlier) {
		char *copy = strdup(group);
		if (!copy)
			return -ENOMEM;
		free(earlier->group);
		earlier->group = copy;
		earlier->ask = *ask;
		earlier->ask.only = NULL;
		earlier->id = ++p->last_id;
		return 0;
	}
	if (!pinner_has_place(p, ask->by, from))
		return PINNER_WAITS;
	struct pin_request *q = pinner_add(p, ask, group, set->uid, set->labels);
	if (q)
		q->set = label_set_hold(set);
	return q ? 0 : -ENOMEM;
}

int pinner_await_row(struct pinner *p, const struct pin_request *q, const struct pin_job *row)
{
	struct label_set *set = label_set_find(&p->o.tasks->label_sets, row->uid, row->labels);
	if (set)
		return pinner_await(p, &q->ask, q->group, set, q);
	/* it ended while the child searched, and none of its samples are left */
	if (!pinner_has_place(p, q->ask.by, q))
		return PINNER_WAITS;
	struct pin_request *ended = pinner_add(p, &q->ask, q->group, row->uid, row->labels);
	if (ended)
		pinner_enter_queue(p, ended);
	return ended ? 0 : -ENOMEM;
}

bool pinner_await_again(struct pinner *p, struct pin_request *q)
{
	struct label_set *set =
		q->labels ? label_set_find(&p->o.tasks->label_sets, q->uid, q->labels) : NULL;
	if (!set || set->n_live == 0)
		return false;
	if (find_waiting(p, set))
		pinner_remove(p, q);
	else
		q->set = label_set_hold(set);
	return true;
}

void pinner_look_at_ended(struct pinner *p)
{
	for (size_t i = 0; i < p->n_requests; i++) {
		struct pin_request *q = &p->request[i];
		if (!q->set || q->set->n_live > 0)
			continue;
		q->set = label_set_unref(&p->o.tasks->label_sets, q->set);
		pinner_enter_queue(p, q);
	}
}

/* --- requests ---------------------------------------------------------------------- */

bool pinner_unpin_wants(const struct pinner_unpin *u, uint32_t by, const char *labels)
{
	return (u->all || by == u->by) && store_pin_matches(labels, u->label, u->n_labels);
}

void pinner_say_of_nobody(struct pinner *p, uint64_t now_ns, const char *text)
{
	char line[900];
	if (now_ns < p->next_say_ns) {
		p->n_unsaid++;
		return;
	}
	snprintf(line, sizeof(line), p->n_unsaid > 0 ? "%s; %u more like this before" : "%s", text,
		p->n_unsaid);
	p->o.say(p->o.userdata, LOG_WARNING, line);
	p->next_say_ns = now_ns + SAY_NS;
	p->n_unsaid = 0;
}
