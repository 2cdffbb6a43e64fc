/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Round: sending of all counts since the last round
 *
 * A round that finds the sink full stops, and continues there at the next call: what it has sent is
 * marked with its number, so that each thread has its turn however slow the daemon is. All of this
 * is under the lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/abi.h"

struct state;

/* How long a program that exits, or closes a library, waits for a slow daemon: since its last
 * progress, and in total. After a wait that timed out it does not wait again until the daemon has
 * taken something. */
#define MPERF_WAIT_MS 100u
#define MPERF_WAIT_TOTAL_MS 1000u
/* And for the daemon's answer whether it wants tables. It comes within a millisecond unless the
 * daemon is busy; without it the tables are sent. */
#define MPERF_ANSWER_WAIT_MS 10u

/* Continue the round, or begin one. 0: it is complete. MPERF_SINK_FULL: call again.
 * MPERF_SINK_NONE: nobody listens; threads that are gone are forgotten, as after each round. */
int mperf_round(struct state *s, bool last);

/* A complete round from the beginning, waiting as long as allowed. */
void mperf_round_through(struct state *s, bool last);

/* Announce that a thread or object sends nothing more (enum mperf_gone). An outcome of the sink. */
int mperf_round_gone(struct state *s, uint32_t kind, uint32_t id);
