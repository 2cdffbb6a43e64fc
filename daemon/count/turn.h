/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What turns of groups on the counters do to counts
 *
 * At a turn the kernel takes all groups off their counters, one event after another, and puts those that
 * come next on. The time of all of this is in the running time of each event, but none of them counts in
 * all of it. It is the same at each turn, so no number of turns averages it out.
 * Source: perf_rotate_context in kernel/events/core.c of Linux 6.12; the times of a context's events are
 * taken from one clock that stands still in it.
 */

#include "daemon/pmu/cores.h"
#include "daemon/pmu/event/event.h"

/* For each of the events that leads a group, or is alone: what taking that group off and putting it on
 * takes, as a part of a turn; 0 for members. So much of a count may be missing or too much for each group
 * that is on at the same time. Names of the platform database have its codes. Measured on the calling
 * thread, in about a ms for each group; 0 for what cannot be opened there. */
void turn_parts(const struct kernel *k, const struct platform *p, const struct event_list *events,
	double ret_part[static EVENTS_MAX]);

/* The length of a turn, from the kernel; 0: not known. Source: perf_event_mux_interval_ms, in
 * Documentation/admin-guide/perf of Linux 6.12, and PERF_CPU_HRTIMER in kernel/events/core.c. */
uint64_t turn_ns(const struct kernel *k);

/* Turns of the groups of a hart in a second; a tick each where the kernel does not say. */
double turns_per_second(const struct kernel *k);
