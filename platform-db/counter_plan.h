/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The plan of a hart's counters: the events that are counted together, in as few passes as possible
 *
 * A core has few counters, and not every counter can count every event: an event may have a mask of
 * counters, a bank, a single counter, or a fixed counter of its own. A wish is a set of events whose
 * counts are compared, such as those of a metric: they must be counted at the same time. A pass is a
 * set of events that are counted at the same time. A plan puts whole wishes into as few passes as it
 * can; the passes rotate on the hart.
 *
 * The plan is pure: it uses masks, and does not ask the kernel. Opening it shows whether the kernel
 * agrees.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/memory.h"

#define PLAN_EVENTS_MAX 512 /* of one hart; "every metric" of Intel's largest core needs 230 */
#define PLAN_WISHES_MAX 512
#define PLAN_COUNTERS_MAX 64

/* Counters that can count the event, as a mask, fixed ones included. An event that is counted by the
 * kernel or by firmware needs none. */
struct plan_event {
	uint64_t counters;
	bool needs_none;
};

/* Events that must be counted at the same time. */
struct plan_wish {
	const uint16_t *event; /* n_events positions in the list of events, each once */
	size_t n_events;
};

enum plan_fate {
	PLAN_WHOLE,      /* all of its events are in one pass */
	PLAN_SPLIT,      /* no pass can hold it: its events are counted at different times */
	PLAN_IMPOSSIBLE, /* no counter can count one of its events: none of them is planned for it */
};

/* An event in a pass. */
struct plan_place {
	uint16_t event;
	/* a counter on which it fits; -1: it needs none. The kernel may choose another */
	int8_t counter;
};
#define PLAN_ELSEWHERE (-2) /* as a counter: a counter outside this plan */

struct plan_pass {
	struct plan_place *place; /* n_places, by event */
	size_t n_places;
};

struct counter_plan {
	struct plan_pass *pass; /* n_passes */
	size_t n_passes;
	bool is_minimal; /* no plan of these whole wishes has fewer; else the search was cut off */
	/* For each wish, in their order: */
	enum plan_fate *fate;
	size_t *pass_of;   /* PLAN_WHOLE: the pass */
	uint16_t *because; /* PLAN_IMPOSSIBLE: the event that no counter can count */
};

enum { PLAN_TOO_LARGE = 1 };

/* Plan wishes on the counters in the mask `free`: those of the hart that are not in use. 0;
 * PLAN_TOO_LARGE: more events or wishes than the limits; -ENOMEM. At most some 10 ms. */
int counter_plan_make(const struct plan_event *event, size_t n_events, const struct plan_wish *wish,
	size_t n_wishes, uint64_t free_counters, struct counter_plan **ret_plan);
struct counter_plan *counter_plan_free(struct counter_plan *plan);
DEFINE_CLEANUP(struct counter_plan *, counter_plan_free)
