/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Estimate: samples on machine code become operations and bytes per loop
 *
 * Of a loop that runs as a whole in each round, operations per byte are exact. Elsewhere samples say
 * which way branches go (rounds.h), by samples per instruction. The interval (95 %) is for the number
 * of samples, and for the time of an instruction, which differs from block to block; and it is as wide
 * as masks and lengths of vectors leave open (figures.h). What of a function is in no loop is weighed by
 * its samples alone.
 */

#include "daemon/code/figures.h"
#include "daemon/code/graph.h"

/* Of the natural logarithm of the time of an instruction, from block to block of a loop: one standard
 * deviation. Source: BENCHMARKS.md, "Machine code", where blocks' true counts are known. */
#define ESTIMATE_SPREAD 1.4

/* A function with the samples in it, by rising offset. */
struct estimate_question {
	const struct instruction *instruction;
	uint32_t n_instructions;
	const struct graph *graph;
	const struct code_sample *sample;
	uint32_t n_samples;
	struct vectors vectors;
	uint64_t *work; /* what was spent on a file so far is added to it; NULL: nobody asks */
};

/* Append one loop per loop with samples of its own, and one of depth 0 for what is in none, to loop,
 * which has room for n_samples more. Returns by *ret_n how many. 0, -ENOMEM. */
int estimate_loops(const struct estimate_question *q, struct code_loop *ret_loop, uint32_t *ret_n);
