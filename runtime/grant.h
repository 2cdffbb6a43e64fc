/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Grant: counters of a thread that the daemon opened, read when a region begins and ends
 *
 * They are perf_event descriptors. A thread reads them without a lock, so one that is taken away is
 * retired first, and closed when its thread has been seen not to read.
 */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/abi.h"

struct state;
struct thread;

/* A counter as it was read. Times are 0 where it tells none. */
struct grant_reading {
	uint64_t value, enabled_ns, running_ns;
};

/* Give a thread these counters (fds become the grant's) in place of those that it had; where that
 * is impossible they are closed. Under the lock, as the next two. */
void mperf_grant_give(struct state *s, struct thread *t, const int *fds, uint32_t n);

/* Take away what it has. */
void mperf_grant_retire(struct state *s, struct thread *t);

/* Close what is retired and not being read. */
void mperf_grant_sweep(struct state *s);

/* Read the calling thread's counters; readings without a counter become 0. The grant's serial; 0:
 * it has none, or they could not be read. */
uint32_t mperf_grant_read(struct thread *t, struct grant_reading readings[MPERF_GRANTS_MAX]);

/* What was counted between two readings of one grant; a counter that had to share the PMU is scaled
 * by its time. False: one of them did not run at all, so nothing is known, and for the sake of
 * ratios nothing of the others. */
bool mperf_grant_counts(const struct grant_reading from[MPERF_GRANTS_MAX],
	const struct grant_reading to[MPERF_GRANTS_MAX], uint64_t counts[MPERF_GRANTS_MAX]);
