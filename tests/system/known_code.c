/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loops whose operations and bytes are known, and which do not count them. Argument: milliseconds of each.
 * Prints the rate of each over its own CPU time, in GFLOP/s.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N 2048
#define RUNS 32 /* between two readings of the clock, since each is a system call */

/* Neither inlined nor specialised for its caller. */
#ifdef __clang__
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noipa))
#endif

/* not static, so that their contents may be anything to the compiler */
extern double a[N], b[N], c[N];
extern int d[N];
double a[N], b[N], c[N];
int d[N];

static long now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* 2 operations; 16 bytes loaded, 8 stored */
ALONE static void triad(double q)
{
	for (int i = 0; i < N; i++)
		a[i] = b[i] + q * c[i];
}

/* 7 operations; 8 bytes loaded */
ALONE static double polynomial(void)
{
	double sum = 0;
	for (int i = 0; i < N; i++)
		sum += ((b[i] * 1.5 + 2) * b[i] + 3) * b[i] + 4;
	return sum;
}

/* 4 bytes loaded, and 8 stored every other time */
ALONE static double sorted(void)
{
	double sum = 0;
	for (int i = 0; i < N; i++) {
		sum = sum + 0.5;
		if (*(volatile int *)&d[i] & 1)
			*(volatile double *)&a[i] = sum;
	}
	return sum;
}

static double sum;

static void run_triad(void)
{
	triad(1.5);
}

static void run_polynomial(void)
{
	sum += polynomial();
}

static void run_sorted(void)
{
	sum += sorted();
}

/* Runs for each_ms; a run does `operations` for each of N elements. */
static void keep_running(const char *name, void (*run)(void), int operations, long each_ms)
{
	long start = now_ns(), runs = 0;
	while (now_ns() - start < 1000000 * each_ms)
		for (int i = 0; i < RUNS; i++, runs++) {
			run();
			__asm__ volatile("" ::: "memory"); /* else one run could stand for all */
		}
	printf("%s %.6f\n", name, (double)runs * N * operations / (double)(now_ns() - start));
}

int main(int argc, char **argv)
{
	long each_ms = argc > 1 ? atol(argv[1]) : 100;
	for (int i = 0; i < N; i++)
		d[i] = i;
	keep_running("triad", run_triad, 2, each_ms);
	keep_running("polynomial", run_polynomial, 7, each_ms);
	keep_running("sorted", run_sorted, 1, each_ms);
	return sum == 1.5;
}
