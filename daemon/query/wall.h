/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Wall time: how much of the time that passed each sample accounts for
 *
 * A sample stands for a stretch of time on its hart, which ends where it was taken. While n harts have such a
 * stretch at once, each of them accounts for an n-th of that time. So the wall times of all samples add up to the time
 * in which at least one hart worked, and code that runs alone weighs more than code that runs beside other code.
 *
 * A stretch's length is known to within one sampling period. Where two harts take turns faster than that, their stretches overlap by
 * chance, and wall time is too short: by a quarter, where two harts work half of the time each.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/kernel/machine.h"

/* Slot for samples with an impossible hart. */
#define WALL_HARTS (HARTS_MAX + 1)

struct wall_sample {
	double time_ns;   /* CLOCK_MONOTONIC */
	double weight_ns; /* time that it stands for, on its hart */
	uint32_t hart;    /* below WALL_HARTS */
	uint32_t row;     /* the caller's */
	/* set by wall_share: */
	double wall_ns;
	uint32_t
		harts; /* that worked at once, on average over the stretch and rounded; at least 1 */
};

/* Harts at work at once, given that share of a sample's time that is wall time: 1 to HARTS_MAX. */
uint32_t wall_harts(double share);

/* Find the wall time of each sample. Sorts them by time. Samples before the first and behind the last are not known, so
 * stretches near both ends have fewer neighbours than there were. O(n log n). 0 or -ENOMEM. */
int wall_share(struct wall_sample *sample, size_t n);

/* A stretch of which only the time of each hart in it is known, not what overlapped. */
struct wall_bounds {
	double least_ns, most_ns; /* all overlapped; as little as possible did */
	double likely_ns;         /* harts worked independently of each other */
};
/* busy_ns: by hart, n of them; longer than the stretch counts as the whole. */
struct wall_bounds wall_guess(const double *busy_ns, size_t n, double span_ns);
