/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The counters that can count an event, as masks for the planner (platform-db/counter_plan.h) */

#include "daemon/pmu/event/event.h"
#include "platform-db/counter_plan.h"
#include "platform-db/platform.h"

/* Of a core of that platform. Where nothing is known of the event, all counters are meant. */
struct plan_event event_counters(const struct platform *p, const struct event *e);

/* All that a core of the platform has, fixed ones included; where that is not known, as many as a group
 * may have events. The kernel refuses what is too much, and those events are counted beside the group. */
uint64_t platform_all_counters(const struct platform *p);
