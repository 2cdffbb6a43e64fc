/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Counts of a counter since the last answer, with their errors and doubts */

#include "daemon/count/counter.h"
#include "daemon/count/jackknife.h"
#include "daemon/count/plausible.h"

#define COUNTS_REASON_BYTES 256

struct counts {
	const struct machine *machine; /* borrowed, as all of it */
	const struct counter *counter;
	const struct counter_value *last; /* of the counter's events */
	/* For errors of scaled counts: readings of all events of the counter, NULL: none were taken; and
	 * the share of a count that rotation may take from it or add to it (count/rotation.h). */
	const struct jackknife *jackknife;
	double rotation;
	/* Counts of the counter's events, to be compared with each other; below 0: not counted. */
	struct plausible_count count[EVENTS_MAX];
};

/* Take the counter's values, less the last. */
void counts_take(struct counts *s, const struct machine *machine, const struct counter *counter,
	const struct counter_value *last);

/* The scaled count since the last answer. For the whole run, each hart and thread was scaled by its own times. For an
 * interval only the sums are known, since a difference of two scaled counts could fall below zero. */
double counts_scaled(const struct counter_value *now, const struct counter_value *last);

/* The share of the time in which event e was counted, 0 to 1. */
double counts_running(const struct counts *s, int e);

/* Half of the 95 % interval of event e's scaled count, and what rotation may have taken from it or added to
 * it; 0 if it was counted all of the time; NAN: not known. */
double counts_error(const struct counts *s, int e);

/* Take a reading of the counter for that interval, as jackknife_take does. */
void counts_read(struct jackknife *jackknife, const struct counter *counter, uint64_t now_ns,
	uint64_t took_ns);

/* Why event e has no count; NULL if it has one. Returns a static text or `reason`. */
const char *counts_why_not(const struct counts *s, int e, char reason[static COUNTS_REASON_BYTES]);
