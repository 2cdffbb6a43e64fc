/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Thread: the counters of one thread, by region and object
 *
 *      thread ── instance of no region ── block (object 0), block (object 1), …
 *             ├─ instance of "solve"   ── block (object 0), …
 *             └─ entered (object 0), entered (object 1), …      whose biases are switched
 *
 * A region instance is a thread's state in one region; a block holds its counters there for one
 * object. Only the thread adds to these lists, at their heads and with signals blocked; the round
 * (round.h) reads them meanwhile. While its thread lives, nothing is removed from a list: entries
 * of a closed object have a NULL object, and their thread may reuse them. Members that both sides
 * use are accessed by __atomic builtins.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/abi.h"
#include "runtime/draw.h"
#include "runtime/grant.h"

struct area;
struct object;
struct region;
struct state;

/* Size of a thread's record with all its lists. About 130 regions with three objects fit; in
 * further ones, a thread counts for the enclosing region. */
#define MPERF_THREAD_BYTES (128u << 10)
/* If there is no sink and more records than this are in use, a new thread searches for ended
 * threads: a program with fewer threads never pays for the search. */
#define MPERF_RECORDS_LOOK_MIN 64u
/* Nesting of regions; deeper ones are not entered. */
#define MPERF_REGION_DEPTH_MAX 32u

struct block {
	struct block *next;
	struct object *object; /* atomic; NULL: closed */
	int64_t *bias;         /* of the object, in its thread */
	int64_t distance;      /* the bias to count here */
	struct area *area;
	/* the round's */
	uint64_t from_ns;
	uint64_t until_ns;
	uint32_t round;  /* round of `cursor` */
	uint32_t cursor; /* counters sent so far in this round */
};

/* Costs of a region, as in MPERF_SPENT. */
struct spent {
	uint64_t entries;
	uint64_t time_ns;
	uint64_t granted[MPERF_GRANTS_MAX];
	uint64_t granted_ns;
	uint64_t measured;
	uint64_t represented;
	uint64_t inner;
	uint64_t time_variance;
	uint64_t granted_variance[MPERF_GRANTS_MAX];
};

/* Differences between measured entries of a region. */
struct spreads {
	struct spread time;
	struct spread granted[MPERF_GRANTS_MAX];
	uint32_t grant; /* serial of the counters that were read */
};

/* A measured entry. */
struct measured {
	uint64_t begin_ns;
	struct grant_reading granted[MPERF_GRANTS_MAX];
	uint32_t grant;      /* serial of the counters that were read; 0: none */
	uint32_t stands_for; /* entries; 0: it is not measured */
};

/* A marker or a name on the fast path. */
struct way {
	const struct mperf_region *in; /* NULL: none */
	const char *out;               /* MPERF_NO_NAME: none */
};

#define MPERF_NO_NAME ((const char *)&mperf_nowhere)
#define MPERF_NOT_OPEN UINTPTR_MAX

struct region_instance {
	/* The fast path of markers (marker.c) leads from here into this instance; into
	 * mperf_nowhere if it is closed. The first member, as mperf_here_at expects. */
	struct region_instance *into;
	struct way plain;   /* into and out of this instance, if its code uses only biases, */
	struct way segment; /* or the segment %gs too, */
	struct way asked;   /* or only the kernel may set that */
	uintptr_t address;  /* on the stack, of the open entry; callees are below. MPERF_NOT_OPEN */
	int64_t passes;     /* atomic; entries before the next one that is measured */
	struct region_instance *parent; /* the enclosing instance; NULL: this is the instance of no
					 * region */
	int64_t *bias;                  /* of the one object, if the fast path is open */
	int64_t distance;
	bool has_gs_base; /* it counts through %gs, */
	bool asks;        /* whose base the kernel sets */

	struct region_instance *next;
	struct thread *thread;
	struct region *region;    /* NULL: in none */
	struct mperf_region site; /* the marker of its begin; compare strings by address only, since
				   * those of a closed library are gone */
	struct region_instance *entered_last; /* last inner instance; the next is mostly the same */
	struct block *blocks;                 /* atomic head */
	uint32_t n_filled;                    /* entered objects that have a block here */
	uint32_t depth;                       /* regions around it, and it */
	uint32_t round;
	/* atomic; time of entry; 0: the thread is outside, or that entry is not measured */
	uint64_t open_ns;
	uint64_t open_for;  /* atomic; entries for which the open one stands */
	struct spent spent; /* atomic members; of its entries, `passes` are yet to come */
	struct spent sent;
	uint64_t from_ns;
	struct measured measured; /* the thread's, as the next: the open entry */
	struct draw draw;
	struct spreads spreads;
};

struct entered {
	struct entered *next;
	struct object *object; /* atomic; NULL: closed */
	int64_t *bias;
};

/* An open entry into a region that was already open. */
struct again {
	struct region_instance *instance;
	struct region_instance *around;
	uintptr_t address;
	uint32_t depth; /* open entries, this one included */
};

/* Limit of timed entries of different loops that run at the same time; further ones are timed, but
 * recursion into them is not noticed. */
#define MPERF_TIMED_MAX 64u

/* A timed entry that runs (timed_loop.c). */
struct timed_entry {
	uint64_t *words;
	uint64_t begin_ns;
	uint64_t inner_ns; /* time of other timed loops inside, which belongs to them; weighted, so
			   * an estimate */
	uint64_t open_ns;  /* as readers see it at MPERF_TIMED_OPEN_NS; 0: they do not */
	uintptr_t address; /* on the stack; callees are below */
	uint64_t window;   /* the loop's value of MPERF_TIMED_OPEN_NS before this entry */
	uint64_t inside;   /* entries of the loop inside this one that were seen, if recursive */
	bool recursive;    /* the loop was entered again inside it */
};

enum thread_state { MPERF_THREAD_FREE, MPERF_THREAD_MADE, MPERF_THREAD_LIVES };

/* Counters that the daemon granted (grant.h). */
struct grant {
	struct grant *next; /* in the list of retired grants */
	struct thread *thread;
	uint32_t serial; /* from 1 */
	uint32_t n;
	int fds[MPERF_GRANTS_MAX];
	uint64_t ids[MPERF_GRANTS_MAX]; /* of their events */
	struct grant_pages *pages;      /* grant.c; NULL: none is mapped */
};

struct thread {
	struct thread *next; /* never changes */
	uint32_t state;      /* atomic, enum thread_state */
	uint32_t busy;       /* atomic; 1: it uses objects, biases or grants that may be freed */
	uint32_t id;
	uint32_t tid;
	uint64_t begin_ns;
	uint64_t random;
	struct grant *grant; /* atomic */
	void *tallies;       /* atomic; the OpenMP tool's (state.h) */

	struct region_instance *root;      /* the one in no region */
	struct region_instance *instances; /* atomic head of all */
	struct entered *entered;           /* atomic head */
	uint32_t n_entered;
	uint32_t n_again;
	uint32_t too_deep;
	int64_t no_bias; /* the fast path writes here if the thread has entered no object */
	/* the round's */
	uint32_t serial; /* of the connection to which it was announced */
	uint32_t round;  /* to which gone belongs */
	bool gone;       /* as found by that round */
	struct again again[MPERF_REGION_DEPTH_MAX];
	struct timed_entry timed[MPERF_TIMED_MAX];
	uint32_t n_timed;

	size_t used; /* of `bytes` */
	_Alignas(64) unsigned char bytes[];
};

/* Instance that the calling thread counts in; mperf_nowhere before it has a record. */
extern __thread struct region_instance *mperf_here __attribute__((visibility("hidden")));
extern struct region_instance mperf_nowhere __attribute__((visibility("hidden")));

/* The calling thread's record, or NULL where it has none yet. */
struct thread *mperf_thread_self(void);

/* The same, but make a record if there is none. All signals are blocked. NULL: no memory. */
struct thread *mperf_thread_make(void);

/* A random number of 44 bits for the calling thread; 0 if it has no record. */
uint64_t mperf_thread_chance(void);

/* Free the record of an ended thread, or of a fork's parent, with its areas. The caller must be its
 * only user. */
void mperf_thread_forget(struct thread *t);

/* In a fork's child: recount the records, since the fork may have interrupted other threads
 * half-way. */
void mperf_threads_count(struct state *s);

/* Has the thread of this record ended? Its id can be reused once it has ended, so only ESRCH is
 * certain; a reused id is detected when the new thread ends. Source: tgkill(2). */
bool mperf_thread_gone(const struct state *s, const struct thread *t);

/* Free the records of all ended threads, with their counts; under the lock. Returns their number.
 * */
uint32_t mperf_threads_forget_gone(struct state *s);

/* After fork, in the child's thread: drop its parent's counts. */
void mperf_thread_forked(struct thread *t, uint64_t now_ns);

/* Zeroed memory that lives as long as the record; or NULL. Signals are blocked. */
void *mperf_thread_memory(struct thread *t, size_t bytes);

/* Give the calling thread a block in its current region instance for an object that it enters.
 * Signals are blocked. NULL: no memory. */
struct block *mperf_thread_enter(struct thread *t, struct object *object);

/* Close the fast path into and out of an instance of the calling thread. */
void mperf_way_close(struct region_instance *instance);

/* Switch to that region instance: all biases become those of its blocks, which are made if missing.
 * False: no memory, and the thread stays where it is. */
bool mperf_thread_switch(struct thread *t, struct region_instance *to);

/* Set and restore a thread's busy word around the use of memory that other threads may free; signal
 * handlers nest. */
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
