/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Loop latency: how much of its thread's time each iteration of the loop took
 *
 * The daemon does all its work in iterations of one loop, so a long one makes everybody wait, and the
 * rings fill. Long work is sliced, or goes to a child (offload.h). We measure the thread's own
 * time, so a busy machine lengthens none. That costs two system calls per iteration, about 500 ns.
 */

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/clock.h"

/* The longest turn that a client or a program may cause, whatever it sends. */
#define TURN_NS_MAX 50000000u

/* Longer work is done in slices of this much of the thread's own time; check between two steps: */
#define SLICE_NS 5000000u
static inline uint64_t slice_begin(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) + SLICE_NS;
}
static inline bool slice_is_over(uint64_t until_ns)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) >= until_ns;
}

/* A slice whose steps may block, such as perf_event_open(2) of a task in an exec: wall time ends
 * it, too. */
#define SLICE_WAITS_NS 20000000u
struct slice {
	uint64_t until_ns; /* of the thread's own time */
	uint64_t began_ns; /* CLOCK_MONOTONIC */
	uint64_t ran_ns;   /* the thread's own time, then */
	uint64_t n_sleeps; /* how often it had given up the CPU, then */
};
struct slice slice_of_waits(void);
bool slice_of_waits_is_over(const struct slice *s);
/* How long it has waited so far; 0 if it never slept. */
uint64_t slice_waited_ns(const struct slice *s);

/* The longest of the last minute is taken from the current minute and the one before. */
#define LOOP_MINUTE_NS 60000000000u

struct loop_latency {
	uint64_t n_turns, n_long; /* since the start; and those longer than TURN_NS_MAX */
	uint64_t longest_ns;      /* since the start */
	uint64_t minute_ns[2];    /* longest of the current minute, and of the one before */
	uint64_t minute_began_ns; /* CLOCK_MONOTONIC */
};

/* A turn took this much of the thread's time, and ends now (CLOCK_MONOTONIC). */
void loop_latency_add(struct loop_latency *t, uint64_t took_ns, uint64_t now_ns);
/* The longest of the last one to two minutes. */
uint64_t loop_latency_lately_ns(const struct loop_latency *t);
