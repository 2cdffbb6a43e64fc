/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program for a board, of which everything is known.
 *
 *      board loop N     N turns of a loop of four instructions, in loop_of_four()
 *      board two N      the same in fast() and, of ten times as many turns, in slow()
 *      board spin MS    keeps a hart busy for MS ms of its own time
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Four instructions a turn on either architecture, whatever the compiler thinks of it. */
static inline void turns(unsigned long n)
{
#if defined(__riscv)
	__asm__ volatile("1: addi %0, %0, -1\n\tnop\n\tnop\n\tbnez %0, 1b" : "+r"(n));
#elif defined(__aarch64__)
	__asm__ volatile("1: sub %0, %0, #1\n\tnop\n\tnop\n\tcbnz %0, 1b" : "+r"(n));
#else
	while (--n)
		__asm__ volatile("");
#endif
}

__attribute__((noinline)) void loop_of_four(unsigned long n)
{
	turns(n);
}

__attribute__((noinline)) void fast(unsigned long n)
{
	turns(n);
}

__attribute__((noinline)) void slow(unsigned long n)
{
	turns(10 * n);
}

static long used_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	unsigned long n = strtoul(argv[2], NULL, 10);
	if (strcmp(argv[1], "loop") == 0) {
		loop_of_four(n);
	} else if (strcmp(argv[1], "two") == 0) {
		fast(n);
		slow(n);
	} else if (strcmp(argv[1], "spin") == 0) {
		for (long until = used_ms() + (long)n; used_ms() < until;)
			loop_of_four(100000);
	} else {
		return 2;
	}
	return 0;
}
