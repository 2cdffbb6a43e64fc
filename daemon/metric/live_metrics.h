/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Metrics of a stat or of a top-down tree: their plan, and their values from its counts */

#include "daemon/count/counts.h"
#include "daemon/metric/evaluate.h"
#include "daemon/metric/metric_plan.h"

struct metric_wish {
	char *const *name; /* metrics and groups; of a tree at most one, its first level */
	size_t n_names;
	bool is_tree;
	int levels; /* of a tree; 0: as many as can be counted at once */
};

struct live_metrics {
	struct metric_plan *plan;
	struct metric_tree *tree; /* its nodes are the plan's metrics; NULL: metrics by name */
	bool is_cut;              /* the tree has more levels than could be counted at once */
	int first;                /* of the plan's events among those counted; they are the last */
	size_t n_events;          /* of the plan */
	bool is_shared;           /* everything belongs to another plan */
};

/* Plan the wished metrics for harts of one kind, and append their events to *events. 0; METRIC_* with
 * *ret_error; -ENOMEM. */
int live_metrics_new(const struct kernel *k, const struct metric_harts *harts,
	const struct metric_wish *wish, struct event_list *events,
	struct live_metrics **ret_metrics, struct event_error *ret_error);
/* The same metrics of other harts of that kind, which are counted by the same list of events; `of` must
 * outlive them. 0 or -ENOMEM. */
int live_metrics_share(const struct live_metrics *of, struct live_metrics **ret_metrics);
struct live_metrics *live_metrics_free(struct live_metrics *m);
DEFINE_CLEANUP(struct live_metrics *, live_metrics_free)

/* The values of all metrics of the plan, and residuals of its tree, as metric_evaluate has them. The caller frees. 0 or
 * -ENOMEM. */
struct metric_values {
	struct metric_value *metric;
	struct metric_value *residual;
};
int live_metrics_values(const struct live_metrics *m, const struct counts *counts,
	struct metric_values *ret_values);
void metric_values_clear(struct metric_values *v);

/* "1", "1+2": the passes that counted metric i, from 1. */
#define METRIC_PASSES_BYTES 64
void live_metrics_passes(
	const struct live_metrics *m, size_t i, char text[static METRIC_PASSES_BYTES]);
