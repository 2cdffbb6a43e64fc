/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Bytes that came from memory, from what regions counted
 *
 * They follow from the core's own events if all inputs of its metric dram_bytes (platform-db) were granted; else from
 * LLC-load-misses, each of which is assumed to load a line.
 */

#include "daemon/pmu/cores.h"
#include "daemon/query/loops/facts.h"

struct dram {
	int misses; /* position of LLC-load-misses among what was granted; -1: the metric has it */
	const struct platform *platform;
	const struct platform_metric *metric;
};

/* Find the granted events that measure the bytes from memory. `cores` names the platform on which they were counted;
 * NULL: not known. False: there are none. Valid as long as the platform. */
bool dram_find(const struct loop_facts *f, const struct cores *cores, struct dram *ret_dram);

/* The bytes from memory by the counts of granted events (below 0: not counted). Below 0: not known. */
double dram_bytes(const struct loop_facts *f, const struct dram *d,
	const double count[static MPERF_GRANTS_MAX]);
