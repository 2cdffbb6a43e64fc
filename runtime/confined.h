/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Confined: a program that puts its main thread under a seccomp filter while it runs
 *
 * Such a filter may kill who makes a system call that the program does not. The sender, which began
 * before, has no such filter, and sees it in /proc. From then on the program's threads make none for a
 * round or at the end: they ask the sender for a round and wait without one. A filter for all threads
 * (SECCOMP_FILTER_FLAG_TSYNC) holds for the sender too, and one that was there at the start for both: there all
 * goes on as elsewhere.
 */

#include "runtime/state.h"

/* How often the sender looks whether a round is asked for; and for a moment after one was, since objects come one
 * after the other. */
#define MPERF_CONFINED_MS 20u
#define MPERF_CONFINED_NEXT_MS 1u
#define MPERF_CONFINED_SOON_MS 50u

static inline bool mperf_confined(const struct state *s)
{
	return __builtin_expect(__atomic_load_n(&s->confined, __ATOMIC_ACQUIRE) != 0, 0);
}

/* Ask the sender for a round, and wait until it made one, some 100 ms at most. Without a system call. */
void mperf_confined_round(struct state *s);
/* After the last round: wait as long for the sender to end, whose code may go then. */
void mperf_confined_end(struct state *s);
/* mperf_lock without a system call, and without blocked signals. False: somebody holds it. */
bool mperf_confined_lock(struct state *s);
void mperf_confined_unlock(struct state *s);
