/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Programs: messages in, what loops counted out
 *
 *      TABLE ─▶ scopes are sites, counters are sums over them
 *      DELTAS ─▶ added up per (thread, region, scope) ── ROUND ─▶ sink
 *      SPENT ────────────────────────────────────────────────────▶ sink
 *
 * A counter of a spanning tree says something only together with the others, so nothing goes out
 * before a round is complete; and as a function may be half-way through just then, a sum may be
 * below zero by one path: that is kept back, and taken off the next round's. All sums wrap like the
 * counters they are made of. A program is in nobody's way: what it may hold is bounded and charged
 * to budgets, what it says wrong is counted by cause (cause.h).
 */

#include "daemon/loops/cause.h"
#include "daemon/loops/site.h"
#include "daemon/loops/table.h"
#include "proto/hash_table.h"

/* Executables and libraries; a desktop program maps 300. */
#define PROGRAM_OBJECTS_MAX 4096u
/* Compilation units of one object; the largest have 30,000. */
#define PROGRAM_MODULES_MAX (1u << 16)
#define PROGRAM_COUNTERS_MAX (1u << 24)
/* Threads that live; what is lived through is unbounded. */
#define PROGRAM_THREADS_MAX 8192u
/* Regions as they were entered, one for each path. */
#define PROGRAM_REGIONS_MAX 4096u
#define PROGRAM_REGION_DEPTH_MAX 64u
/* What a program may say that makes no sense until it is taken for no program of ours. */
#define PROGRAM_FAULTS_MAX 10000u

/* Bytes in use; each budget is part of the one above. */
struct budget {
	uint64_t used, max;
	struct budget *above; /* NULL: none */
};

struct program_thread {
	uint32_t id, tid; /* tid as its pid namespace has it */
	uint64_t begin_ns;
	uint64_t until_ns;    /* CLOCK_MONOTONIC, to which its counts went out */
	bool counted;         /* in this round */
	uint8_t asked_grants; /* the owner's: how often he tried to give it counters, */
	uint8_t granted[MPERF_GRANTS_MAX]; /* and what its words count: place + 1; 0 nothing */
	void *who;                         /* the owner's: whom it takes the thread for, */
	int32_t our_tid;                   /* and its tid in the owner's namespace; 0: not known */
	UT_hash_handle hh;
};

struct program_region {
	uint32_t id, depth;
	struct loop_site *site;
	UT_hash_handle hh;
};

/* Something counted. All is borrowed for the call. */
struct loop_counts {
	struct program_thread *thread;
	struct loop_site *site;
	struct loop_site *region; /* NULL: in none */
	const uint64_t *value;    /* N_LOOP_VALUES */
	uint64_t until_ns;
	const struct loop_granted *granted; /* names of its last values; NULL: it has none */
	uint8_t was_granted; /* bit i: of these, the i-th was counted, and is 0 if it is 0 */
};

struct program_options {
	struct loop_sites *sites; /* borrowed, like all here */
	uint64_t *causes;         /* N_FEED_CAUSES: counted up */
	struct budget *budget;    /* what it may hold is part of it; NULL: unbounded */
	uint64_t memory_max;
	const struct loop_granted *granted; /* what may be granted; NULL: nothing */
	/* A region or block was counted: 0 or -errno, fatal. */
	int (*take)(void *userdata, const struct loop_counts *c);
	/* A thread is gone, and with it `who`. May be NULL. */
	void (*thread_gone)(void *userdata, struct program_thread *t);
	void *userdata;
};

struct program_object;
struct program_part;

/* What a message began and did not end: it goes on in later turns of the loop. */
struct program_work {
	struct program_object *object; /* of a table that becomes sites; NULL: none does */
	uint32_t module, scope;        /* and the scope that is next */
	uint32_t *n_blocks;            /* by scope: blocks so far */
	bool round;                    /* what a round counted is handed out */
};

struct program {
	struct program_options o;
	struct budget budget;
	bool greeted, last; /* last: it said that it exits */
	uint64_t begin_ns;
	uint32_t vscale, period_ms;
	uint64_t n_rounds, until_ns; /* of the last round */
	uint32_t threads_lost;
	uint32_t n_faults;
	/* the rest is program.c's */
	struct program_object *objects;
	struct program_thread *threads;
	struct program_region *regions;
	struct program_part *parts;
	struct loop_site *outside; /* stands for no region */
	struct program_work work;
};

int program_new(const struct program_options *o, struct program **ret_program);

/* Take one message. 0, also where it was counted and passed over; FEED_* that is to be hung up on,
 * which was counted too; -errno. */
int program_take(struct program *p, const uint8_t *bytes, size_t n);

/* Is there work left of the message that was taken last? Then program_work is to be called, and no
 * message taken, until there is none. */
static inline bool program_is_at_work(const struct program *p)
{
	return p->work.object || p->work.round;
}
/* Do some milliseconds' worth of it. As program_take. */
int program_work(struct program *p);

struct program *program_free(struct program *p);
