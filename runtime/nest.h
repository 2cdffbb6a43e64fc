/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Nest: what the runtime keeps in MPERF_NEST_OPEN_NS
 *
 *      0                    nothing was timed yet
 *      bit 63 clear         since when the timed entry runs, CLOCK_MONOTONIC
 *      bit 63 set           bits 0 to 3: log2 of the window; bits 4 to 13: entries of the window
 * that come after the one to be timed
 */

#include <stdbool.h>
#include <stdint.h>

/* An entry that is timed stands for a window of at most so many. With 1,024, two looks at a clock
 * of 30 ns are a tenth of a nanosecond an entry; a longer window would only find out later that
 * entries have become long. */
#define MPERF_WINDOW_LOG2_MAX 10u
/* Timing costs at most one part in so many of what is timed. */
#define MPERF_TIMING_SHARE 200u

#define MPERF_NEST_CLOSED (UINT64_C(1) << 63)

/* Since when the timed entry runs; 0: none does. */
static inline uint64_t mperf_nest_open(uint64_t word)
{
	return word & MPERF_NEST_CLOSED ? 0 : word;
}

/* The window after one of that log2 whose timed entry took ns: the log2 of the next one's entries.
 * cost_ns: what it takes to time one. */
unsigned mperf_nest_window(unsigned log2, uint64_t ns, uint64_t cost_ns);
