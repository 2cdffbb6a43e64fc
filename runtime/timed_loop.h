/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Timed loop: the runtime's state of an outermost loop, in MPERF_TIMED_OPEN_NS
 *
 *      0                    nothing was timed yet
 *      bit 63 clear         start of the timed entry, CLOCK_MONOTONIC
 *      bit 63 set           bits 0 to 3: log2 of the window; bit 14: entered again while it ran.
 *                           Without bit 14, bits 4 to 13: entries of the window after the one to
 *                           time. With it, for the current burst: bits 4 to 9: timed entries; 15 to
 *                           34: entries, with those inside; 35 to 62: time in units of 64 ns
 */

#include <stdbool.h>
#include <stdint.h>

/* Largest window that a timed entry stands for. With 1,024, two clock reads of 30 ns each cost less
 * than a tenth of a nanosecond per entry; a longer window would only detect later that entries have
 * become long. */
#define MPERF_WINDOW_LOG2_MAX 10u
/* Timing costs at most 1/200 of the time measured. */
#define MPERF_TIMING_SHARE 200u

/* Outermost entries of a recursive loop that are timed one after the other. Only the first of them can be
 * inside an untimed one, so at most one in this many has a wrong time. */
#define MPERF_RECURSION_BURST 32u

/* Entries inside a timed entry of the same loop until we check that it still runs: it may have been
 * left by longjmp or an exception. */
#define MPERF_RECURSION_ENTRIES 1024u

#define MPERF_TIMED_CLOSED (UINT64_C(1) << 63)
#define MPERF_TIMED_RECURSIVE (UINT64_C(1) << 14)

/* Start of the running timed entry; 0: none. */
static inline uint64_t mperf_timed_open(uint64_t word)
{
	return word & MPERF_TIMED_CLOSED ? 0 : word;
}

/* The log2 of the next window's entries, after a window of that log2 whose timed entry took ns.
 * cost_ns: the cost of timing one. Exported for tests. */
unsigned mperf_timed_window(unsigned log2, uint64_t ns, uint64_t cost_ns);

/* Measure the cost of timing an entry, in ns: the clock and our own code, less one clock_ns, the
 * clock's cost. Times a few empty entries. The thread's stack of entries is not included; it is
 * made later and adds some nanoseconds. */
uint32_t mperf_timed_cost_ns(uint32_t clock_ns);
