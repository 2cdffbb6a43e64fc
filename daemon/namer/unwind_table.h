/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Tables of unwinding: how to find the caller at each instruction of a file, as integers
 *
 *      .eh_frame, .debug_frame  →  unwind_table_make  →  rows of 4 bytes, and the rules they name
 *      address                  →  unwind_table_find  →  the rule that holds there
 *
 * A row holds up to the next one. Rows are kept by pages of 64 KiB, so that 16 bits of address do, and a search
 * takes 16 steps at most. A file of 50 MB of text has some 3 MB of rows and 700 rules.
 */

#include <elfutils/libdw.h>
#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a value stands. `sp` and `fp` are those of the frame whose caller is wanted. */
enum unwind_place {
	UNWIND_UNKNOWN, /* not described, or changed: nothing can be derived from it */
	UNWIND_SAME,    /* still in its register */
	UNWIND_IN_SP,   /* sp + offset */
	UNWIND_IN_FP,   /* fp + offset */
	UNWIND_AT_SP,   /* in memory at sp + offset */
	UNWIND_AT_FP,   /* in memory at fp + offset */
	UNWIND_AT_CFA,  /* in memory at the canonical frame address + offset */
	UNWIND_IN_PLT,  /* sp + offset, + 8 from that byte of a PLT entry on: unwind_rule.number */
	UNWIND_IN_REGISTER, /* another register + offset: unwind_rule.number, known in the first frame alone */
	UNWIND_NONE, /* of the return address: the outermost frame, it has no caller */
};

/* How to find the caller of a frame. */
struct unwind_rule {
	uint8_t cfa, ra, fp; /* enum unwind_place; UNWIND_UNKNOWN as CFA: ask elfutils */
	uint8_t number; /* DWARF's of a register, or the byte in a PLT entry of 16 from which 8 bytes more are on the stack */
	int32_t cfa_offset, ra_offset, fp_offset;
	uint32_t
		is_signal; /* or 0: the caller was interrupted, it is at the address, not before it */
	int32_t cfa_more; /* added to the CFA that memory holds (UNWIND_AT_SP, UNWIND_AT_FP) */
};

struct unwind_table;

/* A section of call frame information. */
struct unwind_section {
	Elf_Data *data; /* NULL: absent */
	uint64_t addr;  /* where it is in the file's address space */
	bool is_eh;     /* .eh_frame; else .debug_frame */
};

/* Sections are borrowed for the call, and tried in their order. What one describes is not looked up in the
 * next. machine is an ELF e_machine: EM_X86_64, EM_AARCH64 or EM_RISCV, all of 64 bits. 0, -EOPNOTSUPP for other
 * machines and for a CIE of a form that only elfutils reads, -E2BIG above n_bytes_max, -ENOMEM. What is malformed ends its section. */
int unwind_table_make(const struct unwind_section *section, size_t n_sections,
	const uint8_t *e_ident, uint16_t machine, size_t n_bytes_max,
	struct unwind_table **ret_table);

/* The rule at an address of the file. NULL: no call frame information there. Borrowed. */
const struct unwind_rule *unwind_table_find(const struct unwind_table *t, uint64_t addr);

size_t unwind_table_bytes(const struct unwind_table *t);
/* Exported for tests. */
void unwind_table_counts(const struct unwind_table *t, size_t *ret_n_rows, size_t *ret_n_rules);

struct unwind_table *unwind_table_free(struct unwind_table *t);
