/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rotation of groups on the counters, and its effect on counts
 *
 * At a rotation the kernel takes all groups off their counters, one event after another, and puts the next
 * groups on. All of that time is in the running time of each event, but no event counts in all of it. The
 * error is the same at each rotation, so it does not average out.
 * Source: perf_rotate_context in kernel/events/core.c of Linux 6.12; the times of a context's events are
 * taken from one clock that stands still in it.
 */

#include "daemon/pmu/cores.h"
#include "daemon/pmu/event/event.h"

/* For each event that leads a group, or is alone: the time of taking that group off and putting it on, as a
 * share of the time between two rotations; 0 for members. For each group that is on at the same time, that
 * share of a count may be missing or too much. Names of the platform database have its codes. Measured on the
 * calling thread, in about a ms for each group; 0 for events that cannot be opened there. */
void rotation_parts(const struct kernel *k, const struct platform *p,
	const struct event_list *events, double ret_part[static EVENTS_MAX]);

/* The time between two rotations, from the kernel; 0: not known. Source: perf_event_mux_interval_ms, in
 * Documentation/admin-guide/perf of Linux 6.12, and PERF_CPU_HRTIMER in kernel/events/core.c. */
uint64_t rotation_ns(const struct kernel *k);

/* Rotations of the groups of a hart in a second; a tick each where the kernel does not say. */
double rotations_per_second(const struct kernel *k);
