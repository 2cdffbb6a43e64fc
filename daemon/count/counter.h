/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Counters for `stat`: events that count and do not sample
 *
 * System-wide (one per hart) or per task with inherit, on all harts or some. Values are scaled by time
 * enabled / time running if the kernel multiplexed.
 */

#include "daemon/kernel/machine.h"
#include "daemon/pmu/cores.h"
#include "daemon/pmu/event/event.h"

struct counter_options {
	const struct event_list *events; /* NULL: the default set */
	const pid_t *pids;               /* NULL: system-wide */
	size_t n_pids;
	const struct hart_set *harts; /* NULL: all that are online */
	bool user_only;
	bool never_kernel; /* even if an event cannot exclude it: that event is refused */
	uint64_t fds_max;  /* descriptors that it may open; 0: no limit from the caller */
	/* borrowed while the counter exists; NULL: nothing is known about cores, and nothing is shared */
	const struct cores *cores;
	bool after_exec; /* of tasks: count from their next exec on, which the kernel starts */
	bool is_alone;   /* share no group with other counters, which are system-wide too */
};

/* How its events are opened. */
struct counter_terms {
	const struct kernel *kernel;
	const struct cores *cores; /* NULL: nothing is known about them */
	bool user_only;
	bool may_see_kernel; /* where a PMU cannot exclude it, too */
	bool after_exec;     /* of tasks */
};
struct counter_terms counter_terms_of(
	const struct kernel *k, const struct machine *m, const struct counter_options *o);

struct counter_value {
	uint64_t value; /* raw sum over harts and tasks */
	uint64_t enabled_ns, running_ns;
	double scaled; /* value × enabled / running */
	int error; /* errno if it could not be opened, ENODATA if it counts nothing: not measured */
};

struct counter_target {
	pid_t pid; /* a thread; -1: all */
	int hart;  /* -1: all */
	bool gone; /* it has ended, or hangs in an exec: not asked again for each event */
};

struct counter {
	struct counter_terms terms;
	struct event_list events;
	int *fd; /* n_events × n_targets, -1 where not open */
	/* System-wide: of each, its member of a group of the hart, and what that had counted when we
	 * started. NULL: nothing is shared. */
	struct hart_member **member;
	struct group_count *base;
	struct counter_target *target;
	size_t n_targets;
	struct counter_value *value; /* n_events, as of the last counter_read */
	uint64_t unexcluded; /* bit i: event i should exclude the kernel, but its PMU cannot */
	/* harts on which event i uses the core's own event code */
	struct hart_set by_raw[EVENTS_MAX];
	bool drops_dead; /* nobody asked for its events by name: those that count nothing are left out */
	struct counter_opening {
		int event; /* of the next descriptor */
		size_t target;
		bool any_opened;
		bool row_opened; /* opened on some target so far; otherwise */
		int error;       /* why it is not measured, as -errno */
		bool some_harts; /* its PMU is counted on these alone: */
		struct hart_set harts;
	} opening;
};

/* Open the events, disabled. Events that do not open have their errno in value[].error;
 * COUNTER_REFUSED, with *ret_error, only if none opens. COUNTER_FULL: fds_max is too small for all
 * events and targets; nothing was opened. */
enum { COUNTER_REFUSED = 1, COUNTER_GONE, COUNTER_FULL, COUNTER_MORE };
int counter_new(const struct kernel *k, const struct machine *m, const struct counter_options *o,
	struct counter **ret_counter, struct event_error *ret_error);
/* The same in steps. Find the counter's events and targets, as counter_new does, but open nothing. */
int counter_plan(const struct kernel *k, const struct machine *m, const struct counter_options *o,
	struct counter **ret_counter, struct event_error *ret_error);
/* Open the next descriptor, in some 10 µs, or 2 ms if its task is held in an exec. COUNTER_MORE: it was not the
 * last; 0; COUNTER_REFUSED and COUNTER_GONE as above: then only counter_free may follow. */
int counter_open(struct counter *c, const struct machine *m, struct event_error *ret_error);
/* The most descriptors of its own that it will have open. */
static inline size_t counter_n_fds_max(const struct counter *c)
{
	return (size_t)c->events.n_events * c->n_targets;
}
/* The number of descriptors that are open for the counter, including those that others use as well, so that no
 * other client is charged when one leaves. */
size_t counter_n_fds(const struct counter *c);
/* Count from here on, or from the next exec; others may join its groups. 0 or -errno. */
int counter_start(struct counter *c);
/* The number of other counters that use the group which counts the event, the greatest of all harts;
 * *ret_n_harts: the number of harts with any. */
size_t counter_n_others(const struct counter *c, int event, size_t *ret_n_harts);
/* The number of events in the group that begins at `event`, divided by the number that the counter wants of it:
 * 1 or more. The kernel takes all of them off and puts them on together. */
double counter_rotation_scale(const struct counter *c, int event);
/* Read the sums into values. 0 or -errno. */
int counter_read(struct counter *c);
/* Read them by target: one of value, since the start; targets that do not count an event, or cannot be read, are
 * left out. 0; what take returns, which ends it; -errno of the first descriptor that cannot be read. */
struct counter_reading {
	int event; /* position in events */
	const struct counter_target *target;
	uint64_t value, enabled_ns, running_ns;
};
int counter_read_each(const struct counter *c,
	int (*take)(void *userdata, const struct counter_reading *r), void *userdata);
/* Find the event that was counted for the smallest share of the time, 0 to 1; -1 if there is none. Events
 * that never got a counter have no count, and are left out. */
int counter_scarcest(const struct counter *c, double *ret_part);
struct counter *counter_free(struct counter *c);
