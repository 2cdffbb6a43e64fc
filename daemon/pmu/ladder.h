/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The ladder: which sampling source each hart gets, found by trying
 *
 * A rung is taken only if it was opened on that hart, ran, and was seen to fire (and, with
 * siblings, to bring their values). An event that opens and never fires is a silent sampler: the
 * rung is refused and the next is tried. The reason of every refusal is kept for doctor.
 *
 * The hart's platform guides: it names the leaders of the core's own, and says which events cannot
 * interrupt, so that nobody waits for them for long. It decides nothing: what it says cannot sample
 * and is seen to do is taken, and what it says can and does not is refused.
 */

#include "daemon/pmu/cores.h"
#include "daemon/pmu/event.h"
#include "daemon/pmu/machine.h"
#include "daemon/pmu/stream.h"

#define PLAN_SIBLINGS_MAX 4
/* Of the core's own: one for each mode, and one for all. */
#define PLAN_LEADERS_MAX 4
/* Each rung once, and that of own leaders for each. */
#define PLAN_TRIES_MAX (3 + PLAN_LEADERS_MAX)

struct rung_try {
	enum rung rung;
	int error;         /* errno of the open; 0 if it opened */
	bool silent;       /* opened and did not fire */
	bool busy;         /* silent since it never got a counter: somebody else has it */
	bool dead_sibling; /* fired, but a sibling brought nothing or did not open */
	char says[192];    /* a sentence for doctor, with the layer that refuses */
};

struct plan {
	enum rung rung; /* RUNG_NONE: nothing samples on this hart */
	struct event leader;
	struct event sibling[PLAN_SIBLINGS_MAX]; /* cycles, instructions where they count */
	int n_siblings;
	bool user_only; /* the kernel refuses to let us see it */
	bool switches;  /* the context-switch sibling opened too */
	uint8_t cut;    /* CUT_* of the groups that were opened by this plan; 0: none counts */
	struct rung_try tries[PLAN_TRIES_MAX];
	int n_tries;
	char reason[EVENT_ERROR_BYTES];
};

struct ladder_options {
	const struct platform *platform; /* of the hart; NULL: nothing is known of it */
	const char *own_leader; /* event to lead with in place of the platform's ("r22"), or NULL */
	uint32_t hz;            /* rate to probe at */
	bool user_only;
	bool no_switches; /* try without the context-switch sibling */
	/* May the hart be led by this event, which fires? NULL: by any. What may not is a rung that
	 * is not taken. */
	bool (*may_lead)(void *userdata, const struct event *leader);
	void *userdata;
};

/* The core's own events that may lead, in the order in which they are tried. Where the kernel is
 * profiled too, what counts cycles in every mode comes first; else the least privileged mode does,
 * since most time is spent there. Returns how many. */
int ladder_leaders(const struct platform *p, bool user_only,
	const struct platform_event *ret_leader[static PLAN_LEADERS_MAX]);

/* Find the rung for one hart; takes at most about 60 ms of that hart per rung tried.
 * 0 (also with RUNG_NONE); -errno only for our own trouble. */
int ladder_probe(const struct kernel *k, const struct machine *m, int hart,
	const struct ladder_options *o, struct plan *ret_plan);

/* Does this event count here? Opens it as a counter on the calling thread, keeps busy, reads. Asked
 * of the first and the last hart, or with cores (not NULL) that differ, of one of each kind.
 * 0: counts; PROBE_ZERO: opens, never runs or stays 0; -errno as the open said. */
enum { PROBE_ZERO = 1 };
int event_probe(const struct kernel *k, const struct machine *m, const struct event *e);
int event_probe_for(const struct kernel *k, const struct machine *m, const struct cores *c,
	const struct event *e);
