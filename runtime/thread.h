/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Thread: what one thread counts, by region and object
 *
 *      thread ── stay (in no region) ── block (object 0), block (object 1), …
 *             ├─ stay (in "solve")   ── block (object 0), …
 *             └─ entered (object 0), entered (object 1), …      whose biases are switched
 *
 * A stay is what a thread does in one region, a block what it counts there of one object. The
 * thread itself adds to these lists, at their heads and with its signals blocked; the round
 * (round.h) reads them meanwhile. Nothing is taken out of a list while its thread lives: what
 * belongs to a closed object has NULL for its image, and may be used anew by its thread. Members
 * that both sides use are read and written by __atomic builtins.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/abi.h"
#include "runtime/grant.h"

struct area;
struct image;
struct region;

/* Of one thread: the record and all its lists. Some 160 regions with three objects fit; in those
 * beyond, a thread counts for the region around. */
#define MPERF_THREAD_BYTES (64u << 10)
/* Regions inside one another; deeper ones are not entered. */
#define MPERF_REGION_DEPTH_MAX 32u

struct block {
	struct block *next;
	struct image *image; /* atomic; NULL: closed */
	int64_t *bias;       /* of the object, in its thread */
	int64_t distance;    /* what the bias is, to count here */
	struct area *area;
	/* the round's */
	uint64_t from_ns;
	uint64_t until_ns;
	uint32_t round;  /* that cursor belongs to */
	uint32_t cursor; /* counters that it has done */
};

/* What is spent in a region, as in MPERF_SPENT. */
struct spent {
	uint64_t entries;
	uint64_t time_ns;
	uint64_t granted[MPERF_GRANTS_MAX];
	uint64_t granted_ns;
};

struct stay {
	struct stay *next;
	struct stay *parent;      /* around it; NULL: the stay in no region */
	struct region *region;    /* NULL: in none */
	struct mperf_region site; /* the marker by which it was entered; its strings are compared by
				   * address alone, since a closed library's are gone */
	struct stay *entered_last; /* inside; the next is mostly the same */
	struct block *blocks;      /* atomic head */
	uint32_t n_filled;         /* of the thread's n_entered, those that have a block here */
	uint32_t round;
	uint64_t open_ns;   /* atomic; since when the thread is inside; 0: it is not */
	struct spent spent; /* atomic members */
	struct spent sent;
	uint64_t from_ns;
};

struct entered {
	struct entered *next;
	struct image *image; /* atomic; NULL: closed */
	int64_t *bias;
};

/* A region that is open. */
struct frame {
	struct stay *stay;
	uintptr_t address; /* of the stack; below it is what the region calls */
	uint64_t begin_ns;
	struct grant_reading granted[MPERF_GRANTS_MAX];
	uint32_t grant; /* serial of what was read; 0: nothing */
	bool again;     /* inside itself: that time is counted already */
};

enum thread_state { MPERF_THREAD_FREE, MPERF_THREAD_MADE, MPERF_THREAD_LIVES };

/* Counters that the daemon granted (grant.h). */
struct grant {
	struct grant *next; /* of those that wait to be closed */
	struct thread *thread;
	uint32_t serial; /* from 1 */
	uint32_t n;
	int fds[MPERF_GRANTS_MAX];
	uint64_t ids[MPERF_GRANTS_MAX]; /* of their events */
};

struct thread {
	struct thread *next; /* never changes */
	uint32_t state;      /* atomic, enum thread_state */
	uint32_t busy;       /* atomic; 1: it looks at images, biases or grants that may go */
	uint32_t id;
	uint32_t tid;
	uint64_t begin_ns;
	uint64_t random;
	struct grant *grant; /* atomic */

	struct stay *stay;       /* where it is */
	struct stay *root;       /* that in no region */
	struct stay *stays;      /* atomic head of all */
	struct entered *entered; /* atomic head */
	uint32_t n_entered;
	uint32_t depth; /* of frames */
	uint32_t too_deep;
	/* the round's */
	uint32_t serial; /* of the connection to which it was announced */
	uint32_t round;  /* that gone belongs to */
	bool gone;       /* when that round came to it */
	struct frame frames[MPERF_REGION_DEPTH_MAX];

	size_t used; /* of the bytes behind */
	_Alignas(64) unsigned char bytes[];
};

/* The calling thread's record, or NULL where it has none yet. */
struct thread *mperf_thread_self(void);

/* The same, made where there is none. All signals are blocked. NULL: no memory. */
struct thread *mperf_thread_make(void);

/* A number by chance, of 44 bits, for the calling thread; 0 where it has no record. */
uint64_t mperf_thread_chance(void);

/* The record of a thread that is gone, or of a fork's parent, becomes free: its areas are given
 * back. Nobody else looks at it. */
void mperf_thread_forget(struct thread *t);

/* The calling thread is that of a fork's child: what its parent counted is not its own. */
void mperf_thread_forked(struct thread *t, uint64_t now_ns);

/* Memory that lives as long as the record, zeros; or NULL. Signals are blocked. */
void *mperf_thread_memory(struct thread *t, size_t bytes);

/* Give the calling thread a block in its present stay for an object that it enters. Signals are
 * blocked. NULL: no memory. */
struct block *mperf_thread_enter(struct thread *t, struct image *image);

/* Be in that stay from now on: all biases are those of its blocks, which are made where they miss.
 * False: there is no memory for that, and the thread stays where it is. */
bool mperf_thread_switch(struct thread *t, struct stay *to);

/* A thread's busy word around what others must not take away meanwhile; signal handlers nest. */
static inline uint32_t mperf_thread_busy(struct thread *t)
{
	uint32_t before = __atomic_load_n(&t->busy, __ATOMIC_RELAXED);
	__atomic_exchange_n(&t->busy, 1, __ATOMIC_SEQ_CST);
	return before;
}

static inline void mperf_thread_idle(struct thread *t, uint32_t before)
{
	__atomic_store_n(&t->busy, before, __ATOMIC_RELEASE);
}
