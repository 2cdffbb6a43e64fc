/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* An event on the hart where it is opened
 *
 * The code of an event depends on the hart: a name of the platform database has different codes on
 * different kinds of core, and a generic event that the kernel's driver does not map can still be
 * counted if the database has the core's own code for it. So callers that open an event pass the
 * place.
 */

#include "daemon/pmu/cores.h"
#include "daemon/pmu/event/event.h"

struct event_place {
	const struct kernel *kernel;
	const struct platform *platform; /* of the hart */
	pid_t pid;                       /* as for perf_event_open */
	int hart, group_fd;
};

/* perf_event_open with PERF_FLAG_FD_CLOEXEC. attr is prepared by event_to_attr and the caller; type
 * and config are set to what was opened. e may be NULL for internal events. If the kernel answers
 * ENOENT to a generic event (PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE), the platform's raw code is
 * tried, and its result returned. An event is opened on the hart's own PMU where harts
 * have several (hart_pmu.h); that does not show in attr. A descriptor; -ENOENT also if this core has no event of the
 * platform's name; -errno. */
int event_open_at(
	const struct event_place *place, const struct event *e, struct perf_event_attr *attr);

/* Set attr's config to that hart's code, if the event was given by the name of a platform's event;
 * other events do not change. 0; -ENOENT: this core has no such event. */
int event_place_code(
	const struct event_place *place, const struct event *e, struct perf_event_attr *attr);

/* The core's own event for a generic one, which is opened where the kernel maps none; NULL: there is none, or
 * the event is not generic. */
const struct platform_event *event_place_own(
	const struct event_place *place, uint32_t type, uint64_t config);

/* Was e opened with the core's own code instead of the kernel's generic one? */
bool event_by_raw(const struct event *e, const struct perf_event_attr *attr);

/* Fill *ret_event from the platform's event. */
void event_of_platform(const struct platform_event *from, struct event *ret_event);

/* The number of low bits of a raw code that this kernel passes on to counters of that platform. */
unsigned event_raw_bits(const struct kernel *k, const struct platform *p);

/* The platform's event that counts e on a core of that platform: the one with the same raw code or
 * name, or with `generics` the replacement for a generic event. NULL: the platform has none. */
const struct platform_event *event_described(
	const struct event *e, const struct platform *p, bool generics);
