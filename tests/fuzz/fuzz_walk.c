/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A table as a hostile parser may send it, and a stack that is walked by it: of each machine. What the check lets
 * through leads nowhere but into the table and the copied bytes, and ends. */

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/unwind/walk.h"

#define N_REGISTERS 33
#define BASE 0x400000u
#define CODE_BYTES 0x40000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool code_at(const void *userdata, uint64_t address, struct unwind_code *ret_code)
{
	const struct unwind_table *t = userdata;

	if (address < BASE || address >= BASE + CODE_BYTES)
		return false;
	*ret_code = (struct unwind_code){.file = 1,
		.offset = address - BASE,
		.described = address & 1 << 17 ? UNWIND_BARE : UNWIND_TABLE,
		.table = t};
	return true;
}

static void walk(const struct unwind_table *t, uint16_t machine, const uint8_t *data, size_t size)
{
	static struct unwound out;
	uint64_t regs[N_REGISTERS] = {};
	const struct unwind_registers *registers = unwind_registers_of(machine);
	const size_t n_regs = size < sizeof(regs) ? size : sizeof(regs);

	memcpy(regs, data, n_regs);
	regs[registers->perf_pc] = BASE + regs[registers->perf_pc] % CODE_BYTES;
	uint8_t *stack = malloc(size - n_regs + 1); /* of exactly its size */
	memcpy(stack, data + n_regs, size - n_regs);
	struct unwind_walk w = {.sample = {.registers = registers,
					.regs = regs,
					.regs_mask = (1ull << N_REGISTERS) - 1,
					.stack = stack,
					.n_stack = size - n_regs},
		.code_at = code_at,
		.userdata = t,
		.unwound = &out};
	if (unwind_by_tables(&w) == UNWIND_WANTS || out.n_frames > UNWIND_FRAMES_MAX)
		abort();
	free(stack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t machines[] = {EM_X86_64, EM_AARCH64, EM_RISCV};

	if (size < 8)
		return 0;
	const struct unwind_table counts = {.base = (uint64_t)data[1] << 16,
		.n_segments = data[2] % 10,
		.n_rules = data[3],
		.n_pages = data[4] % 8,
		.n_rows = data[5]};
	if (unwind_table_check_counts(&counts) < 0)
		return 0;
	struct unwind_table *t = unwind_table_new(&counts);
	size_t n = unwind_table_memory_bytes(&counts);
	data += 8;
	size -= 8;
	n = n < size ? n : size;
	memcpy(t->memory, data, n);
	if (unwind_table_check(t) == 0)
		for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
			walk(t, machines[i], data + n, size - n);
	free(t);
	return 0;
}
