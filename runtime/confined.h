/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Confined: a program that puts its main thread under a seccomp filter while it runs
 *
 * Such a filter may kill a thread for a system call that the program itself does not make. The
 * sender started before the filter and is not under it; it detects the filter in /proc: after a
 * second at most, and in its own first second after about as long as it ran. A program that ends
 * before that makes system calls and may be killed. From then on the program's threads make no
 * system call for a round or at the end: they ask the sender for a round and wait by polling memory.
 * A filter for all threads (SECCOMP_FILTER_FLAG_TSYNC), or from before the start, also applies to
 * the sender: then nothing changes.
 */

#include "runtime/state.h"

/* How often the sender checks for a requested round; and the interval shortly after a request,
 * since objects close one after the other. */
#define MPERF_CONFINED_MS 20u
#define MPERF_CONFINED_NEXT_MS 1u
#define MPERF_CONFINED_SOON_MS 50u

static inline bool mperf_confined(const struct state *s)
{
	return __builtin_expect(__atomic_load_n(&s->confined, __ATOMIC_ACQUIRE) != 0, 0);
}

/* Ask the sender for a round, and wait until it made one, some 100 ms at most. Without a system call. */
void mperf_confined_round(struct state *s);
/* After the last round: wait equally long for the sender to end, since its code may be unmapped
 * then. */
void mperf_confined_end(struct state *s);
/* mperf_lock without a system call, and without blocking signals. False: the lock is held. */
bool mperf_confined_lock(struct state *s);
void mperf_confined_unlock(struct state *s);
