/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Always-on sampling takes precedence over counts that a user requests. The kernel gives counters to
 * pinned groups first, and lets the others rotate on the remaining counters; so the groups of always-on
 * sampling are pinned.
 *
 * But a group that is pinned for good keeps its counters from every program. A RISC-V core has one
 * counter for cycles and one for instructions: if these were pinned, neither our own stat nor perf could
 * count cycles for as long as the service runs. So a group is pinned only if each of its events could be
 * counted once more at the same time, according to the platform data. Other plans use the remaining
 * counters. If the group is not pinned, it rotates with others. If it gets too little of the time, it
 * continues without counters for a minute: no sample is missing, only counts are.
 *
 *      each of its events fits once more    pinned
 *      else, nobody else counts             not pinned, and has its counters all the time
 *      else                                 the leader alone, pinned if there is room; else cpu-clock
 *
 * A pinned group that finds no counter, since another program has pinned one too (a watchdog, perf with
 * the modifier D), counts nothing and stays silent until it is enabled again. The check in hart_share.c
 * enables it, and if it still finds none climbs the ladder, which ends at cpu-clock.
 * Source: merge_sched_in and __perf_read in kernel/events/core.c of Linux 6.12.
 *
 * Recordings, stat and sessions of a private daemon are not pinned, since a user asked for them. Nor are
 * events per task. The kernel places those again whenever a task comes to a hart, and an event that was
 * displaced once, in some thread, would be silent there for the rest of its life.
 */

#include "daemon/pmu/event/counters.h"
#include "daemon/sampler/sampler_private.h"

#define MEMBERS_MAX (1 + PLAN_SIBLINGS_MAX)

/* The members of a plan's group, for the planner of counters. */
struct members {
	struct plan_event event[MEMBERS_MAX + 1];
	uint16_t position[MEMBERS_MAX + 1];
	size_t n;
	uint64_t all_counters;
};

static void add_member(struct members *m, struct plan_event event)
{
	m->position[m->n] = (uint16_t)m->n;
	m->event[m->n++] = event;
}

static struct members members_of(const struct platform *platform, const struct plan *p)
{
	struct members m = {.all_counters = platform_all_counters(platform)};
	add_member(&m, event_counters(platform, &p->leader));
	for (int i = 0; i < p->n_siblings; i++)
		add_member(&m, event_counters(platform, &p->sibling[i]));
	return m;
}

/* Find the counters that the members use if all count at the same time, as a mask. False: they
 * cannot. */
static bool place(const struct members *m, uint64_t *ret_counters)
{
	_cleanup_(counter_plan_freep) struct counter_plan *plan = NULL;
	const struct plan_wish wish = {m->position, m->n};
	uint64_t counters = 0;
	if (counter_plan_make(m->event, m->n, &wish, 1, m->all_counters, &plan) != 0 ||
		plan->fate[0] != PLAN_WHOLE)
		return false;
	for (size_t i = 0; i < plan->pass[0].n_places; i++)
		if (plan->pass[0].place[i].counter >= 0)
			counters |= UINT64_C(1) << plan->pass[0].place[i].counter;
	*ret_counters = counters;
	return true;
}

/* The counters of the plan's group, if each member could be counted once more at the same time; else 0. */
static uint64_t pinned_counters(const struct sampler *s, int hart, const struct plan *p)
{
	const struct platform *platform = cores_platform(s->options.cores, hart);
	const struct members m = members_of(platform, p);
	uint64_t counters, more;
	if (platform->counters == 0 || !place(&m, &counters))
		return 0;
	for (size_t i = 0; i < m.n; i++) {
		struct members again = m;
		add_member(&again, m.event[i]);
		if (!place(&again, &more))
			return 0;
	}
	return counters;
}

bool plan_leaves_room(const struct sampler *s, int hart, const struct plan *p)
{
	return pinned_counters(s, hart, p) != 0;
}

void plan_pin(const struct sampler *s, int hart, struct plan *p)
{
	bool may = s->options.always && !s->options.per_task && p->rung != RUNG_NONE;
	uint64_t counters = may ? pinned_counters(s, hart, p) : 0;
	p->pinned = counters != 0;
	if (s->options.always)
		cores_hold(s->options.cores, hart, counters);
}
