/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Call frame information: its instructions, run into rules of the frame's caller
 *
 * elfutils finds the entries; we run their instructions. Only the return address, the stack pointer, the frame
 * pointer and the base register are followed, since no rule of ours needs another register.
 */

#include "daemon/namer/table_make.h"

#define CFI_SECTIONS_MAX 2
#define CFI_CIES 16 /* kept, by offset */

/* The code that one entry (FDE) describes. */
struct cfi_range {
	uint64_t start;
	uint32_t n; /* bytes of code */
	uint32_t section : 1;
	uint32_t offset : 31; /* of the entry in its section */
};

/* A location: of a register of the caller. */
struct cfi_value {
	enum unwind_place place;
	int64_t offset;
	bool odd; /* in no place that a rule can say */
};

/* The state of a run. */
struct cfi_state {
	uint64_t cfa_register; /* with cfa_place UNWIND_SAME: CFA = this register + offset */
	enum unwind_place cfa_place;
	int64_t cfa_offset, cfa_more;
	uint8_t plt;
	struct cfi_value ra, sp, fp, base;
};

/* The part that several entries share (CIE). */
struct cfi_cie {
	bool known, readable; /* where the code of its entries is */
	bool usable;          /* its instructions are known */
	uint32_t section;
	uint64_t offset;
	Dwarf_CIE cie;
	struct cfi_state initial;
	uint8_t encoding; /* of addresses, DW_EH_PE */
	bool is_signal;
};

struct cfi {
	struct unwind_section section[CFI_SECTIONS_MAX];
	size_t n_sections;
	const uint8_t *e_ident;
	const struct unwind_registers *registers;
	struct cfi_cie cie[CFI_CIES];
	bool is_left; /* a CIE has a form that only elfutils reads, or is of an unlikely length */
};

/* 0; -EOPNOTSUPP: this machine is not known. Sections and e_ident are borrowed. */
int cfi_begin(struct cfi *c, const struct unwind_section *section, size_t n_sections,
	const uint8_t *e_ident, uint16_t machine);

/* Call on_range for each entry, in the order of the file. 0, -EOPNOTSUPP: a CIE has a form that only elfutils reads, or
 * what on_range returned below 0. */
int cfi_ranges(struct cfi *c, int (*on_range)(void *userdata, const struct cfi_range *range),
	void *userdata);

/* Call on_row at the start of a range, and wherever its rule may change. 0, or what on_row returned below 0. */
int cfi_run(struct cfi *c, const struct cfi_range *range,
	int (*on_row)(void *userdata, uint64_t addr, const struct unwind_rule *rule),
	void *userdata);
