/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Figures: bytes and operations per instruction, and operations per byte, of blocks with known counts
 *
 * A masked instruction works on any number of its lanes, and scalable vectors have any length that the
 * machine may have; so a figure is a value with bounds. The value is for all lanes and the shortest
 * vectors. Where all memory accesses are masked, operations per byte assume the same mask everywhere.
 */

#include "daemon/code/instruction.h"
#include "proto/code/code.h"

/* Counts of blocks, by whether they depend on a mask and on the vector length. */
struct tally {
	double n;                     /* instructions */
	double count[2][2][N_COUNTS]; /* [masked][scalable] */
};

enum {
	FIGURE_LOADED, /* per instruction */
	FIGURE_STORED,
	FIGURE_OPERATIONS,                                 /* CODE_OPS_FP, then the others */
	FIGURE_INTENSITY = FIGURE_OPERATIONS + N_CODE_OPS, /* likewise, per byte */
	N_FIGURES = FIGURE_INTENSITY + N_CODE_OPS,
};

/* Bounds of the vector length, in multiples of 128 bits. */
struct vectors {
	double least, most;
};

void tally_add_instruction(struct tally *t, const struct instruction *i);
/* Add `more`, which ran `times` times. */
void tally_add(struct tally *t, const struct tally *more, double times);

/* All figures of `t`. Operations per byte are NAN where there are no bytes, all figures where there are
 * no instructions. */
void figures_of(const struct tally *t, const struct vectors *v,
	struct code_estimate ret_figure[static N_FIGURES]);
