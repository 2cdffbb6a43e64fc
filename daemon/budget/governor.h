/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The governor: decides what always-on sampling gives up to keep to its budget
 *
 * It only decides, without input or output: from the measured cost of mperf on each hart, it
 * chooses one of a series of steps. It goes down fast, to the first step whose predicted cost is
 * within the budget or at which samples cost no more than seven tenths of it, and comes back slowly, one step at a time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/budget/cost.h"

/* Call governor_tick this often. */
#define GOVERNOR_TICK_NS 2000000000u
/* Consecutive ticks over the budget before something is given up, so that a burst of a second does
 * not suffice. */
#define GOVERNOR_OVER_TICKS 2
/* A step is taken back once sampling without it would have cost less than this share of the budget, or samples alone less
 * than a part of it, */
#define GOVERNOR_BACK_PART 0.85
/* for this long; the time doubles each time that the step is needed again within
 * GOVERNOR_FAILED_NS. */
#define GOVERNOR_BACK_NS 60000000000u
#define GOVERNOR_BACK_NS_MAX 600000000000u
#define GOVERNOR_FAILED_NS 600000000000u
/* The lowest rate that a step may set, in samples a second: below it, a minute has too few samples.
 * */
#define GOVERNOR_HZ_MIN 10u

/* In the order in which things are given up; each step includes those before it. */
enum governor_step {
	STEP_ALL, /* nothing is given up */
	STEP_NO_GROUPS,
	STEP_NO_CUT,
	STEP_NO_COUNTERS,
	STEP_RATE_2, /* half of the rate */
	STEP_RATE_4,
	STEP_RATE_8,
	STEP_CLOCK,
	STEP_NO_CALLERS,
	N_STEPS,
};

/* State of one hart over the last tick. */
struct governor_hart {
	int number;      /* of the machine */
	double busy;     /* samples that came, as a share of those expected by its rate: 0 to 1 */
	double switches; /* a second; 0 if not known */
	struct hart_cost cost;
	bool counts;   /* its samples may carry counters */
	bool cuts;     /* its counts may be cut at switches */
	bool sums;     /* by sums, without a record at each switch */
	bool by_clock; /* cpu-clock samples it, so there is no cheaper rung */
};

struct governor_load {
	double budget;    /* share of a hart's time; 0: no limit */
	uint32_t hz;      /* of always-on sampling, with nothing given up */
	double own;       /* CPU of all processes of mperf now, as a share of all harts' time */
	double record_ns; /* CPU time of it for one record; 0: not known */
	const struct governor_hart *hart;
	int n_harts;   /* ≥ 1 */
	bool callers;  /* samples may have callers */
	double groups; /* cost of rotating topdown groups on each hart, as a share of its time */
	/* only the rate may be given up, down to this one, since others use the same samples. 0:
	 * everything may */
	uint32_t hz_least;
};

struct governor {
	enum governor_step step;
	unsigned n_over; /* consecutive ticks over the budget for which samples may be given up */
	bool keeps; /* over the budget as of the last tick, but samples cost less than their part of it */
	uint64_t low_ns;      /* time since when a better step would be cheap enough; 0: it would
			       * not */
	uint64_t back_ns;     /* how long that must hold; 0: GOVERNOR_BACK_NS */
	uint64_t returned_ns; /* when a step was last taken back; 0: never */
	uint64_t changed_ns;  /* when the step last changed; 0: never */
	struct sampler_effort effort; /* the sampler's effort at this step, as of the last tick */
	char reason[192];             /* reason of the current step; "": nothing is given up */
};

/* The cost of the busiest hart at that step, as a share of its time, if the load stays as it is;
 * `now` is the step at which the load was measured. */
double governor_predict(
	const struct governor_load *l, enum governor_step now, enum governor_step step);

/* Decide. True if g->step changed; the caller applies it. now_ns: CLOCK_MONOTONIC, not 0. */
bool governor_tick(struct governor *g, const struct governor_load *l, uint64_t now_ns);

uint32_t governor_rate(enum governor_step step, uint32_t hz);
/* The same of a load with hz_least: the last step leaves only that. */
uint32_t governor_rate_above(enum governor_step step, uint32_t hz, uint32_t hz_least);

/* Records of all harts in a second at that step, for a price of one (record_ns). */
double governor_records(const struct governor_load *l, enum governor_step step);
