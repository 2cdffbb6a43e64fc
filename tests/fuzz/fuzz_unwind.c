/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Registers, then a stack, of a process that has mapped the fuzzer itself. The pc, and every word
 * of the stack that is small, are moved into its text: random addresses would lead nowhere. */

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/daemon/namer/callers.h"

#define N_REGISTERS 24 /* all that any of the machines below has in these bits */
#define ALL_REGISTERS ((1ull << N_REGISTERS) - 1)
#define PC_BIT 8 /* Source: perf_regs.h of x86 */

static struct unwind_map map;
static struct callers *callers;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char line[512], rights[5];
	FILE *f = fopen("/proc/self/maps", "re");
	(void)argc, (void)argv;

	while (f && fgets(line, sizeof(line), f)) /* the first text is the program's own */
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64, &map.start, &map.end,
			    rights, &map.file_offset) == 4 &&
			rights[2] == 'x')
			break;
	if (f)
		fclose(f);
	map.file = 1;
	map.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (callers_new(&map, 1, EM_X86_64, &callers))
		abort();
	return 0;
}

static uint64_t into_text(uint64_t word)
{
	return map.start + word % (map.end - map.start);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct unwound out;
	uint64_t regs[N_REGISTERS] = {}, word;

	size_t n = size < sizeof(regs) ? size : sizeof(regs);
	memcpy(regs, data, n);
	regs[PC_BIT] = into_text(regs[PC_BIT]);

	size_t n_stack = size - n;
	uint8_t *stack = malloc(n_stack ?: 1);
	memcpy(stack, data + n, n_stack);
	for (size_t at = 0; at + 8 <= n_stack; at += 8) {
		memcpy(&word, stack + at, 8);
		word = word >> 32 ? word : into_text(word);
		memcpy(stack + at, &word, 8);
	}
	if (callers_of(callers, regs, ALL_REGISTERS, stack, n_stack, &out) == 0 &&
		(out.n_frames == 0 || out.n_frames > UNWIND_FRAMES_MAX))
		abort();
	free(stack);
	return 0;
}
