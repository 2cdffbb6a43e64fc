/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A loop alone, and a nest of few iterations, each of which runs for seconds: what they are known to
 * have done is known when they ended. Says how long the calls took, in ns, and on a CPU.
 *
 *      runs_on one|nest ITERATIONS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double a[1024];

__attribute__((noinline)) static double one(long n)
{
	double s = 0;
	for (long i = 0; i < n; i++)
		s += a[i & 1023] * 1.5;
	return s;
}

__attribute__((noinline)) static double nest(int times, long n)
{
	double s = 0;
	for (int k = 0; k < times; k++)
		for (long i = 0; i < n; i++)
			s += a[i & 1023] * k;
	return s;
}

static double now_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 1;
	for (int i = 0; i < 1024; i++)
		a[i] = i;
	double begin_ns = now_ns(CLOCK_MONOTONIC), cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	double s = argc > 1 && strcmp(argv[1], "nest") == 0 ? nest(3, n / 3) : one(n);
	printf("%.0f %.0f\n", now_ns(CLOCK_MONOTONIC) - begin_ns,
		now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
	fflush(stdout);
	getchar();
	return s < 0;
}
