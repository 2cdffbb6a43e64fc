/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A top-down tree of what a file or a store counted on one kind of core */

#include "daemon/control/topdown.h"
#include "daemon/metric/metric_inputs.h"
#include "daemon/query/counted.h"

struct stored_wish {
	const struct cores *cores; /* whose database knows the platform */
	const char *top;           /* NULL: the whole tree */
	int levels;                /* 0: as many as were counted */
};

struct stored_tree {
	const struct counted *counted; /* borrowed */
	unsigned core;                 /* of its cores */
	char harts[64];
	struct metric_tree *tree;
	struct metric_inputs *inputs;  /* their metrics are the nodes */
	int *pass;                     /* by node: that counted it; -1: several, or none */
	struct metric_value *node;     /* by node */
	struct metric_value *residual; /* n_nodes + 1 */
	const char *title;
};

/* 0; positive METRIC_* with *ret_error: there is none; -ENOMEM. Call stored_tree_clear in any case. */
int stored_tree_make(struct stored_tree *t, const struct counted *c, unsigned core,
	const struct stored_wish *wish, struct event_error *ret_error);
void stored_tree_clear(struct stored_tree *t);

/* As the tables want it; borrows t. */
struct topdown_tree stored_tree_view(const struct stored_tree *t);
