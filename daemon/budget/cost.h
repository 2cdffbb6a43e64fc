/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Cost of sampling on a hart, found by measuring
 *
 * A sample: we read the clock on the hart again and again while the event fires. A sample takes the hart from us for as
 * long as the two readings around it are apart, so other work of the machine is no part of it. A switch: two threads
 * give way to each other with and without the events of a session, alternately, and half of the differences are above the
 * result. On a virtual machine whose PMU traps to the host, a sample
 * takes 20 µs and so does a switch; on a good machine each takes about 1 µs.
 *
 * The work is done in steps of a few ms, so that an event loop can do other work between them. The
 * measured events are like the session's own, and are opened in addition to these, which stay open
 * on both sides.
 */

#include "daemon/sampler/sampler.h"

#define COST_ROUNDS 9   /* most for one figure; odd, for the median of pairs */
#define COST_SAMPLES 48 /* that are enough for one figure */

enum cost_kind {
	COST_SWITCH,  /* what the context-switches sibling adds to a switch */
	COST_SUMS,    /* what summing up by BPF adds to a switch */
	COST_COUNTED, /* a sample by the hart's leader, with the group's counters */
	COST_SAMPLE,  /* a sample by that leader alone */
	COST_CLOCK,   /* a sample by cpu-clock alone */
	N_COSTS,
};

struct hart_cost {
	double ns[N_COSTS]; /* medians; negative: not known, or this hart has no such event */
	/* Where the median's 95 % interval includes 0, its upper end: it costs this at most. Otherwise 0. */
	double most_ns[N_COSTS];
};
#define HART_COST_UNKNOWN ((struct hart_cost){{-1, -1, -1, -1, -1}, {0}})

/* A measurement under way, of one hart. */
struct cost_measure {
	int hart; /* -1: none is under way */
	struct plan plan;
	struct hart_cost cost;
	enum cost_kind kind;        /* measured now */
	uint64_t period_ns;         /* of its samples */
	bool rough;                 /* these rounds only choose the period */
	double found[COST_SAMPLES]; /* of `kind`, so far; at least COST_ROUNDS */
	unsigned n_found, n_rounds;
};
_Static_assert(COST_SAMPLES >= COST_ROUNDS, "a pair gives one figure");

/* Begin with that hart, by the plan that the ladder found for it (copied). */
void cost_begin(struct cost_measure *m, const struct plan *plan, int hart);

/* Measure once: takes a ms of the hart for samples, and 2 to 10 ms for a pair with switches.
 * The form of the events and the BPF program are the sampler's; the program is loaded if necessary.
 * COST_MORE: call again. 0: all is measured, *ret_cost has it, and m is free. -errno: a resource is
 * exhausted; m is free. Costs of events that the kernel refuses stay unknown. */
enum { COST_MORE = 1 };
int cost_step(struct cost_measure *m, struct sampler *s, struct hart_cost *ret_cost);

/* Time in ns that cutting counts adds to a switch, by sums or by the sibling: 0 if unknown. */
double cost_of_switch(const struct hart_cost *c, bool summed);
/* Are sums cheaper than the sibling on that hart, by more than the noise? True if only the
 * sibling's cost is unknown, false if that of sums is. */
bool cost_prefers_sums(const struct hart_cost *c);

/* Time in ns that a sample takes on a hart whose group has (or has not) its counters: 0 if
 * unknown. */
double cost_of_sample(const struct hart_cost *c, bool counted, bool by_clock);
