/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Counts: what stat prints
 *
 * The daemon sends a row per event and round; here rounds become lines like perf stat's, with
 * figures that follow from one another (IPC, shares of misses, rates) beside the counts.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "client/show/reply.h"

#define COUNTS_MAX 131072 /* events and metrics of a request (128) on each hart (1024) */

struct count {
	char *event;  /* as the daemon calls it */
	char *reason; /* why it was not measured; or NULL */
	char *unit;   /* of a metric, maybe ""; NULL: an event */
	char *harts;  /* harts that were counted, "0-3"; NULL: all */
	bool measured;
	double value;         /* scaled to the whole time if multiplexed */
	double running_share; /* 1: all the time */
	double error; /* of a metric: half of its 95 % interval, in its unit; NAN: not known */
	/* over repetitions */
	uint32_t n;
	double mean, squares; /* sum of squared deviations from the mean */
};

struct counts {
	struct count *count;
	size_t n_counts;
	double elapsed_ns, user_ns, system_ns; /* user and system below 0: unknown */
	uint32_t n_elapsed;
	double elapsed_mean, elapsed_squares;
};

/* Take one round. The first one sets the events. 0, COUNTS_MALFORMED, -ENOMEM. */
enum { COUNTS_MALFORMED = 1 };
int counts_add(struct counts *c, const struct reply *r);

/* Take the times of one round. */
void counts_add_times(struct counts *c, double elapsed_ns, double user_ns, double system_ns);

/* Print the summary, with a heading that names what ran. */
void counts_print(const struct counts *c, const char *what, FILE *f);

/* Print one interval, at_ns after the start: a line per event. */
void counts_print_interval(const struct counts *c, double at_ns, bool first, FILE *f);

/* Print fields as `perf stat -x` does, a line per event: the time of an interval in seconds (at_ns; below 0: none), the
 * harts if each has its own line, then value, unit, event, spread of several rounds, an empty field for the time that
 * it counted, and the percentage of the time that it counted. */
void counts_print_fields(const struct counts *c, double at_ns, const char *separator, FILE *f);

void counts_clear(struct counts *c);
