/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Round: all that was counted since the last one, sent
 *
 * A round that finds the sink full stops, and goes on where it was at the next call: what it has
 * sent is marked with its number, so that each thread has its turn however slow the other side is.
 * All of this is under the lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/abi.h"

struct state;

/* What a program that ends, or closes a library, waits for a daemon that is behind: since its last
 * progress, and in all. One that was waited for in vain is not waited for again before it has taken
 * something. */
#define MPERF_WAIT_MS 100u
#define MPERF_WAIT_TOTAL_MS 1000u

/* Go on with the round, or begin one. 0: it is complete. MPERF_SINK_FULL: call again.
 * MPERF_SINK_NONE: nobody listens; threads that are gone are forgotten, as after each round. */
int mperf_round(struct state *s, bool last);

/* A whole round from the beginning, with as much waiting as is allowed. */
void mperf_round_through(struct state *s, bool last);

/* Say that a thread or object sends nothing more (enum mperf_gone). An outcome of the sink. */
int mperf_round_gone(struct state *s, uint32_t kind, uint32_t id);
