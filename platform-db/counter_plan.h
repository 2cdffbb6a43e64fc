/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The plan of a hart's counters: which events are counted together, and in how many passes
 *
 * A core has few counters, and not each of them can count each event: by a mask for each event, in
 * banks, one event on one counter, or on a fixed counter of its own. A wish is a set of events whose
 * counts are compared, as those of one metric: they must be counted at the same time. A pass is a
 * set of events that the counters hold at the same time. A plan puts whole wishes into as few passes
 * as it can; passes take turns on the hart.
 *
 * The plan is pure: it knows masks, not kernels. Who opens it finds out whether the kernel agrees.
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
	PLAN_SPLIT,      /* no pass can hold it: its events are of different times */
	PLAN_IMPOSSIBLE, /* no counter can count one of its events: none of them is planned for it */
};

/* An event in a pass. */
struct plan_place {
	uint16_t event;
	/* on which it would fit; -1: it needs none. The kernel may choose another */
	int8_t counter;
};
#define PLAN_ELSEWHERE (-2) /* as a counter: its counter is not of this plan */

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

/* Plan wishes on the counters in `free`, a mask: those of the hart that nothing else uses. 0;
 * PLAN_TOO_LARGE: more events or wishes than the limits; -ENOMEM. At most some 10 ms. */
int counter_plan_make(const struct plan_event *event, size_t n_events, const struct plan_wish *wish,
	size_t n_wishes, uint64_t free_counters, struct counter_plan **ret_plan);
struct counter_plan *counter_plan_free(struct counter_plan *plan);
DEFINE_CLEANUP(struct counter_plan *, counter_plan_free)
