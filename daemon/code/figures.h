/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Figures: bytes and operations per instruction, and operations per byte, of blocks that run so often
 *
 * Masked instructions may do anything between nothing and all of their lanes, and vectors whose length
 * the code does not say have any that the machine may have: so a figure is a value with bounds. The
 * value is for all lanes and the shortest vectors. Where all that is in memory is masked, operations
 * per byte are those of equal masks everywhere.
 */

#include "daemon/code/instruction.h"
#include "proto/code.h"

/* Counts of blocks, apart by what bounds them. */
struct tally {
	double n;                     /* instructions */
	double count[2][2][N_COUNTS]; /* [masked][scalable] */
};

enum {
	FIGURE_LOADED, /* per instruction */
	FIGURE_STORED,
	FIGURE_OPERATIONS,                                 /* of CODE_OPS_FP, others behind it */
	FIGURE_INTENSITY = FIGURE_OPERATIONS + N_CODE_OPS, /* likewise, per byte */
	N_FIGURES = FIGURE_INTENSITY + N_CODE_OPS,
};

/* Vector registers have so many times 128 bits. */
struct vectors {
	double least, most;
};

void tally_add_instruction(struct tally *t, const struct instruction *i);
/* Add times times what is in more. */
void tally_add(struct tally *t, const struct tally *more, double times);

/* A figure that cannot be (there are no bytes) is not a number. */
void figures_of(const struct tally *t, const struct vectors *v,
	struct code_estimate ret_figure[static N_FIGURES]);
