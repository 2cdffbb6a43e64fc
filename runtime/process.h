/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Process: the sending thread, and what happens at fork and at exit */

#include "runtime/state.h"

/* After this many threads have started and ended in one period, the next round comes sooner, since
 * their counters wait for it. */
#define MPERF_FORGOTTEN_MAX 256u
/* Stack of the sending thread; it uses about 12 KB, since a packet is elsewhere. The program's
 * thread-local storage is part of it; if that does not fit, the stack has the program's default
 * size. */
#define MPERF_SENDER_STACK_BYTES (256u << 10)

/* Initialise the state, once (entry.c); start the sending thread if a sink is configured.
 * Exported for tests. */
void __mperf_start(void) __attribute__((visibility("default")));

/* Start the sender and register fork and exit handlers; once, under the lock. */
void mperf_process_begin(struct state *s);

/* In a fork's child: start its sender, unless this may be a signal handler. */
void mperf_process_resume(struct state *s);

/* Checked at the start of each loop and region. */
static inline void mperf_process_look(struct state *s)
{
	if (__builtin_expect(__atomic_load_n(&s->sender_due, __ATOMIC_RELAXED) != 0, 0))
		mperf_process_resume(s);
}
