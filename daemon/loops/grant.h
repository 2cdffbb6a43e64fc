/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Grants: counters that the daemon opens for threads of programs with regions
 *
 * A program may not open events of the PMU where perf_event_paranoid forbids it, the daemon may. It
 * opens the events that its configuration names for one thread and sends their descriptors; the
 * runtime reads them where regions begin and end. They count user code alone, since what the kernel
 * does is not the program's to know; software events are the program's own in any case.
 */

#include <sys/types.h>

#include "daemon/loops/metric.h"
#include "daemon/pmu/event.h"
#include "daemon/pmu/machine.h"

struct cores;

struct grant_event {
	struct event event;
	uint64_t n_granted, n_refused;   /* threads, since it began */
	bool absent;                     /* nothing counts it here: it is not tried again */
	char trouble[EVENT_ERROR_BYTES]; /* why it was refused the last time; "": it was not */
};

struct grants {
	const struct kernel *kernel;   /* borrowed */
	const struct machine *machine; /* borrowed */
	unsigned n_events;
	struct grant_event event[MPERF_GRANTS_MAX];
	struct loop_granted names; /* by place, as the store has them */
};

#define GRANTS_NONE "none"

/* Make it of a list of events as -e has it, or of GRANTS_NONE. 0; GRANTS_WRONG with *ret_error (not
 * parsed, too many, not of user code); *ret_grants is untouched then. */
enum { GRANTS_WRONG = 1 };
int grants_make(const struct kernel *k, const struct machine *m, const struct cores *c,
	const char *text, struct grants *ret_grants, struct event_error *ret_error);

/* What one thread is given: a descriptor for each word, and which event it counts. */
struct grant_set {
	unsigned n;
	int fd[MPERF_GRANTS_MAX];
	uint8_t event[MPERF_GRANTS_MAX]; /* place in the list + 1 */
};

/* Open all events that can be for a thread; refusals are noted. The descriptors are the caller's,
 * to be closed by grants_close. */
void grants_open(struct grants *g, pid_t tid, struct grant_set *ret_set);
void grants_close(const struct grants *g, struct grant_set *set);
