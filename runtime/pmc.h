/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Pmc: a granted counter, read by the thread itself without a system call
 *
 * The kernel keeps a page per mapped event, which names the hardware counter that it has at the
 * moment, and what was counted before (struct perf_event_mmap_page).
 */

#include <stdbool.h>
#include <stdint.h>

struct grant_reading;
struct perf_event_mmap_page;

/* Reads the hardware counter of that number, as the page has it less 1. */
typedef uint64_t pmc_counter(uint32_t number);

/* Function that reads a counter of this processor; NULL: programs cannot read counters here, or we
 * do not know how. */
extern pmc_counter *const mperf_pmc_counter;

/* Tries to read a page while the kernel changes it: it does so when the thread is switched, which
 * rarely happens twice in a row. */
#define MPERF_PMC_TRIES 16u

/* May programs read this event's counter, now or later? */
bool mperf_pmc_possible(const struct perf_event_mmap_page *page);

/* Read an event of the calling thread. The times are those of its last start: both grow alike while
 * it runs, so their difference is exact and each alone is not. False: it is in no counter now, or
 * may not be read by programs; use read(2). Async-signal-safe. */
bool mperf_pmc_read(const struct perf_event_mmap_page *page, pmc_counter *counter,
	struct grant_reading *ret_reading);
