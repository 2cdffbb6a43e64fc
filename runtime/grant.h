/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Grant: counters of a thread that the daemon opened, read when a region begins and ends
 *
 * They are perf_event descriptors. A thread reads them directly if the kernel allows that (pmc.h),
 * or else by a system call. Readers take no lock, so a withdrawn grant is retired first, and closed
 * when its thread is not reading.
 */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/abi.h"

struct state;
struct thread;

/* Pages of events mapped by one process, so that a program with many threads leaves its user part
 * of the memory that the kernel allows a user to lock for perf: 516 KiB for each hart. Further
 * events use read(2). Source: Linux 6.12, kernel/events/core.c, sysctl_perf_event_mlock. */
#define MPERF_GRANT_PAGES_MAX 64u

/* A reading of a counter. Times are 0 if it reports none. */
struct grant_reading {
	uint64_t value, enabled_ns, running_ns;
	/* read directly by the thread: only the difference of the times is exact */
	bool direct;
};

/* Give a thread these counters (takes the fds) in place of its old ones; if that is impossible they
 * are closed. Under the lock, as the next two. */
void mperf_grant_give(struct state *s, struct thread *t, const int *fds, uint32_t n);

/* Withdraw its counters. */
void mperf_grant_retire(struct state *s, struct thread *t);

/* Close retired grants that no thread is reading. */
void mperf_grant_sweep(struct state *s);

/* Read the calling thread's counters; unused readings become 0. Returns the grant's serial; 0: it
 * has none, or the read failed. */
uint32_t mperf_grant_read(struct thread *t, struct grant_reading readings[MPERF_GRANTS_MAX]);

/* Counts between two readings of one grant; a counter that shared the PMU is scaled by its time.
 * False: one of them did not run at all, or shared the PMU while its times are not exact. Then drop
 * all, since ratios would be wrong. */
bool mperf_grant_counts(const struct grant_reading from[MPERF_GRANTS_MAX],
	const struct grant_reading to[MPERF_GRANTS_MAX], uint64_t counts[MPERF_GRANTS_MAX]);
