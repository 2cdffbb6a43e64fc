/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Grant: counters of a thread that the daemon opened, read when a region begins and ends
 *
 * They are perf_event descriptors. A thread reads them without a lock, so one that is taken away is
 * retired first, and closed when its thread has been seen not to read.
 */

#include <stdint.h>

#include "runtime/abi.h"

struct state;
struct thread;

/* Give a thread these counters (fds become the grant's) in place of those that it had; where that
 * is impossible they are closed. Under the lock, as the next two. */
void mperf_grant_give(struct state *s, struct thread *t, const int *fds, uint32_t n);

/* Take away what it has. */
void mperf_grant_retire(struct state *s, struct thread *t);

/* Close what is retired and not being read. */
void mperf_grant_sweep(struct state *s);

/* Read the calling thread's counters into values. The grant's serial; 0: it has none, or they could
 * not be read. */
uint32_t mperf_grant_read(struct thread *t, uint64_t values[MPERF_GRANTS_MAX]);
