/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Timed loop: the runtime's state of an outermost loop, in MPERF_TIMED_OPEN_NS
 *
 *      0                    nothing was timed yet
 *      bit 63 clear         start of the timed entry, CLOCK_MONOTONIC
 *      bit 63 set           bits 0 to 3: log2 of the window; bits 4 to 13: entries of the window
 *                           that come after the one to be timed; bit 14: entered again while
 *                           it ran
 */

#include <stdbool.h>
#include <stdint.h>

/* Largest window that a timed entry stands for. With 1,024, two clock reads of 30 ns each cost less
 * than a tenth of a nanosecond per entry; a longer window would only detect later that entries have
 * become long. */
#define MPERF_WINDOW_LOG2_MAX 10u
/* Timing costs at most 1/200 of the time measured. */
#define MPERF_TIMING_SHARE 200u

/* Entries inside a timed one of the same loop until we look whether that one still runs: it may have
 * been left by longjmp or an exception. */
#define MPERF_RECURSION_ENTRIES 1024u

#define MPERF_TIMED_CLOSED (UINT64_C(1) << 63)
#define MPERF_TIMED_RECURSIVE (UINT64_C(1) << 14)

/* Start of the running timed entry; 0: none. */
static inline uint64_t mperf_timed_open(uint64_t word)
{
	return word & MPERF_TIMED_CLOSED ? 0 : word;
}

/* The log2 of the next window's entries, after a window of that log2 whose timed entry took ns.
 * cost_ns: the cost of timing one. */
unsigned mperf_timed_window(unsigned log2, uint64_t ns, uint64_t cost_ns);
