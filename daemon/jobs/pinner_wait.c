/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A job has ended when no process has its labels any more. Until then it has a place among those that wait, and
 * what was asked for last counts.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/pinner_private.h"
#include "proto/base/clock.h"

static size_t find_wait(const struct pinner *p, const struct label_set *set)
{
	size_t i = 0;
	while (i < p->n_waits && p->wait[i].set != set)
		i++;
	return i;
}

bool pinner_awaits(const struct pinner *p, const struct label_set *set)
{
	return find_wait(p, set) < p->n_waits;
}

bool pinner_has_place(const struct pinner *p, const struct turn *t)
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

int pinner_add_wait(struct pinner *p, const struct turn *t, struct label_set *set)
{
	const size_t at = find_wait(p, set);
	if (at == p->n_waits && !pinner_has_place(p, t))
		return PINNER_WAITS;
	struct wait w = {.id = ++p->last_wait, .ask = t->ask, .group = strdup(t->group)};
	if (!w.group)
		return -ENOMEM;
	w.set = label_set_hold(set);
	if (at < p->n_waits)
		pinner_remove_wait(p, at); /* what was asked for last counts */
	p->wait[p->n_waits++] = w;
	return 0;
}

static bool is_wanted(const struct turn *t, const struct label_set *set)
{
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
static size_t enter_latest(struct label_set **latest, size_t n, struct label_set *set)
{
	size_t at = 0;
	while (at < n && latest[at]->id > set->id)
		at++;
	if (at > PIN_JOBS_MAX)
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
	struct label_set *latest[PIN_JOBS_MAX + 1], *set = p->o.tasks->label_sets.set;
	size_t n = 0, most = PIN_JOBS_MAX;
	for (; set; set = set->hh.next)
		if (set->n_live > 0 && is_wanted(t, set))
			n = enter_latest(latest, n, set);
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

/* A job that has ended gets a turn. The caller has seen that there is room. 0 or -ENOMEM. */
static int add_ended(struct pinner *p, const struct pin_ask *ask, const char *group, uint32_t uid,
	const char *labels)
{
	struct turn t = {.ask = *ask,
		.group = strdup(group),
		.exact = strdup(labels),
		.exact_uid = uid,
		.id = ++p->last_id,
		.since_ns = clock_ns(CLOCK_MONOTONIC),
		.nobody_waits = true};
	if (!t.group || !t.exact) {
		pinner_clear_turn(&t);
		return -ENOMEM;
	}
	pinner_add_turn(p, &t);
	return 0;
}

int pinner_await_row(struct pinner *p, const struct turn *t, const struct pin_job *row)
{
	struct label_set *set = label_set_find(&p->o.tasks->label_sets, row->uid, row->labels);
	if (set)
		return pinner_add_wait(p, t, set);
	/* it ended while the child looked, and nothing is left of it */
	if (!pinner_has_place(p, t) || p->n_turns == PIN_ASKS_MAX + PIN_WAITS_MAX)
		return PINNER_WAITS;
	return add_ended(p, &t->ask, t->group, row->uid, row->labels);
}

void pinner_look_at_waits(struct pinner *p)
{
	for (size_t i = 0; i < p->n_waits;) {
		const struct wait *w = &p->wait[i];
		if (w->set->n_live > 0 || p->n_turns == PIN_ASKS_MAX + PIN_WAITS_MAX ||
			add_ended(p, &w->ask, w->group, w->set->uid, w->set->labels) != 0)
			i++; /* or later */
		else
			pinner_remove_wait(p, i);
	}
}
