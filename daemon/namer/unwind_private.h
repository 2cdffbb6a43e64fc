/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shared by the files of the unwinder
 *
 *      unwind.c            the unwinder, and who walks
 *      unwind_sample.c     maps, registers, stack and frames
 *      unwind_step.c       walks by tables (unwind_tables.h)
 *      unwind_elfutils.c   walks by elfutils, where a table does not say all
 */

#include <elf.h>

#include "daemon/namer/unwind.h"

#define REGISTERS_MAX 33 /* DWARF registers that perf samples on any machine below */

/* Mapping of a machine's perf registers to DWARF registers. */
struct registers {
	uint16_t machine;
	uint8_t class; /* ELFCLASS64; ELFCLASS32: a 32-bit program on a 64-bit kernel */
	uint8_t n_registers;
	uint8_t perf_pc, perf_sp; /* bits in regs_mask */
	uint8_t dwarf_sp, dwarf_fp;
	int8_t perf[REGISTERS_MAX]; /* by DWARF number; -1: always zero */
};

struct elfutils; /* unwind_elfutils.c */

struct unwinder {
	const struct registers *registers;
	struct unwind_tables *tables; /* borrowed */
	struct unwind_map *map;       /* sorted by start */
	size_t n_maps;
	struct elfutils *elfutils; /* NULL: not needed so far */

	/* the sample that is being unwound, borrowed */
	const uint64_t *regs;
	uint64_t regs_mask;
	const uint8_t *stack;
	size_t n_stack;
	uint64_t stack_start;

	/* progress of the walk */
	uint64_t last_address, last_sp, last_fp;
	struct unwound unwound;
};

/* --- unwind_sample.c ------------------------------------------------------------------- */

/* The executable mapping of an address; NULL: none. */
const struct unwind_map *unwind_find_map(const struct unwinder *u, uint64_t addr);
/* A register of the sample by its bit in regs_mask. */
bool unwind_register(const struct unwinder *u, unsigned int bit, uint64_t *ret_value);
/* A word of the copied stack. */
bool unwind_stack_word(const struct unwinder *u, uint64_t addr, uint64_t *ret_word);

/* Take one frame, where the pc is at `address`. False: it cannot be one, and the walk is cut there. A caller must be
 * further up the stack than its callee, except in the first step: a leaf that has not moved the stack pointer has its
 * return address in a register. The caller must also be in known code: an address outside all executable mappings was
 * read from the wrong place. */
bool unwind_take_frame(struct unwinder *u, uint64_t address, uint64_t sp, uint64_t fp);

/* --- unwind_step.c ---------------------------------------------------------------------------- */

/* Walk by tables. False: they do not say all that is needed; the frames are to be found otherwise. */
bool unwind_by_tables(struct unwinder *u);

/* --- unwind_elfutils.c ------------------------------------------------------------------------ */

/* Walk by elfutils. 0 or -errno; -EOPNOTSUPP: this libdw does not know the machine. */
int unwind_by_elfutils(struct unwinder *u);
struct elfutils *elfutils_free(struct elfutils *e);
