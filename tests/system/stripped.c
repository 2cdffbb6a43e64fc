/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A program that is stripped after it was built
 *
 * stripped MS spins for MS milliseconds in three functions of about equal time. With -DBEFORE=N, N bytes of code
 * come before them: another build, where they are at other addresses. With -DALONE it spins in the first alone.
 */

#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

#ifdef BEFORE
__attribute__((used)) static void before(void)
{
	__asm__ volatile(".skip %c0, 0x90" : : "i"(BEFORE));
}
#endif

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((noinline, used)) static void add(void)
{
	for (unsigned long i = 0; i < 30000; i++)
		sink += i;
}

__attribute__((noinline, used)) static void mix(void)
{
	for (unsigned long i = 0; i < 30000; i++)
		sink ^= i << 3;
}

__attribute__((noinline, used)) static void take(void)
{
	for (unsigned long i = 0; i < 30000; i++)
		sink -= i * 3;
}

int main(int argc, char **argv)
{
	for (long end = now_ms() + (argc > 1 ? atol(argv[1]) : 0); now_ms() < end;) {
		add();
#ifndef ALONE
		mix();
		take();
#endif
	}
	return 0;
}
