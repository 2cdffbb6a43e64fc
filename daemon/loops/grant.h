/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Grants: counters that the daemon opens for threads of programs with regions
 *
 * If perf_event_paranoid forbids a program to open PMU events, the daemon still may. It opens the
 * configured events for one thread and sends their descriptors; the runtime reads them where
 * regions begin and end. They count user code only, since the program must not learn what the
 * kernel does; software events are the program's own in any case.
 */

#include <sys/types.h>

#include "daemon/kernel/machine.h"
#include "daemon/loops/metric.h"
#include "daemon/pmu/event/event.h"

struct cores;

struct grant_event {
	struct event event;
	uint64_t n_granted, n_refused;   /* threads, since the start */
	bool absent;                     /* nothing counts it here: do not try again */
	char trouble[EVENT_ERROR_BYTES]; /* why it was last refused; "": never refused */
};

struct grants {
	const struct kernel *kernel;   /* borrowed */
	const struct machine *machine; /* borrowed */
	const struct cores *cores;     /* borrowed; NULL: nothing is known about cores */
	unsigned n_events;
	struct grant_event event[MPERF_GRANTS_MAX];
	struct loop_granted names; /* by place, as the store has them */
};

#define GRANTS_NONE "none"

/* Parse a list of events as for -e, or GRANTS_NONE; LLC-load-misses may become events of the core
 * (grant_lines.h). 0; GRANTS_WRONG with *ret_error (cannot be parsed, too many, not of user code);
 * -ENOMEM. *ret_grants is untouched unless 0. */
enum { GRANTS_WRONG = 1 };
int grants_make(const struct kernel *k, const struct machine *m, const struct cores *c,
	const char *text, struct grants *ret_grants, struct event_error *ret_error);

/* Descriptors that a thread is given, one for each word, and the event that each counts. */
struct grant_set {
	unsigned n;
	int fd[MPERF_GRANTS_MAX];
	uint8_t event[MPERF_GRANTS_MAX]; /* place in the list + 1 */
};

/* For a thread, open all events that can be opened; refusals are noted. The caller owns the
 * descriptors, and closes them with grants_close. */
void grants_open(struct grants *g, pid_t tid, struct grant_set *ret_set);
void grants_close(const struct grants *g, struct grant_set *set);
