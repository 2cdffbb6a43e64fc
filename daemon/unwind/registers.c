/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <elf.h>
#include <string.h>

#include "daemon/unwind/walk.h"

/* Source: System V psABI of each machine, "DWARF register numbers";
 * arch/{x86,riscv,arm64}/include/uapi/asm/perf_regs.h of Linux 6.12; for 32-bit programs
 * arch/{x86,arm64}/kernel/perf_regs.c (perf_reg_value): i386 has the numbers of x86-64; a 32-bit
 * ARM program has its own, 0 to 15. */
static const struct unwind_registers known_registers[] = {
	{
		.machine = EM_X86_64,
		.class = ELFCLASS64,
		.n_registers = 17,
		.perf_pc = 8,
		.perf_sp = 7,
		.dwarf_sp = 7,
		.dwarf_fp = 6,
		.dwarf_base = UNWIND_BASE_X86,
		.dwarf_ra = 16,
		/* rax rdx rcx rbx rsi rdi rbp rsp, r8 … r15, return address */
		.perf = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8},
	},
	{
		.machine = EM_RISCV,
		.class = ELFCLASS64,
		.n_registers = 32,
		.perf_pc = 0,
		.perf_sp = 2,
		.dwarf_sp = 2,
		.dwarf_fp = 8,
		.dwarf_base = UNWIND_BASE_NONE,
		.dwarf_ra = 1,
		.ra_is_kept = true,
		/* x0 is not sampled: perf has the pc in its place */
		.perf = {-1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
			21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
	},
	{
		.machine = EM_AARCH64,
		.class = ELFCLASS64,
		.n_registers = 32,
		.perf_pc = 32,
		.perf_sp = 31,
		.dwarf_sp = 31,
		.dwarf_fp = 29,
		.dwarf_base = UNWIND_BASE_NONE,
		.dwarf_ra = 30,
		.ra_is_kept = true,
		.perf = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
			21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
	},
	{
		.machine = EM_386,
		.class = ELFCLASS32,
		.n_registers = 9,
		.perf_pc = 8,
		.perf_sp = 7,
		.dwarf_sp = 4,
		.dwarf_fp = 5,
		.dwarf_base = UNWIND_BASE_NONE,
		.dwarf_ra = 8,
		/* eax ecx edx ebx esp ebp esi edi, return address */
		.perf = {0, 2, 3, 1, 7, 6, 4, 5, 8},
	},
	{
		.machine = EM_ARM,
		.class = ELFCLASS32,
		.n_registers = 16,
		.perf_pc = 15,
		.perf_sp = 13,
		.dwarf_sp = 13,
		.dwarf_fp = 11,
		.dwarf_base = UNWIND_BASE_NONE,
		.dwarf_ra = 14,
		.ra_is_kept = true,
		.perf = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	},
};

const struct unwind_registers *unwind_registers_of(uint16_t machine)
{
	for (size_t i = 0; i < sizeof(known_registers) / sizeof(known_registers[0]); i++)
		if (known_registers[i].machine == machine)
			return &known_registers[i];
	return NULL;
}

bool unwind_register(const struct unwind_sample *s, unsigned int bit, uint64_t *ret_value)
{
	uint64_t mask = 1ull << bit;

	if (!(s->regs_mask & mask))
		return false;
	size_t i = (size_t)__builtin_popcountll(s->regs_mask & (mask - 1));
	memcpy(ret_value, (const uint8_t *)s->regs + i * sizeof(*ret_value), sizeof(*ret_value));
	if (s->registers->class == ELFCLASS32)
		*ret_value = (uint32_t)*ret_value;
	return true;
}

bool unwind_stack_word(const struct unwind_sample *s, uint64_t addr, uint64_t *ret_word)
{
	const size_t n_word = s->registers->class == ELFCLASS32 ? 4 : 8;
	const uint64_t at = addr - s->stack_start;

	if (addr < s->stack_start || at >= s->n_stack || s->n_stack - at < n_word)
		return false;
	*ret_word = 0; /* these machines put the lowest byte first */
	memcpy(ret_word, s->stack + at, n_word);
	return true;
}
