/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Samples of threads without a hart: what looks found, in the order of time among the records of rings
 *
 * A thread that is still waiting in the same place is found by look after look. What is known of it is kept, and its
 * samples are summed up until it runs, ends, or a tap cuts its window.
 */

#include "daemon/attribute/attribute.h"
#include "daemon/attribute/sweep.h"
#include "daemon/session/offcpu_looks.h"
#include "daemon/session/wakers.h"

struct offcpu;

struct offcpu_options {
	struct sampler *sampler;     /* borrowed; gets the events */
	struct attribute *attribute; /* borrowed */
	const struct task_table *tasks;
	bool all;          /* all tasks are wanted; else only marked ones */
	uint32_t part_ppm; /* of a hart's time, for looks */
	/* A thread that rests (has waited in one place for a sixth of this) is handed out that often, and when all are
	 * asked for: most threads of a machine rest for hours. 0: with each cut. */
	uint64_t rest_ns;
	bool wakers; /* find who ends each wait, and hand out waits with that, when they have ended */
	/* Receives summed samples of kept threads; attribute delivers the others. */
	void (*take)(void *userdata, const struct attribution *a);
	void *userdata;
};

/* 0; OFFCPU_REFUSED: *ret_error, an errno, says why, also if only wakers are refused; -errno. */
enum { OFFCPU_REFUSED = 1 };
int offcpu_new(const struct offcpu_options *o, struct offcpu **ret_offcpu, int *ret_error);

/* All functions take NULL, and do nothing then. */

/* The session begins: earlier looks stand for no time. */
void offcpu_begin(struct offcpu *c, uint64_t now_ns);

/* The moment up to which rings must be drained before offcpu_feed; UINT64_MAX: nothing is there to feed. */
uint64_t offcpu_next_ns(const struct offcpu *c);
/* Take the threads of that look, until the loop's thread has used that much CPU time. 0; OFFCPU_MORE; -errno. */
enum { OFFCPU_MORE = 1 };
int offcpu_feed(struct offcpu *c, uint64_t until_cpu_ns);

/* Attribute found that sample's callers: keep them. True: it is handed out later, or is no sample. */
bool offcpu_found(struct offcpu *c, const struct attribution *a);
/* Hand out what is summed up: of all threads, unless they rest and not all are asked for; of one, which ended and is
 * forgotten. */
void offcpu_give(struct offcpu *c, bool all);
void offcpu_end(struct offcpu *c, const struct task *task);
void offcpu_mark(const struct offcpu *c, struct sweep *s);

/* The session ends: hand out all waits with their wakers, but those whose callers may still come. Are there such? Hand
 * them out as they are. */
void offcpu_stop(struct offcpu *c);
bool offcpu_awaits_callers(const struct offcpu *c);
void offcpu_give_up_callers(struct offcpu *c);
/* Wakes that were lost, so that waits have no waker. */
uint64_t offcpu_wakes_lost(const struct offcpu *c);

/* Once a drain. */
void offcpu_dispatch(struct offcpu *c, uint64_t now_ns);

/* A client watches: looks are as frequent as in a recording (OFFCPU_EVERY_NS, OFFCPU_PPM). Else they are as the
 * service has them always (OFFCPU_ALWAYS_NS, OFFCPU_ALWAYS_PPM). From the next interval on. */
void offcpu_watched(struct offcpu *c, bool is_watched);
/* The budget is spent: lengthen the intervals, as offcpu_looks_put_off. */
void offcpu_put_off(struct offcpu *c, bool put_off);

struct offcpu_looks_state offcpu_state(const struct offcpu *c);

struct offcpu *offcpu_free(struct offcpu *c);
