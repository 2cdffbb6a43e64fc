/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A walk's internals: walk.c opens it and runs it, walk_drain.c empties its rings, walk_taps.c hands on what was in them,
 * raises.c samples the tasks of users faster */

#include "daemon/decode/merge.h"
#include "daemon/session/copies.h"
#include "daemon/session/exec_watch.h"
#include "daemon/session/offcpu.h"
#include "daemon/session/raises.h"
#include "daemon/session/stalled.h"
#include "daemon/session/switch_waits.h"
#include "daemon/session/walk.h"

struct walk_inner {
	struct exec_watch execs;
	int rings_fd; /* epoll over all rings, but in a session per task */
	struct merge merge;
	struct tap *taps;
	struct stalled stalled;
	struct raises raises;
	uint64_t next_drain_ns, next_tick_ns;
	uint64_t started_ns;
	uint64_t spent_ns;     /* of the thread, up to the work in hand */
	uint64_t next_rate_ns; /* the kernel's limit is not read again before */
	bool always;           /* as in struct walk_options */
	bool looked;           /* at files of generated code, for the next drain */
	uint64_t pause_end_ns; /* end of the pause: a ring that fills does not wake us before */
	uint64_t goal_ns;      /* up to which the drain in progress goes; 0: none is */
	bool scan_is_due;      /* a hart came online, and its tasks have not been scanned yet */
	uint64_t next_scan_ns; /* of a scan that goes on */
	bool hung[HARTS_MAX];  /* rings whose task has ended: poll would always return at once */
	bool leaves_raised;    /* rings of raises are not drained at present */
	bool throttled;        /* the kernel throttled since the last look at its limit */
	bool stopped;
	struct copies copies;
	struct offcpu *offcpu;      /* NULL: threads without a hart are not looked for */
	struct switch_waits *waits; /* in its place, of chosen tasks; NULL: none were chosen */
	int offcpu_error;           /* why not: an errno; 0: nobody asked */
	uint64_t n_execs_lost[2];   /* by the last look; [1]: of execs that are apart */
};

/* Wait for the rings that there are now. 0 or -errno. */
int walk_follow_rings(struct walk *w);

/* The thread's time since the last call was for that; N_WALK_WORKS: for none. A system call. */
void walk_spend(struct walk *w, enum walk_work on);

/* Copy as much of each stack as has been needed lately. Once a second, after a drain. 0 or -errno. */
int walk_tend_copies(struct walk *w, uint64_t now_ns);

/* CPU time for draining in one iteration of the loop, as long as there is more. */
#define DRAIN_SLICE_NS 5000000u

/* Cut all windows that are over by then, then drain up to then: one slice, after which draining pauses for as long
 * as the slice took. 0; WALK_MORE: more slices are needed; -errno. */
enum { WALK_MORE = 1 };
int walk_drain_slice(struct walk *w, uint64_t by_ns, uint64_t now_ns);
/* The same in one go, but for samples of raises in three slices' time at most. 0 or -errno. */
int walk_drain_all(struct walk *w, uint64_t by_ns);
/* Drain up to then without cutting windows, and without a limit of time. Returns as walk_drain_all does. */
int walk_drain_uncut(struct walk *w, uint64_t cut_ns);
/* Is it worth a drain? */
bool walk_drain_is_due(struct walk *w, uint64_t now_ns);
/* Files of sampled generated code are checked this long before the next drain: enough for the
 * parser. */
#define DRAIN_LOOK_NS 20000000u
bool walk_look_is_due(const struct walk *w, uint64_t now_ns);
/* The time of the next drain, or of the check before it. */
uint64_t walk_drain_deadline_ns(const struct walk *w);

/* --- walk_taps.c; userdata is the walk --------------------------------------------------------- */

/* attribute's sink: every attribution passes here. */
void walk_take(void *userdata, const struct attribution *a);
/* The same of a wait that offcpu.h hands out. */
void walk_take_wait(void *userdata, const struct attribution *a);
/* switch_waits' sink: what taps see that want it. */
void walk_take_switch_wait(void *userdata, const struct attribution *a);
void walk_take_end(void *userdata, struct task *task, uint64_t time_ns);
int walk_take_loops(void *userdata, struct task *task, const struct loop_counts *c);
void walk_mark(void *userdata, struct sweep *s);
/* Does a tap want waits? */
bool walk_watches_waits(const struct walk *w);
/* Have the taps look at threads. */
void walk_look(struct walk *w, uint64_t now_ns);
/* Does nobody wait for names? While the walk runs, a drain is soon. */
bool walk_is_patient(const struct walk *w);
