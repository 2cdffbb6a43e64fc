/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Instruction: the effects of one instruction, from its text and the table
 *
 * Text is "mnemonic\toperands" as LLVM's disassembler prints it. Counts are of one execution. For
 * vectors of unspecified length (SVE, RVV) they are for 128 bits; for masked ones, for all lanes.
 */

#include "daemon/code/table.h"

enum count {
	COUNT_LOADED, /* bytes */
	COUNT_STORED,
	COUNT_FP16, /* operations */
	COUNT_FP32,
	COUNT_FP64,
	COUNT_FP80,
	COUNT_INT,
	N_COUNTS,
};

enum {
	SCALABLE_BYTES_LEAST = 16, /* of a vector. Source: Arm ARM, SVE; RISC-V "V" */
};

struct instruction {
	uint64_t address; /* file offset */
	uint64_t target;  /* of a jump, branch or call */
	uint32_t length;
	enum flow flow;
	bool has_target; /* else it is computed */
	bool masked, scalable;
	bool unknown; /* it may do work that is not counted */
	bool padding; /* it does nothing, such as padding between aligned blocks */
	float count[N_COUNTS];
};

/* State for vectors that earlier instructions set, in the order of addresses, as far as it is
 * known. Zero at the start of a function. */
struct vector_state {
	/* A bit per register: masks with all lanes active, at least in all iterations but the last.
	 * */
	uint32_t full_vectors, full_masks; /* xmm, ymm, zmm; k or p */
	/* riscv64: as set by vsetvli */
	unsigned sew_bits; /* 0: not known */
	double lmul;
	unsigned vl; /* fixed number of lanes; 0: up to VLMAX */
};

/* Fill all but address and length, which are given, and change *v as the instruction does. */
void instruction_read(const struct table *t, enum isa isa, const char *text, struct vector_state *v,
	struct instruction *i);
