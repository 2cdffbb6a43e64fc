/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A top-down tree of the counts in a file or a store, for one kind of core */

#include "daemon/metric/evaluate.h"
#include "daemon/query/counted.h"

struct stored_wish {
	const struct cores *cores; /* cores whose database has the platform */
	const char *top;           /* NULL: the whole tree */
	int levels;                /* 0: as many as were counted */
};

#define STORED_ALL_PASSES (-1) /* several counted it, or none */

struct stored_tree {
	const struct counted *counted; /* borrowed */
	unsigned core;                 /* of its cores */
	char harts[64];
	struct metric_tree *tree;
	struct metric_inputs *inputs;  /* their metrics are the nodes */
	int *pass;                     /* by node: pass that counted it */
	struct metric_value *node;     /* by node */
	struct metric_value *residual; /* n_nodes + 1 */
	const char *title;
	size_t n_passes; /* of the core */
};

/* 0; positive METRIC_* with *ret_error: there is none; -ENOMEM. Call stored_tree_clear in any case. */
int stored_tree_make(struct stored_tree *t, const struct counted *c, unsigned core,
	const struct stored_wish *wish, struct event_error *ret_error);
void stored_tree_clear(struct stored_tree *t);

/* Does any node need what this event counts? */
bool stored_tree_reads(const struct stored_tree *t, const struct counted_event *e);
/* The event's name, "?" if it has none. */
const char *stored_tree_event(const struct stored_tree *t, const struct counted_event *e);
