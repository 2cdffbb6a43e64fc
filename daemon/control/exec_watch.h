/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The exec watch: execs heard of at once, not at the next drain
 *
 * It waits for the sampler's exec rings and has the arguments of whoever exec'd taken from the
 * stack that the record brings, or read while he lives. What that may cost is bounded; beyond it,
 * rings that bring stacks are read a few times between drains, which loses few arguments, and others
 * at the drains. Where the sampler has no exec rings, arguments are read when the exec's record comes
 * through the merge, which is late for short processes.
 */

#include "daemon/attribute/attribute.h"
#include "daemon/pmu/sampler.h"

/* Wake-ups in one second: 500 processes, where FORK and EXIT wake too; some 40 µs each, 6 % of one
 * hart. A wake-up takes what all rings hold, so more execs than this are heard of where they come
 * together. Beyond it the watch rests. */
#define EXEC_WAKES_MAX 1500
/* Where records bring stacks, being late costs little: 0.4 % of one hart. */
#define EXEC_WAKES_COPIED 100
/* For a watch that never ends and brings none: 1 %, 100 processes a second. */
#define EXEC_WAKES_ALWAYS 300

/* A watch that rests looks again after this, if its rings bring stacks, so that they do not fill. */
#define EXEC_REST_NS 60000000u

struct exec_watch {
	struct sampler *sampler;     /* borrowed */
	struct attribute *attribute; /* borrowed */
	int fd;                      /* epoll over the exec rings; -1: none */
	unsigned wakes_max;          /* 0: EXEC_WAKES_MAX, or EXEC_WAKES_COPIED */
	uint64_t second_ns;          /* since when wake-ups are counted */
	uint64_t look_ns;            /* when to look though it rests; UINT64_MAX: at the next drain */
	unsigned n_wakes;
	bool rests;
};

/* Wait for what rings the sampler has now; again after sampler_tick. 0, -errno. */
int exec_watch_follow(struct exec_watch *w);

/* What to wait for: one descriptor for all rings, since the loop is entered anew at each exec; -1
 * while it rests. */
int exec_watch_fd(const struct exec_watch *w);

/* When exec_watch_dispatch is to be called at the latest; 0: at once. To be asked after the
 * descriptor was handed to poll: an event's poll forgets what it reported once, so news that came
 * just before would be slept over. */
uint64_t exec_watch_deadline_ns(const struct exec_watch *w);

/* Take what the rings hold, and read the arguments that are due. Cheap where there is nothing. */
void exec_watch_dispatch(struct exec_watch *w, uint64_t now_ns);

/* A drain begins: a watch that rests goes on. */
void exec_watch_resume(struct exec_watch *w);

/* Add the descriptors of rings to an epoll; those that are in it stay, and those that were closed
 * left by themselves. 0, -errno. */
int rings_follow(int epoll_fd, const struct ring *ring, size_t n_rings);
