/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Estimate: samples on machine code become operations and bytes per loop
 *
 * Of a loop that runs as a whole in each round, operations per byte are exact. Elsewhere samples say
 * which way branches go (rounds.h), by samples per instruction. The interval (95 %) is for the number
 * of samples, and for the time of an instruction, which differs from block to block; and it includes
 * the bounds of masks and vector lengths (figures.h). Code outside loops is weighed by its samples
 * alone.
 */

#include "daemon/code/figures.h"
#include "daemon/code/graph.h"

/* Standard deviation of the natural logarithm of the time per instruction, between blocks of a loop.
 * Source: BENCHMARKS.md, "Machine code", where blocks' true counts are known. */
#define ESTIMATE_SPREAD 1.4

/* A function with the samples in it, by rising offset. */
struct estimate_question {
	const struct instruction *instruction;
	uint32_t n_instructions;
	const struct graph *graph;
	const struct code_sample *sample;
	uint32_t n_samples;
	struct vectors vectors;
	uint64_t *work; /* in, out: steps times nodes of all fits for this file; NULL: no limit */
};

/* Append one loop per loop with samples of its own, and one of depth 0 for what is in none, to loop,
 * which has room for n_samples more. Returns by *ret_n how many. 0, -ENOMEM. */
int estimate_loops(const struct estimate_question *q, struct code_loop *ret_loop, uint32_t *ret_n);
