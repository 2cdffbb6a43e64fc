/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* All taps of a session use the index of its events from its start on. But harts may be planned again
 * during the session: they come online, lose their counters to another user, or get them back. So at
 * the start we enter the events by which they may sample later, without opening them. If nothing can
 * change, there is nothing to enter.
 */

#include "daemon/pmu/event/event_on_core.h"
#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

static void reserve(struct sampler *s, struct event e)
{
	event_exclude_kernel(&e, s->options.user_only || !s->machine.may_see_kernel);
	(void)event_enter(s, &e); /* full: a hart that needs it reports that */
}

/* The leaders of the machine's cores, and the caller's. */
static void reserve_leaders(struct sampler *s)
{
	struct event_list own = {0};
	struct event_error error;
	if (s->options.own_leader &&
		event_parse(s->kernel, s->options.own_leader, &own, &error) == 0 &&
		own.n_events == 1)
		reserve(s, own.event[0]);
	for (int h = cores_kind(s->options.cores, 0); h >= 0;
		h = cores_kind(s->options.cores, h + 1)) {
		const struct platform_event *leader[PLAN_LEADERS_MAX];
		int n = ladder_leaders(cores_platform(s->options.cores, h),
			s->options.user_only || !s->machine.may_see_kernel, leader);
		for (int i = 0; i < n; i++) {
			event_of_platform(leader[i], &own.event[0]);
			reserve(s, own.event[0]);
		}
	}
}

static bool was_busy(const struct plan *p)
{
	bool busy = false;
	for (int i = 0; i < p->n_tries; i++)
		busy |= p->tries[i].busy;
	return busy;
}

void plan_reserve(struct sampler *s)
{
	bool counts = false, busy = false;
	bool may_come = hart_set_count(&s->seen) < s->machine.n_harts;
	for (int hart = 0; !s->options.events && hart < s->machine.n_harts; hart++) {
		const struct plan *p = &s->plan[hart];
		counts |= p->rung == RUNG_CYCLES || p->rung == RUNG_LEADER;
		busy |= was_busy(p);
	}
	if (counts || busy)
		reserve(s, event_cpu_clock());
	if (busy) {
		reserve(s, event_cycles());
		reserve(s, event_instructions());
	}
	if (busy || (counts && may_come))
		reserve_leaders(s);
	events_fix(s);
}
