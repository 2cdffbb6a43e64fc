/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Where chosen threads wait and for how long, by their switches: where BPF cannot look (offcpu.h)
 *
 * A switch out of a hart brings the callers, the next switch in ends the wait, on whatever hart. All waits of
 * WAITS_GRID_NS or more are handed out with their time. Of shorter ones, which may come ten thousand times a second,
 * one moment in each WAITS_GRID_NS of a thread's waiting is drawn, and the wait around it stands for all of it: that is
 * as likely as the wait is long.
 *
 *      thread  ──out┄┄┄┄┄┄in──out┄┄in───out┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄in──
 *      drawn              ▲ (short)      (long: as it is)
 *
 * A thread that was preempted waits for a hart all the time. One that woke waits for a hart for a while before it runs:
 * Linux counts the sum of that for each thread (switch_waits_ready), and the ends of its waits share it equally.
 */

#include "daemon/attribute/attribute.h"
#include "daemon/attribute/sweep.h"
#include "daemon/session/thread_waits.h"

#define WAITS_GRID_NS 10000000u
/* Threads at a time, and bytes of the stacks of those that wait; others' waits have no callers. */
#define WAITS_THREADS_MAX 65536u
#define WAITS_BYTES_MAX (64u << 20)
/* Switches in a second whose callers are kept, and waits whose callers are found: some 5 % of a hart each. Those of
 * others are missing. */
#define WAITS_SWITCHES_PER_S 50000u
#define WAITS_FOUND_PER_S 10000u
/* A wait that goes on is handed out in parts of at least this. */
#define WAITS_PART_NS 200000000u

struct sampler;
struct switch_waits;

struct switch_waits_options {
	struct sampler *sampler;     /* borrowed; has its events (sampler_add_offcpu) */
	struct attribute *attribute; /* borrowed; its sink calls switch_waits_found */
	const struct task_table *tasks;
	const char *proc;  /* borrowed: "/proc" */
	uint64_t start_ns; /* threads that began later are known from their beginning */
	uint64_t seed;     /* of the moments drawn */
	void (*take)(void *userdata, const struct attribution *a);
	void *userdata;
};

/* 0 or -ENOMEM. */
int switch_waits_new(const struct switch_waits_options *o, struct switch_waits **ret_waits);

/* All below take NULL, and do nothing then. */

/* The thread waits, by a look into /proc at now_ns, and counts from since_ns on. function: where in the kernel; borrowed,
 * or NULL: not known. */
void switch_waits_seed(struct switch_waits *w, struct task *task, enum offcpu_kind kind,
	struct frame *function, uint64_t since_ns, uint64_t now_ns);

/* By Linux's count, the thread has waited for a hart for so long in all. Its later waits end with what is missing. */
void switch_waits_ready(struct switch_waits *w, const struct task *task, uint64_t ready_ns);

/* Take a record of STREAM_WAITS, or of a ring of theirs. 0 or -errno. */
int switch_waits_record(struct switch_waits *w, const struct record *r, int hart);
/* Attribute found a wait's callers. */
void switch_waits_found(struct switch_waits *w, const struct attribution *a);
/* Hand out waits under way, as far as they have come: of at least WAITS_PART_NS, or all. */
void switch_waits_give(struct switch_waits *w, uint64_t now_ns, bool all);
/* Once a drain: hand out what was held and is known by now. */
void switch_waits_dispatch(struct switch_waits *w, uint64_t now_ns);
/* Is anything held? */
bool switch_waits_held(const struct switch_waits *w);

void switch_waits_end(struct switch_waits *w, const struct task *task);
/* No thread is watched any more. */
void switch_waits_stop(struct switch_waits *w);
void switch_waits_mark(const struct switch_waits *w, struct sweep *s);

struct switch_waits *switch_waits_free(struct switch_waits *w);
