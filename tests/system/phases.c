/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Two functions in turn, 40 ms of a clock each, ten times. A line for each turn on standard output: the function, and when
 * it began and ended, CLOCK_MONOTONIC in ns. */

#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>

static volatile unsigned long sink;

static unsigned long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

static __attribute__((noinline)) void first(unsigned long long until)
{
	while (now_ns() < until)
		for (int i = 0; i < 2000; i++)
			sink++;
}

static __attribute__((noinline)) void second(unsigned long long until)
{
	while (now_ns() < until)
		for (int i = 0; i < 2000; i++)
			sink += 2;
}

int main(void)
{
	unsigned long long begin = now_ns(), end;

	for (int i = 0; i < 20; i++, begin = end) {
		(i % 2 ? second : first)(begin + 40000000);
		end = now_ns();
		printf("%s %llu %llu\n", i % 2 ? "second" : "first", begin, end);
	}
	return 0;
}
