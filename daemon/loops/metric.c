/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One table, generated from the list that pass and runtime share, so that a metric added there gets
 * its name in the store without a change here.
 */
#include "daemon/loops/metric.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *unit;
} kinds[N_LOOP_METRICS] = {
#define MPERF_METRIC(id, symbol, name, unit, says) [id] = {name, unit},
#include "runtime/abi.inc"
	[LOOP_COUNTED_NS] = {"counted_ns", "ns"},
	[LOOP_SPAN_NS] = {"span_ns", "ns"},
	[LOOP_WAIT_NS] = {"wait_ns", "ns"},
	[LOOP_LOCK_NS] = {"lock_ns", "ns"},
	[LOOP_GRANTED_NS] = {"granted_ns", "ns"},
	[LOOP_REPRESENTED] = {"represented", "count"},
	[LOOP_INNER_ENTRIES] = {"inner_entries", "count"},
	[LOOP_TIME_VARIANCE] = {"time_variance", "variance"},
};

#define MODELLED "_modelled"

/* The index of a value in the range that begins with that metric, with one value for each granted
 * event; -1: not in the range. */
static int place_from(unsigned first, unsigned value)
{
	unsigned metric = value / 2;
	return value % 2 == 0 && metric >= first && metric < first + MPERF_GRANTS_MAX
		       ? (int)(metric - first)
		       : -1;
}

const char *loop_value_name(
	unsigned value, const struct loop_granted *granted, char name[LOOP_METRIC_NAME_BYTES])
{
	int count = place_from(LOOP_GRANTED, value);
	int variance = place_from(LOOP_GRANTED_VARIANCE, value);
	int place = count >= 0 ? count : variance;
	if (place >= 0 && granted && *granted->name[place]) {
		snprintf(name, LOOP_METRIC_NAME_BYTES, "%s%s",
			count >= 0 ? LOOP_GRANTED_PREFIX : LOOP_VARIANCE_PREFIX,
			granted->name[place]);
		return name;
	}
	if (value >= N_LOOP_VALUES || !kinds[value / 2].name)
		return NULL;
	snprintf(name, LOOP_METRIC_NAME_BYTES, "%s%s", kinds[value / 2].name,
		value % 2 ? MODELLED : "");
	return name;
}

const char *loop_value_unit(unsigned value, const struct loop_granted *granted)
{
	int place = place_from(LOOP_GRANTED, value);
	if (place_from(LOOP_GRANTED_VARIANCE, value) >= 0)
		return loop_value_name(value, granted, (char[LOOP_METRIC_NAME_BYTES]){0})
			       ? "variance"
			       : NULL;
	if (place >= 0 && granted && *granted->name[place])
		return granted->is_time[place] ? "ns" : "count";
	return value < N_LOOP_VALUES ? kinds[value / 2].unit : NULL;
}

unsigned loop_value_find(const char *name)
{
	char ours[LOOP_METRIC_NAME_BYTES];
	for (unsigned value = 0; value < N_LOOP_VALUES; value++)
		if (loop_value_name(value, NULL, ours) && strcmp(ours, name) == 0)
			return value;
	return 0;
}
