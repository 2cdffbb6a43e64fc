/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program whose names are attacks: what it calls itself, its arguments, its function, and (by the
 * test) the path of its file. Who shows one as it is lets it write to the terminal or the page.
 * The arguments are the time to use in milliseconds, and whatever the test adds.
 */
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static volatile unsigned long sink;

/* Quoted, since the assembler takes any name so. */
void attack(long ms) __asm__("\"<script>alert(1)</script>\"");

static long used_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((noinline)) void attack(long ms)
{
	for (long until = used_ms() + ms; used_ms() < until;)
		for (unsigned i = 0; i < 200000; i++)
			sink += i;
}

int main(int argc, char **argv)
{
	prctl(PR_SET_NAME, "\033[31mred<b>&\"");
	attack(argc > 1 ? atol(argv[1]) : 500);
	return 0;
}
