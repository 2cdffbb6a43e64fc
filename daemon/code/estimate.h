/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Estimate: samples on machine code become operations and bytes per loop
 *
 * If all of a loop runs in each iteration, operations per byte are exact. Otherwise samples per
 * instruction show which way branches go (rounds.h). The 95 % interval covers the errors from the
 * number of samples and from the time of an instruction, which differs between blocks; it includes
 * the bounds of masks and vector lengths (figures.h). Code outside loops is weighted only by its
 * samples.
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

/* Append to `loop`, which has room for n_samples more: one entry per loop with samples of its own,
 * and one of depth 0 for code outside of loops. *ret_n: their number. 0, -ENOMEM. */
int estimate_loops(const struct estimate_question *q, struct code_loop *ret_loop, uint32_t *ret_n);
