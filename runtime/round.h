/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Round: sending of all counts since the last round
 *
 * If the sink is full, a round stops, and continues there at the next call: sent items are marked
 * with the round's number, so every thread is served even if the daemon is slow. All of this is
 * under the lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/abi.h"

struct state;

/* How long a program that exits, or closes a library, waits for a slow daemon: since its last
 * progress, and in total. After a timeout it does not wait again until the daemon has accepted a
 * message. */
#define MPERF_WAIT_MS 100u
#define MPERF_WAIT_TOTAL_MS 1000u
/* How long it waits for the daemon's answer whether it wants tables. The answer comes within a
 * millisecond unless the daemon is busy; without it the tables are sent. */
#define MPERF_ANSWER_WAIT_MS 10u

/* Continue the round, or begin one. 0: it is complete. MPERF_SINK_FULL: call again.
 * MPERF_SINK_NONE: there is no sink; records of ended threads are freed, as after each round. */
int mperf_round(struct state *s, bool last);

/* A complete round from the beginning, waiting as long as allowed. */
void mperf_round_through(struct state *s, bool last);

/* Announce that a thread or object sends nothing more (enum mperf_gone). An outcome of the sink. */
int mperf_round_gone(struct state *s, uint32_t kind, uint32_t id);
