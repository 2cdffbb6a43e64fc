/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Pmc: a granted counter, read by the thread itself without a system call
 *
 * The kernel keeps a page per mapped event, with the number of its current hardware counter and its
 * earlier count (struct perf_event_mmap_page).
 */

#include <stdbool.h>
#include <stdint.h>

struct grant_reading;
struct perf_event_mmap_page;

/* Reads a hardware counter, by the page's number less 1. */
typedef uint64_t pmc_counter(uint32_t number);

/* Function that reads a counter of this processor; NULL: programs cannot read counters here, or we
 * do not know how. */
extern pmc_counter *const mperf_pmc_counter;

/* Retries if the kernel changes the page during a read: it does so when the thread is switched,
 * which rarely happens twice in a row. */
#define MPERF_PMC_TRIES 16u

/* May programs read this event's counter, now or later? */
bool mperf_pmc_possible(const struct perf_event_mmap_page *page);

/* Read an event of the calling thread. The times are those of its last start: both grow equally
 * while it runs, so only their difference is exact. False: it is on no counter now, or programs may
 * not read it; use read(2). Async-signal-safe. */
bool mperf_pmc_read(const struct perf_event_mmap_page *page, pmc_counter *counter,
	struct grant_reading *ret_reading);
