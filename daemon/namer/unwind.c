/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/namer/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/unwind_private.h"
#include "proto/base/memory.h"

/* Source: System V psABI of each machine, "DWARF register numbers";
 * arch/{x86,riscv,arm64}/include/uapi/asm/perf_regs.h of Linux 6.12; for 32-bit programs
 * arch/{x86,arm64}/kernel/perf_regs.c (perf_reg_value): i386 has the numbers of x86-64; a 32-bit
 * ARM program has its own, 0 to 15. */
static const struct registers known_registers[] = {
	{
		.machine = EM_X86_64,
		.class = ELFCLASS64,
		.n_registers = 17,
		.perf_pc = 8,
		.perf_sp = 7,
		.dwarf_sp = 7,
		.dwarf_fp = 6,
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
		.perf = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	},
};

static int compare_maps(const void *a, const void *b)
{
	const struct unwind_map *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

static void begin(struct unwinder *u)
{
	u->unwound.n_frames = 0;
	u->unwound.truncated = false;
}

int unwinder_unwind(struct unwinder *u, const uint64_t *regs, uint64_t regs_mask,
	const uint8_t *stack, size_t n_stack, struct unwound *ret_unwound)
{
	uint64_t pc;

	u->regs = regs;
	u->regs_mask = regs_mask;
	begin(u);
	if (!unwind_register(u, u->registers->perf_pc, &pc) ||
		!unwind_register(u, u->registers->perf_sp, &u->stack_start))
		return UNWIND_FAILED;

	/* A stack does not extend beyond the last address. */
	u->stack = stack;
	u->n_stack = n_stack < -u->stack_start ? n_stack : (size_t)-u->stack_start;

	if (!unwind_by_tables(u)) {
		begin(u);
		int r = unwind_by_elfutils(u);
		if (r < 0)
			return r;
	}
	if (u->unwound.n_frames == 0 || (u->unwound.n_frames == 1 && u->unwound.truncated))
		return UNWIND_FAILED;
	*ret_unwound = u->unwound;
	return 0;
}

/* --- life ------------------------------------------------------------------------------------- */

DEFINE_CLEANUP(struct unwinder *, unwinder_free)

int unwinder_new(const struct unwind_map *maps, size_t n_maps, uint16_t machine,
	struct unwind_tables *tables, struct unwinder **ret_unwinder)
{
	const struct registers *registers = NULL;

	if (n_maps > UNWIND_MAPS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < sizeof(known_registers) / sizeof(known_registers[0]); i++)
		if (known_registers[i].machine == machine)
			registers = &known_registers[i];
	if (!registers)
		return -EOPNOTSUPP;

	_cleanup_(unwinder_freep) struct unwinder *u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->registers = registers;
	u->tables = tables;
	u->map = calloc(n_maps ?: 1, sizeof(*u->map));
	if (!u->map)
		return -ENOMEM;
	for (size_t i = 0; i < n_maps; i++)
		if (maps[i].start < maps[i].end)
			u->map[u->n_maps++] = maps[i];
	qsort(u->map, u->n_maps, sizeof(*u->map), compare_maps);
	for (size_t i = 0; i < u->n_maps; i++)
		u->map[i].path = NULL; /* owned by the caller, and not needed */
	*ret_unwinder = TAKE_PTR(u);
	return 0;
}

struct unwinder *unwinder_free(struct unwinder *u)
{
	if (!u)
		return NULL;
	elfutils_free(u->elfutils);
	free(u->map);
	free(u);
	return NULL;
}
