/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Turns of the loop: how much of its thread's time each took
 *
 * All that the daemon does for everybody is done in turns of one loop, so one that takes long keeps
 * everybody waiting, and the rings fill. What takes long is sliced, or belongs in a child
 * (offload.h). The measure is the thread's own time: a busy machine lengthens no turn. It costs two
 * calls of the kernel in each turn, some 500 ns.
 */

#include <stdint.h>

/* What a client or a program may make a turn take, whatever it sends. */
#define TURN_NS_MAX 50000000u

/* The longest of the last minute is of this and the one before. */
#define TURNS_MINUTE_NS 60000000000u

struct turns {
	uint64_t n_turns, n_long; /* since the start; and those of more than TURN_NS_MAX */
	uint64_t longest_ns;      /* since the start */
	uint64_t minute_ns[2];    /* longest of the minute that runs, and of the one before */
	uint64_t minute_began_ns; /* CLOCK_MONOTONIC */
};

/* A turn took so much of the thread's time, and ends now (CLOCK_MONOTONIC). */
void turns_add(struct turns *t, uint64_t took_ns, uint64_t now_ns);
/* The longest of the last one to two minutes. */
uint64_t turns_lately_ns(const struct turns *t);
