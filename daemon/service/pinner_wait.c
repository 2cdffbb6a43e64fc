/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A job has ended when no process has its labels any more. Until then it has a place among those that wait, and
 * what was asked for last counts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/service/pinner_private.h"
#include "proto/memory.h"

static bool is_running(const struct pinner *p, uint32_t uid, const char *labels)
{
	for (const struct task *t = p->o.tasks->live; t; t = t->hh.next)
		if (t->process == t && t->labels && t->labels->uid == uid &&
			strcmp(t->labels->labels, labels) == 0)
			return true;
	return false;
}

static size_t find_wait(const struct pinner *p, uint32_t uid, const char *labels)
{
	size_t i = 0;
	while (i < p->n_waits && (p->wait[i].uid != uid || strcmp(p->wait[i].labels, labels) != 0))
		i++;
	return i;
}

bool pinner_awaits(const struct pinner *p, const struct label_set *set)
{
	return find_wait(p, set->uid, set->labels) < p->n_waits;
}

/* For a job of the turn t, which may be one of the list and then gives up its own place. */
static bool has_room(const struct pinner *p, const struct turn *t)
{
	const uint32_t by = t->ask.by;
	size_t n = p->n_waits, own = 0;
	for (size_t i = 0; i < p->n_waits; i++)
		own += p->wait[i].ask.by == by;
	for (size_t i = 0; i < p->n_turns; i++) {
		const bool has_place = p->turn[i].nobody_waits && &p->turn[i] != t;
		n += has_place;
		own += has_place && p->turn[i].ask.by == by;
	}
	return n < PIN_WAITS_MAX && own < PIN_WAITS_USER_MAX;
}

int pinner_add_wait(struct pinner *p, const struct turn *t, const struct label_set *set)
{
	const size_t at = find_wait(p, set->uid, set->labels);
	if (at == p->n_waits && !has_room(p, t))
		return PINNER_WAITS;
	struct wait w = {.ask = t->ask,
		.group = strdup(t->group),
		.labels = strdup(set->labels),
		.uid = set->uid};
	if (!w.group || !w.labels) {
		pinner_clear_wait(&w);
		return -ENOMEM;
	}
	if (at < p->n_waits)
		pinner_remove_wait(p, at); /* what was asked for last counts */
	p->wait[p->n_waits++] = w;
	return 0;
}

static bool is_wanted(const struct turn *t, const struct label_set *set)
{
	if (t->exact)
		return set->uid == t->exact_uid && strcmp(set->labels, t->exact) == 0;
	return (t->ask.all_users || set->uid == t->ask.by) &&
	       store_pin_matches(set->labels, t->ask.label, t->ask.n_labels);
}

void pinner_add_running(struct pin_report *report, const struct label_set *set)
{
	struct pin_job *row = &report->job[report->n_jobs++];
	*row = (struct pin_job){.state = PIN_RUNS, .uid = set->uid};
	snprintf(row->labels, sizeof(row->labels), "%s", set->labels);
}

/* Enter a set among those that began last: by id, the latest first, at most PIN_JOBS_MAX + 1. Returns how many
 * there are. */
static size_t enter_latest(const struct label_set **latest, size_t n, const struct label_set *set)
{
	size_t at = 0;
	while (at < n && latest[at]->id > set->id)
		at++;
	if (at > PIN_JOBS_MAX || (at < n && latest[at] == set))
		return n;
	n += n <= PIN_JOBS_MAX;
	memmove(&latest[at + 1], &latest[at], (n - at - 1) * sizeof(*latest));
	latest[at] = set;
	return n;
}

/* Does this request keep no more than it may pin? */
static bool is_bounded(const struct pin_ask *ask)
{
	return (ask->last > 0 && ask->last <= PIN_JOBS_MAX) ||
	       (ask->keep > 0 && ask->keep <= PIN_JOBS_MAX);
}

int pinner_take_running(struct pinner *p, const struct turn *t)
{
	struct pin_report *report = &p->shared->report;
	const struct label_set *latest[PIN_JOBS_MAX + 1];
	size_t n = 0, most = PIN_JOBS_MAX;
	for (const struct task *task = p->o.tasks->live; task; task = task->hh.next)
		if (task->process == task && task->labels && is_wanted(t, task->labels))
			n = enter_latest(latest, n, task->labels);
	if (n > PIN_JOBS_MAX && !is_bounded(&t->ask))
		return PINNER_MANY;
	if (t->ask.last > 0 && t->ask.last < most)
		most = t->ask.last;
	for (size_t i = n < most ? n : most; i-- > 0;) {
		int r = pinner_add_wait(p, t, latest[i]);
		if (r != 0)
			return r;
		pinner_add_running(report, latest[i]);
	}
	return 0;
}

void pinner_look_at_waits(struct pinner *p, uint64_t now_ns)
{
	for (size_t i = 0; i < p->n_waits;) {
		struct wait *w = &p->wait[i];
		if (is_running(p, w->uid, w->labels) ||
			p->n_turns == PIN_ASKS_MAX + PIN_WAITS_MAX) {
			i++;
			continue;
		}
		struct turn t = {.ask = w->ask,
			.exact_uid = w->uid,
			.id = ++p->last_id,
			.since_ns = now_ns,
			.nobody_waits = true};
		t.group = TAKE_PTR(w->group);
		t.exact = TAKE_PTR(w->labels);
		pinner_add_turn(p, &t);
		pinner_remove_wait(p, i);
	}
}
