/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rounds: how often each block of a loop runs in one round (iteration)
 *
 * Time per instruction is a poor measure of how often a block runs: samples fall on the instruction
 * that the core waits for, and on the first one after a mispredicted branch. But flow is conserved:
 * a block is left as often as it is entered. So the unknowns are not the blocks but the
 * probabilities of branches, from which the counts of all blocks follow. We search for the
 * probabilities that fit the samples best, given that the time of an instruction varies at random
 * between blocks.
 */

#include "daemon/code/graph.h"

/* Heat of a block, from samples. */
struct heat {
	double log_rate; /* natural logarithm of samples per instruction */
	double weight;   /* 1 / the variance of that */
};

struct rounds;

/* Prepare a loop. *ret_block: its *ret_n blocks outside inner loops, borrowed from *ret_rounds.
 * *ret_branches: some blocks do not run in every round, or the last round ends before them. 0,
 * -ENOMEM. */
int rounds_make(struct rounds **ret_rounds, const struct graph *g, uint32_t loop,
	const uint32_t **ret_block, uint32_t *ret_n, bool *ret_branches);

/* Set the share of rounds that are the last one of an entry: entries divided by rounds. The exits
 * share it equally. */
void rounds_leave(struct rounds *r, double part);

/* The nodes of the graph that is fitted: rounds_fit takes time in proportion to steps times nodes. */
uint32_t rounds_nodes(const struct rounds *r);

/* Draw new priors for all branches, so that repeated fits vary like other runs. *state:
 * chance.h. */
void rounds_doubt(struct rounds *r, uint64_t *state);

/* Fit the chances to `heat`, starting from the last fit. ret_times: how often each block runs in a round.
 * Both are arrays in the order of ret_block. */
void rounds_fit(struct rounds *r, const struct heat *heat, uint32_t steps, double *ret_times);

struct rounds *rounds_free(struct rounds *r);
