/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Bytes that came from memory, from what regions counted
 *
 * They follow from the core's own events if all that its metric dram_bytes (platform-db) needs was granted; else from
 * LLC-load-misses, each of which is taken to bring a line.
 */

#include "daemon/pmu/cores.h"
#include "daemon/query/loops/facts.h"

struct dram {
	int misses; /* position of LLC-load-misses among what was granted; -1: the metric has it */
	const struct platform *platform;
	const struct platform_metric *metric;
};

/* Find which granted events say how many bytes came from memory. `cores` names the platform that they were counted on;
 * NULL: not known. False: none does. Valid as long as the platform. */
bool dram_find(const struct loop_facts *f, const struct cores *cores, struct dram *ret_dram);

/* The bytes from memory by the counts of granted events (below 0: not counted). Below 0: not known. */
double dram_bytes(const struct loop_facts *f, const struct dram *d,
	const double count[static MPERF_GRANTS_MAX]);
