/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The plan of metrics: the events that they need, their groups, and their values afterwards
 *
 * Metrics are found by name or group in the platform database, and their events packed into as few
 * passes of the core's counters as possible (platform-db/counter_plan.h). Each pass is one group of
 * events, and the kernel rotates the groups: it knows which counters others hold. If the number of
 * counters is not known, each metric is a group of its own.
 */

#include "daemon/metric/metric_inputs.h"
#include "daemon/pmu/cores.h"
#include "platform-db/counter_plan.h"

struct metric_plan;
struct counter_terms;

/* A metric of a plan. */
struct planned_metric {
	const struct platform_metric *metric;
	enum plan_fate fate;
	const char *lacks;   /* PLAN_IMPOSSIBLE: the event that cannot be counted, */
	const char *because; /* and a sentence */
	size_t pass;         /* PLAN_WHOLE: the pass that has all its events */
};

/* The platform whose metrics a plan is made of: NULL if harts are of several kinds. */
const struct platform *metric_plan_platform(const struct cores *cores);

/* Harts of one kind, for which a plan is made. */
struct metric_harts {
	const struct cores *cores;
	const struct platform *platform; /* of all of them */
	struct hart_set harts;
	/* How they will be counted. Metrics covered by groups that are open on all of these harts
	 * are read from those groups, and need no pass. NULL: do not use such groups. */
	const struct counter_terms *shares;
};

/* Plan these metrics, for harts of one kind. 0; METRIC_TOO_MANY with *ret_error; -ENOMEM. Borrows cores' platforms,
 * until cores_reload. */
int metric_plan_of(const struct kernel *k, const struct metric_harts *harts,
	const struct metric_choice *chosen, struct metric_plan **ret_plan,
	struct event_error *ret_error);
/* The same of metrics and groups of these names. Also METRIC_UNKNOWN. */
int metric_plan_for(const struct kernel *k, const struct metric_harts *harts, char *const *name,
	size_t n, struct metric_plan **ret_plan, struct event_error *ret_error);
/* The same for all harts of the machine. 0; METRIC_* with *ret_error; -ENOMEM. Borrows cores'
 * platforms, until cores_reload. */
int metric_plan_new(const struct kernel *k, const struct machine *m, const struct cores *cores,
	char *const *name, size_t n, struct metric_plan **ret_plan, struct event_error *ret_error);
struct metric_plan *metric_plan_free(struct metric_plan *plan);
DEFINE_CLEANUP(struct metric_plan *, metric_plan_free)

size_t metric_plan_n_metrics(const struct metric_plan *plan);
const struct planned_metric *metric_plan_metric(const struct metric_plan *plan, size_t i);

/* The names of the events that it needs, also of those that cannot be counted; NULL after the last. */
const char *metric_plan_input(
	const struct metric_plan *plan, const struct planned_metric *m, size_t i);

/* A sentence with the condition that this machine's firmware must meet for the counts to be right; NULL:
 * none. Where firmware chooses the counters, Linux cannot. So if a code means different events on
 * different counters of a core, firmware must know that. */
const char *metric_plan_condition(const struct metric_plan *plan);

size_t metric_plan_n_passes(const struct metric_plan *plan);
/* n_passes passes; the name of the event in one of their places, and the counters that can count it, as a
 * mask. */
const struct plan_pass *metric_plan_places(const struct metric_plan *plan);
const char *metric_plan_event(const struct metric_plan *plan, const struct plan_place *place);
uint64_t metric_plan_counters(const struct metric_plan *plan, const struct plan_place *place);
/* The number of passes, the last ones, that are read in groups that others have open. */
size_t metric_plan_n_covered(const struct metric_plan *plan);
/* Is there no plan with fewer passes for the core? If some passes are covered, we did not look for one. */
bool metric_plan_is_minimal(const struct metric_plan *plan);
/* The pass of the plan's event in that position. */
size_t metric_plan_pass(const struct metric_plan *plan, size_t position);

/* The event specification of a pass, "{a,b}", as for -e; NULL after the last. The events of all
 * passes, in this order, are the plan's. */
const char *metric_plan_events(const struct metric_plan *plan, size_t pass);

/* Append the events of all passes. 0; METRIC_TOO_MANY: not all of them fit, with *ret_error; METRIC_NO_EVENT with
 * *ret_error: the list is still empty; -ENOMEM. */
int metric_plan_parse(
	const struct metric_plan *plan, struct event_list *events, struct event_error *ret_error);

/* Does the metric use the plan's event in that position? */
bool metric_plan_needs(
	const struct metric_plan *plan, const struct planned_metric *m, size_t position);

/* The inputs of the plan's metrics. A row of counts has the counts of the plan's events: the count of an
 * input is from the metric's own pass; if the metric is split, from the first pass that has the event.
 * Borrowed. */
const struct metric_inputs *metric_plan_inputs(const struct metric_plan *plan);
