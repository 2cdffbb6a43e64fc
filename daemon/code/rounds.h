/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rounds: how often each block of a loop runs in one round of it
 *
 * What enters a block leaves it: so samples need not say how often a block runs, but only which way
 * a branch goes, and a block that is slow, or seems so because the hardware samples late, is not
 * taken to run more often. A loop inside is one node, which leaves by any of its exits.
 */

#include "daemon/code/graph.h"

struct rounds;

/* Prepare a loop; its blocks without those of loops inside are *ret_block, borrowed, *ret_n of them.
 * *ret_branches: some do not run in every round. 0, -ENOMEM. */
int rounds_make(struct rounds **ret_rounds, const struct graph *g, uint32_t loop,
	const uint32_t **ret_block, uint32_t *ret_n, bool *ret_branches);

/* heat: by block of the graph, its samples per instruction. ret_times: per block of ret_block. */
void rounds_find(struct rounds *r, const double *heat, double *ret_times);

struct rounds *rounds_free(struct rounds *r);
