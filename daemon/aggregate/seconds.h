/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Seconds: how the time of each process and hart is spread over a window
 *
 * A window says how much a process ran in it, not when. For the service, whose windows are longer than a second, the
 * time is also kept by second: of each hart, and of each process.
 */

#include "daemon/attribute/attribute.h"

/* A longer window, as `flush` in mperf.conf allows none, has no seconds. */
#define SECONDS_MAX 512u
/* Pairs of a process and a second, of one window: 4 MB. Of a window with more, only harts are kept. */
#define SECONDS_PAIRS_MAX 65536u

struct second {
	struct task *process; /* NULL: of the hart */
	int hart;             /* -1: of the process */
	uint32_t at;          /* from the window's start */
	uint64_t ns;
};

struct seconds {
	bool are_kept;    /* set by the owner */
	bool is_too_many; /* of processes */
	/* the rest is seconds.c's */
	struct second *slot; /* n_slots, open addressing by whose and when */
	uint32_t n, n_pairs, n_slots;
};

/* Add the time of a sample of a window that starts at start_ns. A thread of another user than its process, and one that
 * waits, do not count for the process. 0 or -ENOMEM. */
int seconds_add(struct seconds *s, const struct attribution *a, uint64_t start_ns);

/* All of them in an array: harts first, those of one hart or process in a row, by time. The caller frees. 0 or -ENOMEM.
 */
int seconds_sorted(const struct seconds *s, struct second **ret_second, uint32_t *ret_n);

static inline bool seconds_are_of_one(const struct second *a, const struct second *b)
{
	return a->process == b->process && a->hart == b->hart;
}

/* It goes on to be kept or not. */
void seconds_clear(struct seconds *s);
