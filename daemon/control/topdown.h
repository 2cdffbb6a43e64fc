/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The tables of top-down trees: their nodes, and the events counted for them
 *
 * A tree belongs to one kind of core. It is counted for the answer (stat.c), or comes from a file
 * (topdown_stored.c); its sender provides the values.
 */

#include "daemon/control/stat_row.h"
#include "daemon/metric/live_metrics.h"

struct request;
struct row_stream;

struct topdown_tree {
	const char *core;  /* name of its kind of core, */
	const char *harts; /* and its harts, "0-3" */
	const struct metric_tree *tree;
	bool is_cut; /* the tree has more levels than could be counted at once */
	size_t n_passes;
	bool is_fewest;                      /* no plan has fewer passes */
	const char *turns;                   /* what rotates the passes; "no": nothing */
	const struct metric_value *value;    /* by node */
	const struct metric_value *residual; /* n_nodes + 1 */
	const struct metric_inputs *inputs;  /* of the nodes */
	/* The passes that counted a node, "1+2". Rows of the table "event", by topdown_send_event. */
	void (*passes)(
		const struct topdown_tree *t, size_t node, char text[static METRIC_PASSES_BYTES]);
	int (*send_events)(const struct topdown_tree *t, const struct answer *answer);
	const void *userdata;
};

/* Send "core": a row for each tree, with its core and how it was counted. Exported for tests. */
int topdown_send_cores(const struct topdown_tree *tree, size_t n, const struct answer *answer);

/* Send "node": the trees, each node before its children, and after these a residual if they do not add
 * up to the node. Exported for tests. */
int topdown_send_nodes(const struct topdown_tree *tree, size_t n, const struct answer *answer);

/* Send "event": the inputs, once for each pass that counts them. Exported for tests. */
int topdown_send_events(const struct topdown_tree *tree, size_t n, const struct answer *answer);
int topdown_send_event(const struct topdown_tree *t,
	const struct answer_value value[static N_STAT_COLUMNS], size_t pass,
	const struct answer *answer);

/* All three. */
int topdown_send(const struct topdown_tree *tree, size_t n, struct row_stream *stream,
	const struct answer *answer);

/* A tree that was counted. Borrows all. */
struct topdown_counted {
	const struct live_metrics *metrics;
	const struct counts *counts;
	const struct metric_values *values;
	const char *core, *harts;
};
struct topdown_tree topdown_of_counted(const struct topdown_counted *c);

/* Answer a request with a path or a filter, from a file or from the counts in a service's store
 * (topdown_stored.c). 0 or -errno. */
int topdown_stored(struct request *q, const Mperf__Request *request);
