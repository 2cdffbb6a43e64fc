/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Strand: the OpenMP state of one thread, updated by events
 *
 *      parallel       ─▶ team            one per instance of a region, shared by its threads
 *      implicit task  ─▶ level ─ tally   of the region: entries, time, waits
 *      work           ─▶ work ── tally   of the loop, …
 *      wait           ─▶ wait ── tally   of the barrier, …; also in the region's
 *      mutex          ─▶ lock ── tally   of the lock; the same
 *
 * Only the thread writes. The round reads in between, and a sequence number shows whether the
 * thread wrote meanwhile. Time is CLOCK_MONOTONIC and passed by the caller, so tests choose it.
 *
 * A region's time includes regions inside it; its waits are its own. Threads at the end of a region
 * wait until the next one begins, so counting ends with their team.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/ompt/call_site.h"
#include "runtime/ompt/team.h"

/* Nested regions of one thread; deeper ones count for the ones around them. */
#define STRAND_LEVELS_MAX 8u
/* Waits of one thread at the same time: tasks that wait while the thread runs others inside. */
#define STRAND_WAITS_MAX 16u
/* Worksharing constructs nest only by nested regions: one for each level. */
#define STRAND_WORKS_MAX 8u
#define STRAND_CHAINS 64u

/* Sums of one thread at one place: of a wait or lock, time_ns is the time waited. */
struct tally_sum {
	uint64_t entries, time_ns;
	/* of a region: entries that began it, and of its time, what was waited in it */
	uint64_t calls, wait_ns, lock_ns;
};

struct tally {
	struct tally *next;  /* of all */
	struct tally *chain; /* of its hash */
	struct place *place;
	uint64_t entries, calls, time_ns, wait_ns, lock_ns; /* atomic */
	struct tally_sum sent;                              /* the round's, as the next */
	uint64_t from_ns;
	uint32_t round;
};

struct level {
	struct team *team;
	struct tally *tally; /* NULL: there was no room */
	uint64_t since_ns;
};

struct work {
	struct tally *tally; /* NULL: there was no room */
	uint32_t depth;      /* of levels, when it began */
	uint64_t since_ns;
};

struct wait {
	const void *task;    /* the task that waits; other tasks may run inside */
	struct tally *tally; /* NULL: there was no room */
	uint32_t depth;      /* of levels, when it began */
	uint64_t since_ns;   /* 0: another task runs */
};

struct strand {
	uint32_t sequence; /* atomic; odd: it is being written */
	uint32_t depth;    /* number of levels; levels above STRAND_LEVELS_MAX are not stored */
	struct level level[STRAND_LEVELS_MAX];
	uint32_t n_begun; /* of the thread alone; likewise */
	struct team *begun[STRAND_LEVELS_MAX];
	uint32_t n_works;
	struct work work[STRAND_WORKS_MAX];
	uint32_t n_waits;
	struct wait wait[STRAND_WAITS_MAX];
	struct wait lock;    /* task: what it waits for; NULL: it waits for none */
	struct tally *all;   /* atomic head */
	struct tally *other; /* number of regions without room */
	struct tally *chain[STRAND_CHAINS];
	/* zeroed memory for tallies; NULL: none is left */
	void *(*memory)(void *userdata, size_t bytes);
	void *userdata;
};

/* Prepare a zeroed one; memory as in the struct. False: no memory. */
bool strand_init(struct strand *s, void *(*memory)(void *userdata, size_t bytes), void *userdata,
	uint64_t now_ns);

/* The region that the thread is in: its place, or NULL. */
struct place *strand_place(const struct strand *s);

/* Begin a region at that return address. Returns its team, for strand_enter; NULL: there is no room, and
 * the region is not counted. */
struct team *strand_begin(struct strand *s, const void *address);
/* End the region that the thread began last and has not ended. */
void strand_end(struct strand *s, uint64_t now_ns);

/* first: as the team's first thread, which began it. */
void strand_enter(struct strand *s, struct team *team, bool first, uint64_t now_ns);
void strand_leave(struct strand *s, uint64_t now_ns);
void strand_work_begin(struct strand *s, uint32_t kind, const void *address, uint64_t now_ns);
void strand_work_end(struct strand *s, uint64_t now_ns);
void strand_wait_begin(
	struct strand *s, uint32_t kind, const void *address, const void *task, uint64_t now_ns);
void strand_wait_end(struct strand *s, const void *task, uint64_t now_ns);
/* The thread leaves one task for another, which may be inside a wait of the first. */
void strand_switch(struct strand *s, const void *from, const void *to, uint64_t now_ns);
/* Asks for a lock, and has it. A lock that was asked for and not had is forgotten. */
void strand_lock_begin(
	struct strand *s, uint32_t kind, const void *address, const void *lock, uint64_t now_ns);
void strand_lock_end(struct strand *s, const void *lock, uint64_t now_ns);

/* After fork, in the child's thread: everything begins at zero, outside all regions. */
void strand_forked(struct strand *s, uint64_t now_ns);

/* Sum up a tally until now, with what is still open. False: the thread writes all the time; try
 * again later. Any thread may ask. */
bool strand_sum(
	const struct strand *s, const struct tally *t, uint64_t now_ns, struct tally_sum *ret_sum);

/* Counts of strands, sent as the round goes over threads (send.c): the calls that mperf_state.tallies points to in
 * the OpenMP tool (state.h). */
extern const struct tally_calls mperf_tally_calls;
