/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Counters for `stat`: events that count and do not sample
 *
 * System-wide (one per hart) or per task with inherit. Values are scaled by time enabled over
 * time running where the kernel multiplexed.
 */

#include "daemon/pmu/cores.h"
#include "daemon/pmu/event.h"
#include "daemon/pmu/machine.h"

struct counter_options {
	const struct event_list *events; /* NULL: the default set */
	const pid_t *pids;               /* NULL: system-wide */
	size_t n_pids;
	bool user_only;
	bool never_kernel;         /* nor where an event cannot leave it out: that one is refused */
	uint64_t fds_max;          /* descriptors that it may take; 0: no limit of the caller's */
	const struct cores *cores; /* borrowed for as long as the counter lives; NULL: nothing is known of cores */
};

struct counter_value {
	uint64_t value;      /* raw sum over harts and tasks */
	uint64_t enabled_ns, running_ns;
	double scaled;       /* value × enabled / running */
	int error;           /* errno if it could not be opened: not measured */
};

struct counter {
	const struct kernel *kernel;
	struct event_list events;
	int *fd;             /* n_events × n_targets, -1 where not open */
	size_t n_targets;
	struct counter_value *value; /* n_events, as of the last counter_read */
	bool user_only;
	const struct cores *cores;
	bool may_see_kernel;
	uint64_t unexcluded;  /* bit i: event i was to leave the kernel out, which its PMU cannot */
	struct hart_set by_raw[EVENTS_MAX]; /* harts on which event i is counted by the core's own code */
};

/* Open, disabled. Events that do not open keep their errno in value[].error; only if none opens
 * is it COUNTER_REFUSED, with *ret_error. COUNTER_FULL: fds_max does not do for all events and
 * targets; nothing was opened. */
enum { COUNTER_REFUSED = 1, COUNTER_GONE, COUNTER_FULL };
int counter_new(const struct kernel *k, const struct machine *m, const struct counter_options *o,
	struct counter **ret_counter, struct event_error *ret_error);
/* Descriptors that it holds. */
size_t counter_n_fds(const struct counter *c);
int counter_start(struct counter *c);
int counter_read(struct counter *c);
struct counter *counter_free(struct counter *c);
