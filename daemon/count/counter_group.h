/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The groups that a system-wide counter reads: those of its harts that are open already, or its own */

#include "daemon/count/counter.h"
#include "daemon/pmu/event/event_on_core.h"

/* The attributes and the place with which the event is opened on the target; group_fd is -1. */
void counter_ask(const struct counter_terms *t, const struct event *e,
	const struct counter_target *target, struct perf_event_attr *ret_attr,
	struct event_place *ret_place);
/* The same for a hart, to be compared with the events that others have open there. */
struct hart_event counter_asks(const struct counter_terms *t, const struct event *e, int hart);
/* May it be opened including the kernel, since its PMU cannot exclude it? */
bool counter_may_take_kernel_in(const struct counter_terms *t, const struct perf_event_attr *attr);

/* Join a group for each event and target: one that others have opened, whose members it then uses, or a new
 * one. c has its events and targets, and no descriptor. 0 or -ENOMEM. */
int counter_join_groups(struct counter *c);
/* Close the descriptors of an event, or stop using shared ones. */
void counter_close_row(struct counter *c, int event);
/* Leave the groups, after all rows were closed. */
void counter_leave_groups(struct counter *c);
