/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A call tree as rows: top down, or a function's callers, or its callees
 *
 * Nodes of one function under the same row are one row. A function that calls itself counts once: its callers and
 * callees are those of its outermost calls.
 */

#include "client/flamegraph/flame.h"

enum call_tree_way { CALL_TREE_DOWN, CALL_TREE_CALLERS, CALL_TREE_CALLEES };

struct call_tree_row {
	const struct flame_node *node; /* one of those that the row stands for: names and kind */
	uint32_t depth;                /* of the first row: 0 */
	double self, total;            /* self of callers: 0 */
};

struct call_tree {
	struct call_tree_row *
		row; /* a caller before its callees, the largest first (of callers, the other way round) */
	size_t n_rows, size;
	double whole;
	size_t n_left_out; /* rows below the least share, with all that is below them as one */
};

/* Make the rows of a finished flame. function: for CALLERS and CALLEES; least: rows with a smaller
 * share of the whole, or of the function's total, are left out. 0; -ENOENT: there is no such function; -ENOMEM. The struct needs call_tree_clear in all cases. */
int call_tree_make(struct call_tree *t, const struct flame *f, enum call_tree_way way,
	const char *function, double least);
void call_tree_clear(struct call_tree *t);

/* Names of functions that contain `part`, those with most first. Returns how many were found, at most n. */
size_t call_tree_like(const struct flame *f, const char *part, const char **ret_name, size_t n);
