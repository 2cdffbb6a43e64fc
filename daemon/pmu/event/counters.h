/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The counters that can count an event, as masks for the planner (platform-db/counter_plan.h) */

#include "daemon/pmu/event/event.h"
#include "platform-db/counter_plan.h"
#include "platform-db/platform.h"

/* Counters that can count the event on a core of that platform. If they are not known, all
 * counters. */
struct plan_event event_counters(const struct platform *p, const struct event *e);

/* All counters of a core of the platform, fixed ones included; if they are not known, as many as a
 * group may have events. The kernel refuses events that exceed the real number, and those events are
 * counted outside the group. */
uint64_t platform_all_counters(const struct platform *p);
