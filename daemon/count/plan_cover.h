/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A plan that uses the groups that are open: the events that they count need no pass of its own
 *
 *      open on all harts   {cycles instructions r3}
 *      wishes              {cycles instructions} {r3 cycles} {r4 cycles}
 *      plan                {r4 cycles}, and {cycles instructions r3}, which is read there
 */

#include "daemon/count/counter_group.h"
#include "platform-db/counter_plan.h"

struct plan_question {
	const struct plan_event *event;    /* n_events */
	const struct event *const *parsed; /* of each; NULL: it cannot be counted */
	size_t n_events;
	const struct plan_wish *wish; /* n_wishes */
	size_t n_wishes;
	uint64_t free_counters;
	/* The harts, all of one kind, and the terms of the counts. NULL terms: not in shared groups */
	const struct hart_set *harts;
	const struct counter_terms *terms;
};

/* Plan as counter_plan_make does, but do not pack wishes that are covered by groups that are open on all
 * of the harts. Those wishes are the last *ret_n_covered passes: their counts are read from the open
 * groups, and their places have PLAN_ELSEWHERE for a counter. is_minimal is about the other passes. */
int plan_cover_make(
	const struct plan_question *q, struct counter_plan **ret_plan, size_t *ret_n_covered);
