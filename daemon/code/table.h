/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Mnemonics: the effects of instructions, as data
 *
 * mnemonics.txt gives for each mnemonic the number of operations, whether its memory operand is
 * loaded or stored, and whether it jumps. The width of that operand and the number of lanes of a
 * vector follow from the operands (instruction.h). Its grammar is at its top.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_ROWS_MAX 2048u
#define TABLE_PATTERN_BYTES 24u

enum { TABLE_MALFORMED = 1 };

enum isa {
	ISA_X86_64,
	ISA_AARCH64,
	ISA_RISCV64,
	N_ISAS,
};

enum flow {
	FLOW_NEXT,
	FLOW_JUMP,
	FLOW_BRANCH,
	FLOW_CALL,
	FLOW_RETURN,
};

enum element {
	ELEMENT_NONE,
	ELEMENT_FP16,
	ELEMENT_FP32,
	ELEMENT_FP64,
	ELEMENT_FP80,
	ELEMENT_FP, /* as wide as its register, or by SEW */
	ELEMENT_INT8,
	ELEMENT_INT16,
	ELEMENT_INT32,
	ELEMENT_INT64,
	ELEMENT_INT, /* likewise */
};

enum {
	ROW_LOAD = 1,
	ROW_STORE = 2,
	ROW_PACKED = 4,    /* x86: all lanes of the register, else one */
	ROW_PAIR = 8,      /* two registers are loaded or stored */
	ROW_GATHER = 16,   /* a whole register, from as many places */
	ROW_VECTOR = 32,   /* RISC-V: lanes and elements as vsetvli set them */
	ROW_WIDE = 64,     /* elements of twice SEW */
	ROW_WHOLE = 128,   /* whole registers, regardless of vsetvli */
	ROW_UNKNOWN = 256, /* does things that cannot be counted from here */
	ROW_ADDRESS = 512, /* the operand that looks like memory is not accessed */
	ROW_MASKED = 1024, /* x86: a vector register selects the accessed lanes */
};

struct row {
	char pattern[TABLE_PATTERN_BYTES]; /* with * for any characters, ? for one */
	enum element element;
	enum flow flow;
	uint16_t flags;
	uint8_t operations; /* per lane */
	uint8_t bytes;      /* in memory, per element; 0: as the operands say */
};

struct table {
	struct row *row; /* by ISA, in the order of the text: the first that matches counts */
	uint32_t n, size;
	uint32_t first[N_ISAS + 1];
};

/* Read n bytes of text. 0; TABLE_MALFORMED, *ret_line is the number of the line; -ENOMEM.
 * Exported for tests. */
int table_parse(struct table *t, const char *text, size_t n, unsigned *ret_line);
/* Read the table that is part of the program. 0, -errno. */
int table_load(struct table *t);
/* Free its rows; it is empty then. Exported for tests. */
void table_clear(struct table *t);

/* The row of a mnemonic; NULL: none. */
const struct row *table_find(const struct table *t, enum isa isa, const char *mnemonic);
