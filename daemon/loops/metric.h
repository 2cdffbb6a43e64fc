/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Metrics: the quantities that loops, functions and regions count
 *
 * Metrics of runtime/abi.inc come first, by their ids, then those that the daemon derives from a program's messages. The store knows them by name (loop_metric.name); a modelled one, which
 * estimates what a library call does, ends in "_modelled".
 */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/abi.h"

enum loop_metric {
	LOOP_NONE,
#define MPERF_METRIC(id, symbol, name, unit, says) LOOP_##symbol = (id),
#include "runtime/abi.inc"
	/* of regions, besides their entries and time_ns: the time for which counters were on */
	LOOP_COUNTED_NS,
	/* of a region, or of code outside all regions: the time over which it was counted */
	LOOP_SPAN_NS,
	/* of a parallel region: the parts of time_ns in which its threads waited for each other or for
	 * tasks, and for locks */
	LOOP_WAIT_NS,
	LOOP_LOCK_NS,
	/* of a region: the time for which the granted events (grant.h) were counted, and their
	 * counts; MPERF_GRANTS_MAX of them, with names in struct loop_granted */
	LOOP_GRANTED_NS,
	LOOP_GRANTED,
	/* of a region with 1 in N entries measured, timed_entries of them: SPENT's members of these
	 * names. Variances are in MPERF_VARIANCE_UNIT; a granted event's is named like the event. */
	LOOP_REPRESENTED = LOOP_GRANTED + MPERF_GRANTS_MAX,
	LOOP_INNER_ENTRIES,
	LOOP_TIME_VARIANCE,
	LOOP_GRANTED_VARIANCE,
	N_LOOP_METRICS = LOOP_GRANTED_VARIANCE + MPERF_GRANTS_MAX,
};
#define LOOP_METRICS_OF_PROGRAMS LOOP_COUNTED_NS /* ids below it come from tables */

/* A value's index: each metric as counted, and as modelled. */
#define LOOP_VALUE(metric, modelled) (2 * (unsigned)(metric) + ((modelled) ? 1 : 0))
#define N_LOOP_VALUES (2 * N_LOOP_METRICS)

/* Events counted in regions, by their usual names ("LLC-load-misses"); "": none. */
#define LOOP_GRANTED_BYTES 64
struct loop_granted {
	char name[MPERF_GRANTS_MAX][LOOP_GRANTED_BYTES];
	bool is_time[MPERF_GRANTS_MAX]; /* ns, and not a count */
};
#define LOOP_GRANTED_PREFIX "granted:" /* of their names in the store */
#define LOOP_VARIANCE_PREFIX "variance:"

#define LOOP_METRIC_NAME_BYTES 80

/* The name of a value in the store, and its unit ("count", "bytes", "ns"); NULL if there is no such
 * value. The name is written to `name` and returned. granted: NULL if nothing is granted. */
const char *loop_value_name(
	unsigned value, const struct loop_granted *granted, char name[LOOP_METRIC_NAME_BYTES]);
const char *loop_value_unit(unsigned value, const struct loop_granted *granted);
/* The value of that name; 0 for unknown names, such as those of granted events. */
unsigned loop_value_find(const char *name);
