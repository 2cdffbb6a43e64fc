/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The walk of one sampler, and its taps
 *
 *      sampler ─▶ merge ─▶ attribute ─┬─▶ tap (the service's recording)
 *                             │  ▲    ├─▶ tap (a client's recording)
 *                             ▼  │    └─▶ tap (a client's top)
 *                            namer   ▲
 *      instrumented programs ─▶ feed ┘
 *
 * Each sample is processed once, whatever the number of taps. Each tap cuts its own windows by the
 * time of the records: the walk drains up to a tap's cut, tells the tap, and goes on. Taps may be
 * added and removed while the walk runs, but not from their own callbacks.
 */

#include <poll.h>

#include "daemon/attribute/sweep.h"
#include "daemon/loops/feed.h"
#include "daemon/sampler/sampler.h"
#include "daemon/session/offcpu_looks.h"
#include "daemon/session/targets.h"

/* Four drains per second keep a ring for one second of samples three quarters empty, and cost one
 * wakeup each. */
#define WALK_DRAIN_NS 250000000u
/* Interval between drains in a session of limited length: for WALK_HURRIES_NS from its beginning,
 * and after a program ended before it could be opened. So programs that live at least this long get
 * names, for 2 ms of CPU time a second. */
#define WALK_HURRY_NS 25000000u
#define WALK_HURRIES_NS 2000000000u

struct walk_options {
	struct sampler_options sampler; /* pids and events are borrowed for the call */
	bool all;
	bool after_exec; /* the pids count only from their next exec */
	bool hide_kernel;
	bool own;    /* only for the user that we run as (private) */
	bool always; /* it runs for weeks, so wake up for fewer execs */
	/* Look for threads without a hart, in at most this part (in millionths) of a hart's time; 0: do not. */
	uint32_t offcpu_ppm;
	/* find who ends the waits (wakers.h); not where a client watches while it runs. Where that is refused, it does not
	 * look for threads without a hart at all */
	bool wakers;
	const char *namer;                 /* path of mperf-namer or NULL */
	struct graves *graves;             /* of its workers; borrowed (naming/namer.h) */
	const struct stack_starts *starts; /* borrowed for as long as the walk lives; or NULL */
	struct quota *pool;                /* borrowed likewise; as in struct file_table; or NULL */
	uid_t pool_uid;
	const struct label_variables *variables; /* the same */
	struct proc_reader *reader;              /* the same */
};

struct tap {
	void *userdata;
	/* An attribution, in order of time; borrowed for the call. */
	void (*take)(void *userdata, const struct attribution *a);
	/* Everything before cut_ns has been taken. The tap advances its cut_ns (else it is not cut
	 * again). 0 or -errno, fatal for the daemon: a tap handles its own errors. */
	int (*cut)(void *userdata, uint64_t cut_ns);
	/* Counts of an instrumented program, and its task (NULL: not known). Borrowed for the call.
	 * 0 or -errno, fatal. May be NULL. */
	int (*take_loops)(void *userdata, struct task *task, const struct loop_counts *c);
	/* Before a sweep: mark the tasks and frames that it holds (sweep.h). NULL: it
	 * holds none. */
	void (*mark)(void *userdata, struct sweep *s);
	/* A thread ended. After a drain: time to look at threads. Both may be NULL. */
	void (*end)(void *userdata, struct task *task, uint64_t time_ns);
	void (*look)(void *userdata, uint64_t now_ns);
	uint64_t cut_ns;  /* CLOCK_MONOTONIC; UINT64_MAX: never */
	bool prompt;      /* cut on time, not only with the next drain */
	bool is_always;   /* it runs for weeks, and nobody watches it */
	bool is_patient;  /* names may come a second later (namer_be_patient) */
	bool wants_waits; /* it sees where tasks of walk_watch_waits wait */
	uid_t raise_uid;  /* it sees samples of that user's raise (raises.h); -1: of none */
	struct tap *next; /* the walk's */
};

/* What the loop's CPU time for a walk is for; requests of clients and programs are not in it. */
enum walk_work {
	WALK_SAMPLES,  /* records of samples and switches, without raises: what fewer would save */
	WALK_SIDEBAND, /* all other records */
	WALK_EXECS,    /* arguments and owners of programs that exec */
	WALK_NAMING,   /* requests to the namer and its answers */
	WALK_OFFCPU,   /* looks for threads that wait, and their samples */
	N_WALK_WORKS,
};

struct walk {
	struct sampler *sampler;
	struct task_table tasks;
	struct file_table files;
	struct attribute *attribute;
	struct namer *namer;
	struct loop_sites sites;
	struct feed *feed; /* NULL: programs cannot connect */
	/* events that threads of programs count in regions */
	struct grants grants;
	uint64_t n_taken; /* samples taken out of the rings, whatever the taps, without raises */
	uint64_t n_sideband[N_TASK_WORKS]; /* forks, execs and mappings that the rings reported */
	uint64_t n_sample_records;         /* those of WALK_SAMPLES */
	uint64_t cpu_ns[N_WALK_WORKS];
	/* CLOCK_REALTIME - CLOCK_MONOTONIC, updated every second */
	uint64_t realtime_offset_ns;
	/* the rest is walk.c's */
	struct walk_inner *inner;
};

enum {
	WALK_REFUSED = 1, /* *ret_error says why */
	WALK_GONE,        /* no target exists */
	WALK_FULL,        /* descriptors */
};

/* Plan, open, scan /proc. Events are not enabled yet. 0, WALK_*, -errno. */
int walk_new(const struct walk_options *o, struct walk **ret_walk, struct event_error *ret_error);
/* The same, but in slices, each within an iteration of the loop: call walk_scan at the time of
 * walk_scan_ns, until that is UINT64_MAX. 0 or -errno. */
int walk_open(const struct walk_options *o, struct walk **ret_walk, struct event_error *ret_error);
uint64_t walk_scan_ns(const struct walk *w);
int walk_scan(struct walk *w);
/* Enable all events, and begin to scan again; walk_dispatch continues the scan. 0 or -errno. */
int walk_start(struct walk *w, const pid_t *pids, size_t n_pids);
struct walk *walk_free(struct walk *w);

/* Accept instrumented programs at that socket, which is borrowed, and grant their threads those
 * events in regions (grant.h). 0; WALK_NO_GRANTS: it listens, but the events are wrong, as
 * *ret_error says; -errno. */
enum { WALK_NO_GRANTS = 1 };
int walk_listen(struct walk *w, int listen_fd, const struct feed_limits *limits,
	const char *region_events, struct event_error *ret_error);

void walk_add(struct walk *w, struct tap *tap);
void walk_remove(struct walk *w, struct tap *tap);

size_t walk_fds(const struct walk *w, struct pollfd *fds, size_t n);
uint64_t walk_deadline_ns(const struct walk *w);
/* Drain, cut and name what is due. 0 or -errno. */
int walk_dispatch(struct walk *w, uint64_t now_ns);

/* Sample these processes of that user faster from now on, if that user has a raise (raises.h),
 * without waiting for their first samples. 0 or -errno. */
int walk_raise(struct walk *w, uid_t uid, const pid_t *pids, size_t n_pids);

/* Drain the rings up to now_ns (CLOCK_MONOTONIC): before a tap ends. 0 or -errno. */
int walk_catch_up(struct walk *w, uint64_t now_ns);
/* Stop sampling for good and drain the rings. 0 or -errno. */
int walk_stop(struct walk *w, uint64_t now_ns);

/* Hand a sample to one tap, as its raise shows it. */
void walk_give(struct walk *w, struct tap *tap, const struct attribution *a);

/* Before a tap stores or shows samples: hide those that no longer belong to their user
 * (attribute.h). */
void walk_check_owners(struct walk *w);

/* Wait for the next exec of these known processes for a tap: it is found even if its record is
 * lost. The walk already does so for those of walk_options. */
void walk_await_exec(struct walk *w, const pid_t *pids, size_t n_pids);

/* Free tasks, files and frames without references (sweep.h). 0 or -errno. */
int walk_sweep(struct walk *w);

/* A sentence about what is wrong with some harts while the walk goes on; "": nothing. */
const char *walk_trouble(const struct walk *w);

/* Samples that came out of that hart's ring since the start. */
uint64_t walk_samples(const struct walk *w, int hart);

/* Reduce the work to that effort from now on (sampler/effort.h). Records that are in the rings are taken
 * before. 0 or -errno. Cheap if nothing changes. */
int walk_set_effort(struct walk *w, const struct sampler_effort *effort);

/* Do execs wake the loop, so that arguments are read while the process lives? From now on, only drains look at them,
 * or not. */
bool walk_is_woken_by_execs(const struct walk *w);
void walk_put_off_execs(struct walk *w, bool put_off);

/* What looks for threads that wait did so far. *ret_error: why there are none, an errno; 0: there are, or nobody asked for
 * them; or NULL. */
struct offcpu_looks_state walk_offcpu(const struct walk *w, int *ret_error);
/* Are there looks? */
bool walk_has_looks(const struct walk *w);
/* With walk_options.wakers, after walk_stop: may callers of waits still come? Hand waits out without them. */
bool walk_awaits_callers_of_waits(const struct walk *w);
void walk_give_up_callers_of_waits(struct walk *w);
/* Wakes that were lost, so that waits have no waker. */
uint64_t walk_wakes_lost(const struct walk *w);
/* The frame of a kernel function of which only the name is known. 0, positive: there is no room; -errno. */
int walk_function(struct walk *w, const char *function, struct frame **ret_frame);
/* In the place of looks: watch these targets' tasks, and what they start, where they leave their harts, until the tap, which
 * wants_waits from now on, is removed. since_ns: what is waiting already counts from then on. 0; WALK_NO_WAITS: it is
 * refused, or there are too many tasks; -errno. */
enum { WALK_NO_WAITS = 1 };
int walk_watch_waits(
	struct walk *w, struct tap *tap, const struct targets *targets, uint64_t since_ns);
/* By Linux's count, a thread of such targets has waited for a hart for so long in all. */
void walk_take_ready(struct walk *w, const struct task *task, uint64_t ready_ns);
/* Is it still unknown of some samples what their threads waited for? */
bool walk_awaits_kinds(const struct walk *w);
/* Take them for waits of other kinds. */
void walk_settle_kinds(struct walk *w);
/* Look for them seldom from now on, or as often as their part of the time allows. */
void walk_put_off_looks(struct walk *w, bool put_off);

/* Change the rate of events chosen by the ladder. Weights change with it. 0 or -errno. */
int walk_set_rate(struct walk *w, uint32_t hz);
