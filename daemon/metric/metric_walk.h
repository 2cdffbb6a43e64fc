/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Metrics by name, and the inputs of one: names of events in its formula, and in those of the metrics that it
 * names */

#include "daemon/pmu/event/event.h"
#include "platform-db/expression.h"
#include "platform-db/metric_tree.h"
#include "platform-db/pool.h"

#define METRICS_MAX 64 /* of one request */

enum {
	METRIC_UNKNOWN = 1,  /* no metric or group of that name: *ret_error says so */
	METRIC_TOO_MANY,     /* more than METRICS_MAX, or than PLAN_EVENTS_MAX events */
	METRIC_CORES_DIFFER, /* harts of several kinds: sums over them have no metrics */
	METRIC_NO_TREE,      /* this core has no top-down tree */
	METRIC_NO_LEVEL,     /* its tree has fewer levels */
	METRIC_NO_EVENT,     /* none of their events can be counted, or was counted */
};

/* Find the metrics and groups of these names, each metric once, in the order of the names. 0; METRIC_UNKNOWN,
 * METRIC_TOO_MANY with *ret_error. */
struct metric_choice {
	const struct platform_metric *metric[METRICS_MAX];
	size_t n;
};
int metric_choose(const struct platform *p, char *const *name, size_t n,
	struct metric_choice *ret_choice, struct event_error *ret_error);
/* Make the tree whose first level is that metric or group, or (NULL) the whole top-down tree; down to `levels`, 0:
 * all. 0; METRIC_NO_TREE, METRIC_UNKNOWN, METRIC_NO_LEVEL with *ret_error; -ENOMEM. Borrows the platform. */
int metric_find_tree(const struct platform *p, const char *top, int levels,
	struct metric_tree **ret_tree, struct event_error *ret_error);
/* The nodes of a tree, in their order. 0; METRIC_TOO_MANY with *ret_error. */
int metric_choose_tree(const struct metric_tree *tree, struct metric_choice *ret_choice,
	struct event_error *ret_error);

/* Call take for each input, as the formula spells it and as often as it is there. Names for which `known` has
 * values are folded first (into pool), so that branches which are not taken need no input. 0; take's value,
 * which ends the walk; an outcome of expression_fold. */
int metric_each_input(const struct platform *p, struct pool *pool,
	const struct platform_metric *metric, const struct expression_source *known,
	int (*take)(void *userdata, const char *name), void *userdata);

/* The name as the kernel reads it: in a formula, "@" is the slash of "pmu/event/". */
void metric_spell(const char *name, char spelled[static EVENT_NAME_BYTES_MAX]);
