/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a child made is noted when it ends, however it ends: the report is in memory that both have, and a row
 * is counted once its file has its name. Only then goes what it takes the place of. A file without a row is of a
 * child that was killed between the two.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/service/pin_make.h"
#include "daemon/service/pinner_private.h"
#include "daemon/store/rollup/rollup.h"
#include "proto/clock.h"

static int run_child(void *userdata)
{
	struct pinner *p = userdata;
	const struct turn *t = pinner_turn_of(p, p->child_id);
	struct pin_making m = {
		.store = p->o.store,
		.ask = &t->ask,
		.exact = t->exact,
		.exact_uid = t->exact_uid,
		.group = t->group,
		.limits = p->limits,
		.report = &p->shared->report,
		.making = &p->shared->making,
	};
	pin_make(&m);
	return 0;
}

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

int pinner_start(struct pinner *p, struct turn *t)
{
	memset(p->shared, 0, sizeof(*p->shared));
	p->shared->report.outcome = PIN_FAILED;
	int r = pinner_take_running(p, t);
	if (r == PINNER_WAITS) {
		char text[160];
		snprintf(text, sizeof(text),
			"more jobs run than may wait for their end: " PIN_WAITS_SAYS,
			PIN_WAITS_USER_MAX, PIN_WAITS_MAX);
		fail(&p->shared->report, text, "Pin fewer of those that run, or unpin some.");
		end_turn(p, t);
		return 0;
	}
	if (r == PINNER_MANY) {
		p->shared->report.outcome = PIN_MANY;
		end_turn(p, t);
		return 0;
	}
	/* the one that is meant runs: nothing is to be looked for */
	if (r == 0 && t->exact && p->shared->report.n_jobs > 0) {
		p->shared->report.outcome = PIN_WELL;
		end_turn(p, t);
		return 0;
	}
	if (r < 0)
		return r;
	p->child_id = t->id;
	p->round = t->round;
	/* for want of processes or memory: the next dispatch tries again */
	if (offload_run(run_child, p, &p->child) != 0)
		p->child_id = 0;
	return 0;
}

/* The same job's pins of the same user that this one has the rows of, and what its group has too many. */
static void remove_replaced(struct pinner *p, const struct turn *t, const char *name)
{
	struct store *s = p->o.store;
	size_t at, made = store_pin_find(s, name);
	if (made == s->n_pins)
		return;
	for (size_t i = s->n_pins; i-- > 0;) {
		const struct store_pin *new = &s->pin[store_pin_find(s, name)], *old = &s->pin[i];
		if (old != new && old->by == new->by &&
			old->uid == new->uid &&strcmp(old->labels, new->labels) == 0 &&
			(old->keep > 0 || new->keep == 0) && old->start_ns >= new->start_ns &&
			old->end_ns <= new->end_ns)
			(void)store_pin_remove(s, i);
	}
	while ((at = store_pin_surplus(s, t->ask.by, t->group, t->ask.keep, 0)) < s->n_pins)
		if (store_pin_remove(s, at) < 0)
			break;
}

static bool has_row(const struct pin_report *r, const char *name)
{
	for (uint32_t i = 0; i < r->n_jobs && i < PIN_JOBS_MAX; i++)
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
	struct turn *t = pinner_turn_of(p, p->child_id);
	struct pin_report *r = &p->shared->report;
	char left[STORE_NAME_BYTES + sizeof(ROLLUP_NEW_SUFFIX)];
	if (end->signal != 0)
		fail(r,
			"the process that pins was ended, since it took too long or too much "
			"memory",
			"Pin fewer jobs at once.");
	add_last(p);
	for (uint32_t i = 0; i < r->n_jobs && i < PIN_JOBS_MAX; i++)
		if (r->job[i].state == PIN_MADE && store_pin_note(p->o.store, r->job[i].name) == 0)
			remove_replaced(p, t, r->job[i].name);
	/* of one that was killed */
	snprintf(left, sizeof(left), "%s" ROLLUP_NEW_SUFFIX, p->shared->making);
	if (*p->shared->making)
		store_pin_remove_unfinished(p->o.store, left);
	p->child = offload_free(p->child);
	p->child_id = 0;
	end_turn(p, t);
}
