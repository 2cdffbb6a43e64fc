/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The exec watch: notices execs at once, not at the next drain
 *
 * It waits for the sampler's exec rings. The arguments of a process that exec'd come from the stack
 * in the record, or are read while the process lives. The cost is bounded: execs that come together
 * share a wake-up, and beyond a number of wake-ups per second the rings are read every 20 ms, which
 * loses only arguments of processes that live shorter. If the sampler has no exec rings, arguments are read when the exec's
 * record comes through the merge, which is late for short processes.
 */

#include "daemon/attribute/attribute.h"
#include "daemon/sampler/sampler.h"

/* Wake-ups per second: 500 processes, since FORK and EXIT wake too; about 40 µs each, 6 % of one
 * hart. A wake-up drains all rings, so the watch notices more execs than this when they come
 * together. Beyond it the watch rests after each. */
#define EXEC_WAKES_MAX 1500
/* With stacks in the records, being late loses little: 0.4 % of one hart. */
#define EXEC_WAKES_COPIED 100
/* For a watch that never ends: 20 processes per second, as a make starts them. */
#define EXEC_WAKES_ALWAYS 60
/* After an exec such a watch pauses: so the end of a short process, and others that exec beside it, cause no
 * wake-up. */
#define EXEC_PAUSE_NS 4000000u
/* A watch that rests looks again after this time: 50 times per second. */
#define EXEC_REST_NS 20000000u

struct exec_watch {
	struct sampler *sampler;     /* borrowed */
	struct attribute *attribute; /* borrowed */
	int fd;                      /* epoll over the exec rings; -1: none */
	unsigned wakes_max;          /* 0: EXEC_WAKES_MAX, or EXEC_WAKES_COPIED */
	bool put_off;                /* rest until the next drain */
	uint64_t second_ns;          /* start of the second in which wake-ups are counted */
	/* when to look while it pauses or rests; UINT64_MAX: at the next drain */
	uint64_t look_ns;
	unsigned n_wakes;
	bool pauses, rests;
};

/* Wait for the sampler's current rings; call again after sampler_tick. 0, -errno. */
int exec_watch_follow(struct exec_watch *w);

/* The descriptor to poll: one for all rings, which keeps each entry into the loop cheap; -1 while
 * it pauses or rests. */
int exec_watch_fd(const struct exec_watch *w);

/* The latest time at which exec_watch_dispatch must be called; 0: at once. Ask after the descriptor was
 * passed to poll: an event's poll reports news only once, so an exec just before it would be missed. */
uint64_t exec_watch_deadline_ns(const struct exec_watch *w);

/* Drain the rings, and read the arguments that are due. Cheap if there are none. */
void exec_watch_dispatch(struct exec_watch *w, uint64_t now_ns);

/* A drain begins: a watch that pauses or rests continues. */
void exec_watch_resume(struct exec_watch *w);

/* Add the descriptors of rings to an epoll; those already in it stay, and closed ones have left it.
 * 0, -errno. */
int rings_follow(int epoll_fd, const struct ring *ring, size_t n_rings);
