/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Programs: messages in, counts of loops out
 *
 *      TABLE ─▶ scopes are sites, counters are sums over them
 *      DELTAS ─▶ added up per (thread, region, scope) ── ROUND ─▶ sink
 *      SPENT, TALLY ─────────────────────────────────────────────▶ sink
 *
 * A counter of a spanning tree has a meaning only together with the others, so counts are handed
 * out only when a round is complete. A function may be half-way through at that moment, so a sum
 * may be negative by one path: it is carried over to the next round. All sums wrap like their
 * counters. A program cannot disturb others: its memory is bounded and charged to budgets, and its
 * errors are counted by cause (cause.h).
 */

#include <sys/types.h>

#include "daemon/loops/cause.h"
#include "daemon/loops/site.h"
#include "daemon/loops/table.h"
#include "proto/base/hash_table.h"

/* Executables and libraries; a desktop program maps 300. */
#define PROGRAM_OBJECTS_MAX 4096u
/* Compilation units of one object; the largest have 30,000. */
#define PROGRAM_MODULES_MAX (1u << 16)
#define PROGRAM_COUNTERS_MAX (1u << 24)
/* Threads alive at the same time; no limit over the program's lifetime. */
#define PROGRAM_THREADS_MAX 8192u
/* Regions, one for each path by which they were entered. */
#define PROGRAM_REGIONS_MAX 4096u
#define PROGRAM_REGION_DEPTH_MAX 64u
/* Places of OpenMP; its tool sends at most 3,073. */
#define PROGRAM_PLACES_MAX 4096u
/* Nonsensical messages tolerated before we disconnect a program. */
#define PROGRAM_FAULTS_MAX 10000u

/* Bytes in use; each budget is part of the one above. */
struct budget {
	uint64_t used, max;
	/* may hold at most as much as then remains in the budget above for others */
	bool leaves_half;
	struct budget *above; /* NULL: none */
};

struct program_thread {
	uint32_t id, tid; /* tid is the one in its pid namespace */
	uint64_t begin_ns;
	uint64_t until_ns;    /* CLOCK_MONOTONIC: its counts were handed out up to this time */
	bool counted;         /* in this round */
	uint8_t asked_grants; /* the owner's: number of its tries to grant counters, */
	uint8_t granted[MPERF_GRANTS_MAX]; /* and the event of each word: index + 1; 0: none */
	void *who;                         /* the owner's: the task that it takes the thread for, */
	int32_t our_tid;                   /* and its tid in the owner's namespace; 0: not known */
	UT_hash_handle hh;
};

struct program_region {
	uint32_t id, depth;
	struct loop_site *site;
	UT_hash_handle hh;
};

/* A place of OpenMP. */
struct program_place {
	uint32_t id;
	uint64_t address; /* in the process; 0: not known */
	struct loop_site *site;
	UT_hash_handle hh;
};

/* Counts of a site. All is borrowed for the call. */
struct loop_counts {
	struct program_thread *thread;
	struct loop_site *site;
	struct loop_site *region; /* NULL: outside all regions */
	const uint64_t *value;    /* N_LOOP_VALUES */
	uint64_t until_ns;
	uint64_t address;                   /* of a place, in the process; 0: not known, or none */
	const struct loop_granted *granted; /* names of its granted values; NULL: it has none */
	uint8_t was_granted; /* bit i: granted event i was counted, so a value of 0 means 0 */
};

struct program_options {
	struct loop_sites *sites;  /* borrowed, like all here */
	struct table_cache *cache; /* NULL: each program has tables of its own */
	uid_t uid;                 /* user whose tables of the cache are used */
	uint64_t *causes;          /* N_FEED_CAUSES: counted up */
	uint64_t *lost_tables;     /* counted up if tables are above limits; may be NULL */
	struct budget *budget;     /* its memory is charged to it; NULL: unbounded */
	uint64_t memory_max;
	const struct loop_granted *granted; /* events that may be granted; NULL: none */
	/* A region or block was counted: 0; FEED_*, counted as of a message; -errno, fatal. */
	int (*take)(void *userdata, const struct loop_counts *c);
	/* Inform a program of feed version 2 whether the tables of an object are wanted. NULL: not
	 * possible; such programs then send the tables after a while. */
	void (*want)(void *userdata, uint32_t object, bool wanted);
	/* A thread has ended, and `who` becomes invalid. May be NULL. */
	void (*thread_gone)(void *userdata, struct program_thread *t);
	void *userdata;
};

struct program_object;
struct program_sum;
struct table_cache;

/* Unfinished work of a message, continued in later rounds of the loop. */
struct program_work {
	/* object whose table is being turned into sites; NULL: none */
	struct program_object *object;
	uint32_t module, scope; /* and the next scope */
	uint32_t *n_blocks;     /* by scope: blocks so far */
	bool round;             /* the counts of a round are being handed out */
	/* an ended thread whose counts are being handed out; NULL: none */
	struct program_thread *ended;
	struct program_object *gone; /* the same for an object */
	uint64_t until_ns;           /* number of sums of `ended` so far */
};

struct program {
	struct program_options o;
	struct budget budget;
	bool greeted, last; /* last: it announced its exit */
	bool limited;       /* a limit of ours refused one of its messages */
	uint64_t begin_ns;
	uint32_t version, vscale, period_ms;
	uint64_t n_rounds, until_ns; /* of the last round */
	uint64_t n_tables;           /* incremented when the set of known functions changes */
	uint32_t threads_lost;
	uint32_t n_faults;
	/* private to program.c */
	struct program_object *objects;
	struct program_thread *threads;
	struct program_region *regions;
	struct program_place *places;
	struct program_sum *sums;
	struct loop_site *outside; /* represents "in no region" */
	struct program_work work;
};

int program_new(const struct program_options *o, struct program **ret_program);

/* Take one message. 0, also if it was counted as a fault and skipped; FEED_* if the program must be
 * disconnected, also counted; -errno. */
int program_take(struct program *p, const uint8_t *bytes, size_t n);

/* Is work of the last message left? Then call program_work, and take no message, until none is
 * left. */
static inline bool program_is_at_work(const struct program *p)
{
	return p->work.object || p->work.round || p->work.ended || p->work.gone;
}
/* Do a few milliseconds of this work. Returns as program_take. */
int program_work(struct program *p);

struct program *program_free(struct program *p);
