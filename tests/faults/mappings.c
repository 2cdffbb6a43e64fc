/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * mappings N: maps N pages of code, each a mapping of its own (every other page of a file, so that
 * the kernel joins none), says how many it got, and then uses processor time for ever.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) void mapped(void)
{
	for (;;)
		sink++;
}

int main(int argc, char **argv)
{
	long wanted = argc > 1 ? atol(argv[1]) : 0, page = sysconf(_SC_PAGESIZE), n = 0;
	FILE *file = tmpfile();

	if (!file || ftruncate(fileno(file), 2 * page) < 0)
		return 1;
	/* Neighbours of the same offset are no continuation of each other. */
	for (; n < wanted; n++)
		if (mmap(NULL, (size_t)page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0) ==
			MAP_FAILED)
			break;
	printf("%ld\n", n);
	fflush(stdout);
	mapped();
	return 0;
}
