/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rounds: how often each block of a loop runs in one round of it
 *
 * Time per instruction is a poor measure of how often a block runs: samples fall on the instruction
 * that the core waits for, and on the first one behind a branch that it guessed wrong. But control
 * flows: what enters a block leaves it. So the unknowns are not the blocks but the branches, each with
 * its chances, and the times of all blocks follow from them. Those chances are sought that fit the
 * samples best, if the time of an instruction differs from block to block by chance.
 */

#include "daemon/code/graph.h"

/* What a run says of a block. */
struct heat {
	double log_rate; /* natural logarithm of samples per instruction */
	double weight;   /* 1 / the variance of that */
};

struct rounds;

/* Prepare a loop; its blocks without those of loops inside are *ret_block, borrowed, *ret_n of them.
 * *ret_branches: some do not run in every round, or the last one ends before them. 0, -ENOMEM. */
int rounds_make(struct rounds **ret_rounds, const struct graph *g, uint32_t loop,
	const uint32_t **ret_block, uint32_t *ret_n, bool *ret_branches);

/* Entries of the loop, over its rounds: so often a round is the last, and ends at one of the exits. */
void rounds_leave(struct rounds *r, double part);

/* What one call of rounds_fit costs is steps times these. */
uint32_t rounds_nodes(const struct rounds *r);

/* Take other chances for what is believed before any sample: for another run, as it might have been. */
void rounds_doubt(struct rounds *r, uint64_t *state);

/* Fit to heat, which is per block of ret_block, in so many steps from where the last fit ended.
 * ret_times: how often each of these blocks runs in a round. */
void rounds_fit(struct rounds *r, const struct heat *heat, uint32_t steps, double *ret_times);

struct rounds *rounds_free(struct rounds *r);
