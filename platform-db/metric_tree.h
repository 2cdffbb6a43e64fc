/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The tree of a top-down method, given by the groups of its metrics
 *
 * The metrics of one group, such as TopdownL1, are its first level. The children of a metric X are
 * the metrics of the group X_group. Linux' own metrics have the same groups.
 *
 * Source: tools/perf/Documentation/topdown.txt and tools/perf/pmu-events of Linux 6.6.
 */

#include <stddef.h>

#include "platform-db/platform.h"

#define METRIC_TREE_TOP "TopdownL1"
#define METRIC_TREE_LEVELS_MAX 16 /* levels that are read; Intel's deepest tree has six */

/* Only the metrics of TopdownL1, and of a group whose name begins with this, divide all slots. */
#define METRIC_TREE_WHOLE "topdown-"

/* Metrics of this group are slots that did useful work: large is good, and no bottleneck. */
#define METRIC_TREE_USEFUL "Useful"

struct metric_node {
	const struct platform_metric *metric;
	int parent;    /* position of a node; -1: none */
	int level;     /* from 1 */
	bool has_more; /* the node has children below the last level, which are not in the tree */
};

struct metric_tree {
	struct metric_node *node; /* n_nodes, each before its children, in the order of the files */
	size_t n_nodes;
	int levels;    /* of its nodes */
	int deepest;   /* deepest existing level */
	bool is_whole; /* the first level divides all slots */
};

enum { METRIC_TREE_NONE = 1 };

/* Make the tree whose first level are the metrics of the group `top`, or the metric of that name. Down
 * to `levels`; 0: all. 0; METRIC_TREE_NONE: there is no such group or metric; -ENOMEM. Borrows the
 * platform's metrics. */
int metric_tree_new(
	const struct platform *p, const char *top, int levels, struct metric_tree **ret_tree);
struct metric_tree *metric_tree_free(struct metric_tree *tree);
DEFINE_CLEANUP(struct metric_tree *, metric_tree_free)

/* Residual of a node's value (-1: of all slots) after its children: value[n_nodes] are those of the
 * nodes, NAN where there is none. NAN if there is no residual: the node has no children, it or one
 * of them has no value, their units differ, or the first level does not divide all slots. */
double metric_tree_rest(const struct metric_tree *tree, int node, const double *value);

/* The largest child of a node (-1: of the first level) that is not useful work. -1: none is above 0, the
 * node's residual is larger, or the figures of the first level do not belong together. */
int metric_tree_worst(const struct metric_tree *tree, int node, const double *value);
