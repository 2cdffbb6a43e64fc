/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a child made is noted when it ends, however it ends: the report is in memory that both have, and a row
 * is counted once its file has its name. Only then goes what it takes the place of. A file without a row is of a
 * child that was killed between the two. Whatever looks at all labels or pins is done by the child, and what it
 * made is noted in slices, since that may remove as many pins as a store has.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/budget/turns.h"
#include "daemon/jobs/pin_make.h"
#include "daemon/jobs/pinner_private.h"
#include "daemon/store/rollup/rollup.h"
#include "proto/base/clock.h"

static void fail(struct pin_report *r, const char *text, const char *remedy)
{
	r->outcome = PIN_FAILED;
	snprintf(r->text, sizeof(r->text), "%s", text);
	snprintf(r->remedy, sizeof(r->remedy), "%s", remedy);
}

/* Keep the report for who waits for it. */
static void end_turn(struct pinner *p, struct turn *t)
{
	const struct pin_report *r = &p->shared->report;
	if (t->nobody_waits) {
		if (r->outcome == PIN_FULL || r->outcome == PIN_FAILED)
			pinner_say_of_nobody(p, clock_ns(CLOCK_MONOTONIC), r->text);
		pinner_remove_turn(p, (size_t)(t - p->turn));
		return;
	}
	t->report = malloc(sizeof(*t->report));
	if (t->report)
		*t->report = *r;
	else
		pinner_remove_turn(p, (size_t)(t - p->turn));
}

static void fail_waits(struct pin_report *r)
{
	char text[160];
	snprintf(text, sizeof(text), "more jobs run than may wait for their end: " PIN_WAITS_SAYS,
		PIN_WAITS_USER_MAX, PIN_WAITS_MAX);
	fail(r, text, "Pin fewer of those that run, or unpin some.");
}

static int run_child(void *userdata)
{
	struct pinner *p = userdata;
	const struct turn *t = pinner_turn_of(p, p->child_id);
	struct pin_report *report = &p->shared->report;
	struct pin_making m = {
		.store = p->o.store,
		.ask = &t->ask,
		.exact = t->exact,
		.exact_uid = t->exact_uid,
		.group = t->group,
		.limits = p->limits,
		.report = report,
		.making = &p->shared->making,
	};
	int r = t->exact ? 0 : pinner_take_running(p, t);
	if (r == PINNER_WAITS)
		fail_waits(report);
	else if (r == PINNER_MANY)
		report->outcome = PIN_MANY;
	else if (r == 0)
		pin_make(&m);
	return r < 0;
}

/* The one that is meant runs again: there is nothing to be looked for. */
static bool wait_again(struct pinner *p, struct turn *t, int *ret_r)
{
	struct pin_report *report = &p->shared->report;
	struct label_set *set =
		t->exact ? label_set_find(&p->o.tasks->label_sets, t->exact_uid, t->exact) : NULL;
	if (!set || set->n_live == 0)
		return false;
	*ret_r = pinner_add_wait(p, t, set);
	if (*ret_r == PINNER_WAITS)
		fail_waits(report);
	else
		report->outcome = PIN_WELL;
	return true;
}

int pinner_start(struct pinner *p, struct turn *t)
{
	int r = 0;
	memset(p->shared, 0, sizeof(*p->shared));
	p->shared->report.outcome = PIN_FAILED;
	if (wait_again(p, t, &r)) {
		if (r >= 0)
			end_turn(p, t);
		return r < 0 ? r : 0;
	}
	p->child_id = t->id;
	p->round = t->round;
	/* for want of processes or memory: the next dispatch tries again */
	if (offload_run(run_child, p, &p->child) != 0)
		p->child_id = 0;
	return 0;
}

static bool is_replaced(const struct store_pin *old, const struct store_pin *new)
{
	return old != new && old->by == new->by && old->uid == new->uid &&
	       (old->keep > 0 || new->keep == 0) && old->start_ns >= new->start_ns &&
	       old->end_ns <= new->end_ns &&
	       old->labels_hash == new->labels_hash &&strcmp(old->labels, new->labels) == 0;
}

/* One pin that goes: of the same job and user, that this one has the rows of, or of its group's, one too many.
 * n_pins: there is none. */
static size_t find_replaced(const struct store *s, const struct turn *t, const char *name)
{
	const size_t made = store_pin_find(s, name);
	if (made == s->n_pins)
		return s->n_pins;
	for (size_t i = s->n_pins; i-- > 0;)
		if (is_replaced(&s->pin[i], &s->pin[made]))
			return i;
	return store_pin_surplus(s, t->ask.by, t->group, t->ask.keep, 0);
}

static bool has_row(const struct pin_report *r, const char *name)
{
	for (uint32_t i = 0; i < r->n_jobs; i++)
		if (strcmp(r->job[i].name, name) == 0)
			return true;
	return false;
}

/* A child that was killed after its file got its name, and before its row was counted: the file is whole. */
static void add_last(struct pinner *p)
{
	const struct store *s = p->o.store;
	struct pin_report *r = &p->shared->report;
	const char *name = p->shared->making;
	if (!*name || has_row(r, name) || r->n_jobs >= PIN_JOBS_MAX ||
		store_pin_note(p->o.store, name) != 0)
		return;
	const struct store_pin *pin = &s->pin[store_pin_find(s, name)];
	struct pin_job *row = &r->job[r->n_jobs++];
	*row = (struct pin_job){.state = PIN_MADE, .uid = pin->uid, .bytes = pin->bytes};
	snprintf(row->name, sizeof(row->name), "%s", name);
	snprintf(row->labels, sizeof(row->labels), "%s", pin->labels);
}

void pinner_take_end(struct pinner *p, const struct offload_end *end)
{
	struct pin_report *r = &p->shared->report;
	char left[STORE_NAME_BYTES + sizeof(ROLLUP_NEW_SUFFIX)];
	if (end->signal != 0)
		fail(r,
			"the process that pins was ended, since it took too long or too much "
			"memory",
			"Pin fewer jobs at once.");
	else if (end->status != 0)
		fail(r, "there was too little memory to look for jobs", "Try again later.");
	if (r->n_jobs > PIN_JOBS_MAX) /* of a child in whatever state */
		r->n_jobs = PIN_JOBS_MAX;
	add_last(p);
	/* of one that was killed */
	snprintf(left, sizeof(left), "%s" ROLLUP_NEW_SUFFIX, p->shared->making);
	if (*p->shared->making)
		store_pin_remove_unfinished(p->o.store, left);
	p->child = offload_free(p->child);
	p->taking = (struct taking){.goes_on = true};
}

/* A row that runs will be pinned later. False: the wait has no place any more, and the row goes; what was made stays,
 * before it and behind. */
static bool take_running(struct pinner *p, const struct turn *t, struct pin_job *row)
{
	struct pin_report *report = &p->shared->report;
	int r = pinner_await_row(p, t, row);
	if (r == 0)
		return true;
	if (r == PINNER_WAITS)
		fail_waits(report);
	else
		fail(report, "there was too little memory", "Try again later.");
	memmove(row, row + 1, (size_t)(&report->job[--report->n_jobs] - row) * sizeof(*row));
	return false;
}

/* One step: a row is noted, or one pin goes for it. False: nothing is left to do. */
static bool take_step(struct pinner *p, const struct turn *t)
{
	struct taking *at = &p->taking;
	struct store *s = p->o.store;
	struct pin_report *r = &p->shared->report;
	if (at->row >= r->n_jobs)
		return false;
	struct pin_job *row = &r->job[at->row];
	if (row->state == PIN_RUNS && !take_running(p, t, row))
		return true;
	if (row->state == PIN_MADE && !at->is_noted && store_pin_note(s, row->name) == 0) {
		at->is_noted = true;
		return true;
	}
	const size_t goes = at->is_noted ? find_replaced(s, t, row->name) : s->n_pins;
	if (goes == s->n_pins || store_pin_remove(s, goes) < 0)
		*at = (struct taking){.goes_on = true, .row = at->row + 1};
	return true;
}

void pinner_take_made(struct pinner *p)
{
	const uint64_t until_ns = slice_begin();
	struct turn *t = pinner_turn_of(p, p->child_id);
	while (take_step(p, t))
		if (slice_is_over(until_ns))
			return;
	p->taking = (struct taking){.goes_on = false};
	p->child_id = 0;
	end_turn(p, t);
}
