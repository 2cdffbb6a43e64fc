/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The walk of one sampler, and who listens to it
 *
 *      sampler ─▶ merge ─▶ attribute ─┬─▶ tap (the service's recording)
 *                             │  ▲    ├─▶ tap (a client's recording)
 *                             ▼  │    └─▶ tap (a client's top)
 *                            namer   ▲
 *      instrumented programs ─▶ feed ┘
 *
 * What was sampled is worked out once, however many listen. Each tap cuts its own windows in the
 * time of the records: the walk drains up to a tap's cut, tells it, and goes on. Taps may be added
 * and removed while the walk runs, but not from within their own callbacks.
 */

#include <poll.h>

#include "daemon/attribute/sweep.h"
#include "daemon/loops/feed.h"
#include "daemon/pmu/sampler.h"

/* Four drains a second keep a ring of one second of samples three quarters empty, and cost one
 * wakeup each. */
#define WALK_DRAIN_NS 250000000u

struct walk_options {
	struct sampler_options sampler;  /* pids and events are borrowed for the call */
	bool all;
	bool after_exec;                 /* the pids count from their next exec on */
	bool hide_kernel;
	bool own;                        /* only for the user whose rights we have (private) */
	bool always;                     /* it runs for weeks: be woken for fewer execs */
	const char *namer;               /* path of mperf-namer or NULL */
	struct graves *graves;           /* of its workers; borrowed (attribute/namer.h) */
	const struct stack_starts *starts; /* borrowed for as long as the walk lives; or NULL */
};

struct tap {
	void *userdata;
	/* An attribution in the order of time; borrowed for the call. */
	void (*take)(void *userdata, const struct attribution *a);
	/* All of before cut_ns was taken. The tap moves its cut_ns on (else it is not cut again).
	 * 0 or -errno, fatal for the daemon: what is the tap's own trouble it keeps to itself. */
	int (*cut)(void *userdata, uint64_t cut_ns);
	/* What an instrumented program counted, and whose it is (NULL: not known). Borrowed for the
	 * call. 0 or -errno, fatal. NULL: it is not wanted. */
	int (*take_loops)(void *userdata, struct task *task, const struct loop_counts *c);
	/* Before a sweep: mark the tasks and frames that it holds (sweep.h). NULL: it holds none. */
	void (*mark)(void *userdata, struct sweep *s);
	uint64_t cut_ns;                 /* CLOCK_MONOTONIC; UINT64_MAX: never */
	struct tap *next;                /* the walk's */
};

struct walk {
	struct sampler *sampler;
	struct task_table tasks;
	struct file_table files;
	struct namer *namer;
	struct loop_sites sites;
	struct feed *feed;               /* NULL: nobody listens to programs */
	struct grants grants;            /* what threads of programs are given to count in regions */
	uint64_t n_taken;                /* samples that came out of the rings, whoever listened */
	uint64_t realtime_offset_ns;     /* CLOCK_REALTIME - CLOCK_MONOTONIC, looked at each second */
	/* the rest is walk.c's */
	struct walk_inner *inner;
};

enum {
	WALK_REFUSED = 1, /* *ret_error says by whom */
	WALK_GONE,        /* no target lives */
	WALK_FULL,        /* descriptors */
};

/* Plan, open, scan /proc. Nothing is enabled yet. 0, WALK_*, -errno. */
int walk_new(const struct walk_options *o, struct walk **ret_walk, struct event_error *ret_error);
/* Enable all events, and scan again. 0 or -errno. */
int walk_start(struct walk *w, const pid_t *pids, size_t n_pids);
struct walk *walk_free(struct walk *w);

/* Listen to instrumented programs at that socket, which is borrowed, and give their threads those
 * events to count in regions (grant.h). 0; WALK_NO_GRANTS, it listens, but the events are wrong, as
 * *ret_error says; -errno. */
enum { WALK_NO_GRANTS = 1 };
int walk_listen(struct walk *w, int listen_fd, const struct feed_limits *limits,
	const char *region_events, struct event_error *ret_error);

void walk_add(struct walk *w, struct tap *tap);
void walk_remove(struct walk *w, struct tap *tap);

size_t walk_fds(const struct walk *w, struct pollfd *fds, size_t n);
uint64_t walk_deadline_ns(const struct walk *w);
/* Drain, cut and name as is due. 0 or -errno. */
int walk_dispatch(struct walk *w, uint64_t now_ns);

/* Take all that happened up to now_ns (CLOCK_MONOTONIC) out of the rings: before a tap ends. 0 or
 * -errno. */
int walk_catch_up(struct walk *w, uint64_t now_ns);
/* Stop sampling for good and take what is left in the rings. 0 or -errno. */
int walk_stop(struct walk *w, uint64_t now_ns);

/* Hand to the taps what waits for the unwinder, with its leaf alone: after walk_stop, when nobody will
 * wait any longer. */
void walk_give_up(struct walk *w);

/* Before a tap stores or shows what it has: hide what is its user's no more (attribute.h). */
void walk_check_owners(struct walk *w);

/* A tap waits for the next exec of these processes, which are known; it is found even if its record
 * is lost. Those of walk_options are waited for already. */
void walk_await_exec(struct walk *w, const pid_t *pids, size_t n_pids);

/* Free tasks, files and frames that nobody refers to any more (sweep.h). 0 or -errno. */
int walk_sweep(struct walk *w);

/* What is wrong with some harts though the walk goes on, as a sentence; "": nothing. */
const char *walk_trouble(const struct walk *w);

/* Change the rate of what samples by the ladder. Weights change with it. 0 or -errno. */
int walk_set_rate(struct walk *w, uint32_t hz);
