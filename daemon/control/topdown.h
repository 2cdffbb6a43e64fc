/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The tables of a top-down tree: its nodes, and what it was counted of */

#include "daemon/control/stat_metrics.h"

/* "core": one row, of which core the tree is and how it was counted. */
int topdown_send_core(const struct stat_metrics *m, const char *core, const struct answer *answer);

/* "node": the tree, each node before its children, and after them a residual if they do not add up to
 * it. */
int topdown_send_nodes(
	const struct stat_metrics *m, const struct metric_values *v, const struct answer *answer);

/* "event": the inputs, once for each pass that counts them. */
int topdown_send_events(const struct stat_metrics *m, const struct stat_counts *counts,
	const struct answer *answer);
