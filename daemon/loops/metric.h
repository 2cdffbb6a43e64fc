/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Metrics: what loops, functions and regions count
 *
 * Those of runtime/abi.inc, by their ids, and behind them what the daemon makes itself of a
 * program's messages. The store knows them by name (loop_metric.name); a modelled one, which stands
 * for what a library call is taken to do, has "_modelled" behind it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/abi.h"

enum loop_metric {
	LOOP_NONE,
#define MPERF_METRIC(id, symbol, name, unit, says) LOOP_##symbol = (id),
#include "runtime/abi.inc"
	/* of regions, beside their entries and time_ns: for how long counters were on */
	LOOP_COUNTED_NS,
	/* of a region, or of what runs in none: how long its counts gathered */
	LOOP_SPAN_NS,
	/* of a region: for how long, and how often, what the daemon granted to be counted there
	 * (grant.h) was; MPERF_GRANTS_MAX of them, whose names a struct loop_granted has */
	LOOP_GRANTED_NS,
	LOOP_GRANTED,
	N_LOOP_METRICS = LOOP_GRANTED + MPERF_GRANTS_MAX,
};
#define LOOP_METRICS_OF_PROGRAMS LOOP_COUNTED_NS /* ids below it come from tables */

/* A value's place: each metric as it was seen, and as it was modelled. */
#define LOOP_VALUE(metric, modelled) (2 * (unsigned)(metric) + ((modelled) ? 1 : 0))
#define N_LOOP_VALUES (2 * N_LOOP_METRICS)

/* Events that are counted in regions, as people call them ("LLC-load-misses"); "": none. */
#define LOOP_GRANTED_BYTES 64
struct loop_granted {
	char name[MPERF_GRANTS_MAX][LOOP_GRANTED_BYTES];
	bool is_time[MPERF_GRANTS_MAX]; /* ns, and not a count */
};
#define LOOP_GRANTED_PREFIX "granted:" /* of their names in the store */

#define LOOP_METRIC_NAME_BYTES 80

/* The name of a value as the store has it, and its unit ("count", "bytes", "ns"); NULL for what is
 * none. The name is written to `name` and returned. granted: NULL where nothing is. */
const char *loop_value_name(
	unsigned value, const struct loop_granted *granted, char name[LOOP_METRIC_NAME_BYTES]);
const char *loop_value_unit(unsigned value, const struct loop_granted *granted);
/* The value of that name; 0 for a name that we do not know, such as those of what was granted. */
unsigned loop_value_find(const char *name);
