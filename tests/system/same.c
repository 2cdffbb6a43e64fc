/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A program that differs from others only in a name
 *
 * Built with -DHOT=NAME, -DCOMM="NAME": same MS calls itself NAME and spins in NAME for so many milliseconds.
 */

#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static volatile unsigned long sink;

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((noinline)) void HOT(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i * i;
}

int main(int argc, char **argv)
{
	prctl(PR_SET_NAME, COMM);
	for (long end = now_ms() + (argc > 1 ? atol(argv[1]) : 0); now_ms() < end;)
		HOT(100000);
	return 0;
}
