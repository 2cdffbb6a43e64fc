/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Walks of a copied stack: from the sampled frame to its caller, up to the outermost
 *
 *      registers.c  what perf samples on each machine, and words of the copied stack
 *      walk.c       the frames that are found, and the walk by tables
 *
 * The owner says what code is at an address. Nothing that a program can put on its stack, and no table, leads
 * outside the copied bytes: a wrong one makes wrong frames of that program, UNWIND_FRAMES_MAX at most.
 */

#include "daemon/unwind/table.h"

#define UNWIND_FRAMES_MAX 256
#define UNWIND_REGISTERS_MAX 33 /* DWARF registers that perf samples on any machine below */

/* Mapping of a machine's perf registers to DWARF registers. */
struct unwind_registers {
	uint16_t machine;
	uint8_t class; /* ELFCLASS64; ELFCLASS32: a 32-bit program on a 64-bit kernel */
	uint8_t n_registers;
	uint8_t perf_pc, perf_sp;               /* bits in regs_mask */
	uint8_t dwarf_sp, dwarf_fp, dwarf_base; /* UNWIND_BASE_NONE: without one */
	uint8_t dwarf_ra;                       /* of the return address */
	bool ra_is_kept; /* a call leaves it in that register, and not on the stack */
	int8_t perf[UNWIND_REGISTERS_MAX]; /* by DWARF number; -1: always zero */
};

/* machine is an ELF e_machine (EM_X86_64, EM_RISCV, EM_AARCH64; EM_386, EM_ARM of 32-bit programs on the first and
 * the last). NULL: others. */
const struct unwind_registers *unwind_registers_of(uint16_t machine);

/* Registers and stack of a sample. Borrowed, and may be unaligned. */
struct unwind_sample {
	const struct unwind_registers *registers;
	/* in perf's order for that machine (bits of regs_mask, ascending). Source:
	 * arch/ARCH/include/uapi/asm/perf_regs.h */
	const uint64_t *regs;
	uint64_t regs_mask;
	const uint8_t *stack; /* from the stack pointer on */
	size_t n_stack;
	uint64_t stack_start; /* set by unwind_walk_begin */
};

/* A register of the sample by its bit in regs_mask; a word of its stack. False: it was not copied. */
bool unwind_register(const struct unwind_sample *s, unsigned int bit, uint64_t *ret_value);
bool unwind_stack_word(const struct unwind_sample *s, uint64_t addr, uint64_t *ret_word);

/* How the callers of code are found. */
enum unwind_described {
	UNWIND_BARE,    /* by the frame pointer: nothing describes it */
	UNWIND_TABLE,   /* by its file's table */
	UNWIND_MISSING, /* by a table that is not there yet */
	UNWIND_LEFT,    /* by elfutils alone */
};

/* The code at an address. */
struct unwind_code {
	uintptr_t file;  /* the owner's word for it; 0: none */
	uint64_t offset; /* in the file; else the address */
	enum unwind_described described;
	const struct unwind_table *table; /* UNWIND_TABLE */
};

struct unwound {
	struct unwound_frame {
		uintptr_t file; /* and offset: as of struct unwind_code */
		uint64_t offset, address;
	} frame[UNWIND_FRAMES_MAX]; /* leaf first */
	size_t n_frames;
	bool truncated; /* ended before the outermost frame */
	bool deep;      /* since its caller is beyond the copy */
};

struct unwind_walk {
	struct unwind_sample sample;
	/* Fill in what is there; false: no executable mapping. */
	bool (*code_at)(const void *userdata, uint64_t address, struct unwind_code *ret_code);
	const void *userdata;
	struct unwound *unwound;

	/* progress: of the last frame */
	uint64_t last_address, last_sp, last_fp;
	struct unwind_code code;
};

/* False: the registers that a walk begins with were not sampled. */
bool unwind_walk_begin(struct unwind_walk *w);

/* Take one frame, where the pc is at `address`. False: it cannot be one, and the walk is cut there. A caller must be
 * further up the stack than its callee, except in the first step: a leaf that has not moved the stack pointer has its
 * return address in a register. The caller must also be in known code: an address outside all executable mappings was
 * read from the wrong place. */
bool unwind_take_frame(struct unwind_walk *w, uint64_t address, uint64_t sp, uint64_t fp);

/* Begin, and walk by tables. UNWIND_WALKED: no other way finds more frames; there may be none. Otherwise the frames are
 * not to be used. UNWIND_WANTS: a table is missing, of the file in w->code. UNWIND_NEEDS_ELFUTILS: no table describes a
 * frame. */
enum unwind_outcome { UNWIND_WALKED, UNWIND_WANTS, UNWIND_NEEDS_ELFUTILS };
enum unwind_outcome unwind_by_tables(struct unwind_walk *w);

/* Not even one caller was found. */
static inline bool unwound_is_nothing(const struct unwound *u)
{
	return u->n_frames == 0 || (u->n_frames == 1 && u->truncated);
}
