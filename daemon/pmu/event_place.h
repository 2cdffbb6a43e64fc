/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* An event at the place where it is opened
 *
 * What an event is depends on the hart: a name of the platform database is another code on another
 * kind of core, and a generic event that the kernel's driver does not map is still counted where
 * the database has the core's own code for it. So whoever opens an event says where.
 */

#include "daemon/pmu/cores.h"
#include "daemon/pmu/event.h"

struct event_place {
	const struct kernel *kernel;
	const struct platform *platform; /* of the hart */
	pid_t pid;                       /* as perf_event_open has it */
	int hart, group_fd;
};

/* perf_event_open with PERF_FLAG_FD_CLOEXEC. attr is as event_to_attr and the caller made it; type
 * and config become what was opened. e may be NULL for what is the kernel's own and no user's.
 * Where the kernel answers ENOENT to a generic event (PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE), the
 * platform's raw code is tried, and its answer is the answer.
 * A descriptor; -ENOENT also where this core has no event of the platform's name; -errno. */
int event_open_at(
	const struct event_place *place, const struct event *e, struct perf_event_attr *attr);

/* Was e, in opening it, given the core's own code in place of the kernel's generic one? */
bool event_by_raw(const struct event *e, const struct perf_event_attr *attr);

/* The platform's own event for cycles in every mode, or NULL. */
const struct platform_event *platform_all_modes(const struct platform *p);

/* Make *ret_event of the platform's event. */
void event_of_platform(const struct platform_event *from, struct event *ret_event);

/* The platform's event that counts e on a core of that platform: e itself where it is raw, or the
 * one that the name means there, or with `generics` what stands in for a generic one. NULL: it is
 * none of the platform's. */
const struct platform_event *event_described(
	const struct event *e, const struct platform *p, bool generics);
