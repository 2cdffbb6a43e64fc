/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the runtime's calls cost, in ns and, on x86-64, in cycles of the time-stamp counter, beside
 * clock_gettime itself. The least of many batches: what others do on the machine only adds.
 */
#include <stdio.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "counted.h"

#define BATCHES 200
#define N 10000

COUNTED(16)

static uint64_t cycles(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return 0;
#endif
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void nothing(void)
{
	__asm__ volatile("");
}

static void clock_look(void)
{
	now_ns();
}

static void nest_pair(void)
{
	uint64_t *words = counted_word(0);
	__mperf_loop_end(words, __mperf_loop_begin(words, 1));
}

/* An entry of no length, of which 1 in 1,024 is timed. */
static void timed_entry(void)
{
	NEST(1, nothing());
}

static void region_pair(void)
{
	MPERF_REGION_BEGIN("pair");
	MPERF_REGION_END("pair");
}

static void count(void)
{
	COUNT(4, 1);
}

static void measure(const char *name, void (*what)(void))
{
	uint64_t least_ns = UINT64_MAX, least_cycles = UINT64_MAX;
	for (int b = 0; b < BATCHES; b++) {
		uint64_t ns = now_ns(), c = cycles();
		for (int i = 0; i < N; i++)
			what();
		c = cycles() - c;
		ns = now_ns() - ns;
		least_ns = ns < least_ns ? ns : least_ns;
		least_cycles = c < least_cycles ? c : least_cycles;
	}
	printf("%-12s %7.1f ns %7.1f cycles\n", name, (double)least_ns / N,
		(double)least_cycles / N);
}

int main(void)
{
	measure("call", nothing);
	measure("clock", clock_look);
	measure("count", count);
	measure("nest entry", timed_entry);
	measure("nest timed", nest_pair);
	measure("region", region_pair);
	return 0;
}
