/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The ladder: which sampling source each hart gets, found by trying
 *
 * A rung is taken only if it opened on that hart, ran, and fired (and, with siblings, delivered
 * their values). An event that opens and never fires is a silent sampler: the rung is refused and
 * the next is tried. The reason of every refusal is kept for doctor.
 *
 * The hart's platform is only a hint: it names the core's own leaders, and the events that cannot
 * interrupt, so that we do not wait for those long. The try decides: an event that samples is taken
 * even if the platform says that it cannot, and an event that does not sample is refused.
 */

#include "daemon/kernel/machine.h"
#include "daemon/pmu/cores.h"
#include "daemon/pmu/event/event.h"
#include "daemon/sampler/stream.h"

#define PLAN_SIBLINGS_MAX 4
/* The core's own leaders: one for each mode, and one for all. */
#define PLAN_LEADERS_MAX 4
/* A try for each rung, and one for each own leader. */
#define PLAN_TRIES_MAX (3 + PLAN_LEADERS_MAX)

struct rung_try {
	enum rung rung;
	int error;   /* errno of the open; 0 if it opened */
	bool silent; /* opened and did not fire */
	/* silent since it never got a counter: another profiler has the counter */
	bool busy;
	bool doubted;      /* the platform says that the core cannot sample by this leader */
	bool dead_sibling; /* fired, but a sibling delivered nothing or did not open */
	char says[192];    /* a sentence for doctor, with the layer that refuses */
};

struct plan {
	enum rung rung; /* RUNG_NONE: nothing samples on this hart */
	struct event leader;
	struct event sibling[PLAN_SIBLINGS_MAX]; /* cycles, instructions where they count */
	int n_siblings;
	bool user_only; /* the kernel may not be sampled */
	bool switches;  /* the context-switch sibling opened too */
	uint8_t cut;    /* CUT_* of the groups that were opened by this plan; 0: none counts */
	bool summed;    /* with CUT_BPF: as sums by task */
	bool pinned; /* the group gets its counters before all that are not (sampler/priority.c) */
	bool yields; /* without counters for a while, since others use them; likewise */
	struct rung_try tries[PLAN_TRIES_MAX];
	int n_tries;
	char reason[EVENT_ERROR_BYTES];
};

struct ladder_options {
	const struct platform *platform; /* of the hart; NULL: nothing is known about it */
	const char *own_leader; /* event to lead with instead of the platform's ("r22"), or NULL */
	uint32_t hz;            /* rate to probe at */
	bool user_only;
	bool no_switches;      /* try without the context-switch sibling */
	struct trials *trials; /* leaders that were silent lately are not waited for; or NULL */
	/* May this event, which fires, lead the hart? NULL: any may. If not, the rung is not
	 * taken. */
	bool (*may_lead)(void *userdata, const struct event *leader);
	void *userdata;
};

/* The core's own events that may lead, in the order of the tries. If the kernel is profiled too,
 * the event that counts cycles in every mode comes first; else that of the least privileged mode,
 * since most time is spent there. Returns their number. */
int ladder_leaders(const struct platform *p, bool user_only,
	const struct platform_event *ret_leader[static PLAN_LEADERS_MAX]);

/* Find the rung for one hart; takes at most about 180 ms of that hart per rung tried. 0 (also with
 * RUNG_NONE); -errno only for an internal failure. */
int ladder_probe(const struct kernel *k, const struct machine *m, int hart,
	const struct ladder_options *o, struct plan *ret_plan);

/* Does this event count here? Opens it as a counter on the calling thread, keeps the hart busy, and
 * reads it. Tries the first and the last hart, or with cores (not NULL) that differ, one hart of
 * each kind. 0: counts; PROBE_ZERO: opens, never runs or stays 0; -errno as the open said. */
enum { PROBE_ZERO = 1 };
/* Exported for tests. */
int event_probe(const struct kernel *k, const struct machine *m, const struct event *e);
int event_probe_for(const struct kernel *k, const struct machine *m, const struct cores *c,
	const struct event *e);
