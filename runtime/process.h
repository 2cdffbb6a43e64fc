/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Process: the thread that sends, and what becomes of all at fork and at the end */

#include "runtime/state.h"

/* After so many threads have come and gone in one period, the next round comes sooner: what they
 * counted in waits for it. */
#define MPERF_FORGOTTEN_MAX 256u
/* Of the sending thread; it uses some 12 KB, a packet being elsewhere. Thread-local storage of the
 * program is part of it; where it does not fit, the stack is as the program's threads have it. */
#define MPERF_SENDER_STACK_BYTES (256u << 10)

/* Start the sender and have the C library call us; once, under the lock. */
void mperf_process_begin(struct state *s);

/* In a fork's child: start its sender, unless this may be a signal handler. */
void mperf_process_resume(struct state *s);

/* What each loop and region that begins asks. */
static inline void mperf_process_look(struct state *s)
{
	if (__builtin_expect(__atomic_load_n(&s->sender_due, __ATOMIC_RELAXED) != 0, 0))
		mperf_process_resume(s);
}
