/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Raises of a walk: users whose own tasks are sampled faster than the system
 *
 * A task of such a user is raised when the session's own events have sampled it, so tasks that sleep cost nothing.
 * Until then, and if no more events can be opened, the session's own samples represent the task.
 * The time for the samples of a raise is limited; beyond that they are dropped before they cost
 * anything, so only that user loses samples.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/attribute/attribute.h"
#include "daemon/sampler/sampler.h"

struct walk;

/* Tasks of a raise for which events are open, each with the tasks that it starts; beyond it, the events of the
 * oldest task are closed. */
#define RAISE_TASKS_MAX 64u
#define RAISE_ASKED_MAX 32u /* tasks that wait for their events */
/* Share of the loop's time (1 / N) for all raises together; each raise has an equal share of it. */
#define RAISES_TIME_PART 4u

struct raise {
	uid_t uid;
	uint32_t hz; /* 0: nobody's */
	pid_t task[RAISE_TASKS_MAX];
	uint32_t n_tasks, next; /* next: the oldest */
	pid_t asked[RAISE_ASKED_MAX];
	uint32_t n_asked;
	int64_t balance_ns; /* of time; below 0: its samples are dropped */
	uint64_t units;     /* of work in this slice */
	uint64_t retry_ns;  /* events could not be opened: retry at this time */
};

struct raises {
	struct raise of[RAISES_MAX]; /* by number - 1 */
	unsigned n;                  /* in use */
	struct hart_set harts;       /* that sampled at the last look */
	uint64_t filled_ns, units;
};

/* Sample that user's tasks hz times a second from now on; 0: at the common rate. False: RAISES_MAX
 * other users have a raise. */
bool raises_want(struct walk *w, uid_t uid, uint32_t hz);
/* The rate of that user's raise; 0: there is none, as for root and -1. */
uint32_t raises_rate(const struct walk *w, uid_t uid);
/* Samples of that user's raise that were lost since *reported, which is brought up to date. */
uint64_t raises_lost(const struct walk *w, uid_t uid, uint64_t *reported);
/* Its number; 0: there is none. Exported for tests. */
unsigned raises_number(const struct walk *w, uid_t uid);

/* Raise the threads of these processes, if they are that user's, without waiting for a sample. */
void raises_name(struct walk *w, uid_t uid, const pid_t *pids, size_t n_pids);
/* For a sample of the session's own events: raise its task, if its user has a raise. */
void raises_notice(struct walk *w, const struct attribution *a);
/* Open events for tasks that were noticed, for a moment at most. 0 or -errno. */
int raises_dispatch(struct walk *w, uint64_t now_ns);

/* Some harts may sample again, but have no events for tasks that were raised before. So all tasks
 * are raised again, each once it is sampled. reopened: some harts' events are new since the last
 * check. */
void raises_look_at_harts(struct walk *w, bool reopened);

/* Does a tap that sees the raise of that user (-1: none) take the attribution? True: it takes
 * *seen, which is unchanged, or reduced to its counts because samples of the raise represent the
 * task. */
bool raises_show(const struct walk *w, uid_t uid, struct attribution *seen);

/* Does the raise have time left for a sample that takes so many units of work? If not, it is dropped and counted. */
bool raises_admit(struct walk *w, unsigned raise, uint64_t units);
/* Charge the raises for a slice, which took so long with all its work. */
void raises_charge(struct walk *w, uint64_t took_ns, uint64_t now_ns);
