/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Sums up what valgrind's lackey traces (--trace-mem=yes): bytes loaded and stored, those of the
 * stack apart. A line is " L ADDRESS,SIZE"; L loads, S stores, M does both, I is an instruction.
 * Source: valgrind 3.19, lackey/lk_main.c, as its manual describes it (chapter 12).
 *
 * The stack is the main thread's, which valgrind puts below 0x1fff001000 on x86-64.
 * Prints "loaded OUTSIDE STACK" and "stored OUTSIDE STACK", as the plugin of qemu does.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define STACK_TOP 0x1fff001000ull
#define STACK_BYTES (8ull << 20)

static int is_stack(uint64_t addr)
{
	return addr < STACK_TOP && addr >= STACK_TOP - STACK_BYTES;
}

int main(void)
{
	uint64_t loaded[2] = {0}, stored[2] = {0};
	char line[256];
	while (fgets(line, sizeof(line), stdin)) {
		if (line[0] != ' ' || (line[1] != 'L' && line[1] != 'S' && line[1] != 'M'))
			continue;
		char *end;
		const uint64_t addr = strtoull(line + 3, &end, 16);
		if (*end != ',')
			continue;
		const uint64_t bytes = strtoull(end + 1, NULL, 10);
		if (line[1] != 'S')
			loaded[is_stack(addr)] += bytes;
		if (line[1] != 'L')
			stored[is_stack(addr)] += bytes;
	}
	printf("loaded %llu %llu\n", (unsigned long long)loaded[0], (unsigned long long)loaded[1]);
	printf("stored %llu %llu\n", (unsigned long long)stored[0], (unsigned long long)stored[1]);
	return 0;
}
