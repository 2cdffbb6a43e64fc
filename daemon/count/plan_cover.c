/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Wishes that the same groups cover are one pass, which then reads each hart's group once. The requests to the
 * kernel are the same for all harts of one kind, so we make them once, and look for them on each hart.
 */
#include "daemon/count/plan_cover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UNCOVERED SIZE_MAX

/* Events that are read together. */
struct covered {
	uint16_t event[EVENT_GROUP_MAX];
	size_t n;
};

struct covering {
	const struct plan_question *q;
	struct hart_event *asked; /* by event */
	struct covered *pass;     /* n_passes; a wish has one at most */
	size_t n_passes;
	size_t *pass_of; /* by wish; UNCOVERED */
};

static void clear(struct covering *c)
{
	free(c->asked);
	free(c->pass);
	free(c->pass_of);
}

static int first_hart(const struct hart_set *harts)
{
	int hart = 0;
	while (hart < HARTS_MAX && !hart_set_has(harts, hart))
		hart++;
	return hart;
}

static int begin(struct covering *c, const struct plan_question *q)
{
	*c = (struct covering){.q = q,
		.asked = calloc(q->n_events + 1, sizeof(*c->asked)),
		.pass = calloc(q->n_wishes + 1, sizeof(*c->pass)),
		.pass_of = calloc(q->n_wishes + 1, sizeof(*c->pass_of))};
	if (!c->asked || !c->pass || !c->pass_of)
		return -ENOMEM;
	for (size_t i = 0; q->terms && i < q->n_events; i++)
		if (q->parsed[i])
			c->asked[i] = counter_asks(q->terms, q->parsed[i], first_hart(q->harts));
	return 0;
}

/* --- what groups have ------------------------------------------------------------------------- */

static bool is_open(const struct covering *c, const struct covered *pass)
{
	const struct hart_groups *groups = cores_groups(c->q->terms->cores);
	struct hart_event asked[EVENT_GROUP_MAX];
	bool all = groups != NULL;
	for (size_t i = 0; i < pass->n; i++)
		asked[i] = c->asked[pass->event[i]];
	for (int hart = 0; hart < HARTS_MAX && all; hart++)
		if (hart_set_has(c->q->harts, hart))
			all = hart_groups_have(groups, hart, asked, pass->n);
	return all;
}

/* Add the wish's events. False: there are too many of them, or not all can be counted. */
static bool add_events(const struct covering *c, struct covered *pass, const struct plan_wish *w)
{
	for (size_t i = 0; i < w->n_events; i++) {
		size_t at = 0;
		while (at < pass->n && pass->event[at] != w->event[i])
			at++;
		if (at == EVENT_GROUP_MAX || !c->q->parsed[w->event[i]])
			return false;
		pass->event[at] = w->event[i];
		pass->n += at == pass->n;
	}
	return true;
}

/* The pass that reads the wish's events: together with those of others, or alone. */
static size_t cover(struct covering *c, const struct plan_wish *w)
{
	for (size_t i = 0; i <= c->n_passes && w->n_events > 0; i++) {
		struct covered with = c->pass[i];
		if (!add_events(c, &with, w) || !is_open(c, &with))
			continue;
		c->pass[i] = with;
		c->n_passes += i == c->n_passes;
		return i;
	}
	return UNCOVERED;
}

/* --- the whole plan --------------------------------------------------------------------------- */

static int by_event(const void *a, const void *b)
{
	const struct plan_place *x = a, *y = b;
	return (x->event > y->event) - (x->event < y->event);
}

/* Append the covered passes. */
static int add_passes(const struct covering *c, struct counter_plan *plan)
{
	struct plan_pass *grown =
		reallocarray(plan->pass, plan->n_passes + c->n_passes + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	plan->pass = grown;
	for (size_t i = 0; i < c->n_passes; i++) {
		const struct covered *from = &c->pass[i];
		struct plan_pass pass = {calloc(from->n, sizeof(*pass.place)), from->n};
		if (!pass.place)
			return -ENOMEM;
		for (size_t j = 0; j < from->n; j++)
			pass.place[j] = (struct plan_place){from->event[j], PLAN_ELSEWHERE};
		qsort(pass.place, pass.n_places, sizeof(*pass.place), by_event);
		plan->pass[plan->n_passes++] = pass;
	}
	return 0;
}

/* Turn a plan of the wishes that are not covered into a plan of all wishes. */
static int add_wishes(const struct covering *c, struct counter_plan *plan)
{
	const size_t n = c->q->n_wishes + 1, n_packed = plan->n_passes;
	enum plan_fate *fate = calloc(n, sizeof(*fate));
	size_t *pass_of = calloc(n, sizeof(*pass_of));
	uint16_t *because = calloc(n, sizeof(*because));
	if (!fate || !pass_of || !because) {
		free(fate);
		free(pass_of);
		free(because);
		return -ENOMEM;
	}
	for (size_t i = 0, at = 0; i < c->q->n_wishes; i++) {
		bool covered = c->pass_of[i] != UNCOVERED;
		fate[i] = covered ? PLAN_WHOLE : plan->fate[at];
		pass_of[i] = covered ? n_packed + c->pass_of[i] : plan->pass_of[at];
		because[i] = covered ? 0 : plan->because[at];
		at += !covered;
	}
	free(plan->fate);
	free(plan->pass_of);
	free(plan->because);
	plan->fate = fate;
	plan->pass_of = pass_of;
	plan->because = because;
	return add_passes(c, plan);
}

static int pack_rest(const struct covering *c, struct counter_plan **ret_plan)
{
	const struct plan_question *q = c->q;
	_cleanup_(freep) struct plan_wish *rest = calloc(q->n_wishes + 1, sizeof(*rest));
	size_t n = 0;
	if (!rest)
		return -ENOMEM;
	for (size_t i = 0; i < q->n_wishes; i++)
		if (c->pass_of[i] == UNCOVERED)
			rest[n++] = q->wish[i];
	return counter_plan_make(q->event, q->n_events, rest, n, q->free_counters, ret_plan);
}

int plan_cover_make(
	const struct plan_question *q, struct counter_plan **ret_plan, size_t *ret_n_covered)
{
	struct covering c;
	_cleanup_(counter_plan_freep) struct counter_plan *plan = NULL;
	int r = begin(&c, q);
	for (size_t i = 0; i < q->n_wishes && r == 0; i++)
		c.pass_of[i] = q->terms ? cover(&c, &q->wish[i]) : UNCOVERED;
	if (r == 0)
		r = pack_rest(&c, &plan);
	if (r == 0 && c.n_passes > 0)
		r = add_wishes(&c, plan);
	if (r == 0) {
		*ret_n_covered = c.n_passes;
		*ret_plan = TAKE_PTR(plan);
	}
	clear(&c);
	return r;
}
