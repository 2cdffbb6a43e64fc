/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loops whose operations and bytes are known, which count nothing themselves. Argument: milliseconds
 * of each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N 2048

/* not static, so that their contents may be anything to the compiler */
extern double a[N], b[N], c[N];
extern int d[N];
double a[N], b[N], c[N];
int d[N];

static long now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* 2 operations; 16 bytes loaded, 8 stored */
__attribute__((noipa)) static void triad(double q)
{
	for (int i = 0; i < N; i++)
		a[i] = b[i] + q * c[i];
}

/* 7 operations; 8 bytes loaded */
__attribute__((noipa)) static double polynomial(void)
{
	double sum = 0;
	for (int i = 0; i < N; i++)
		sum += ((b[i] * 1.5 + 2) * b[i] + 3) * b[i] + 4;
	return sum;
}

/* 4 bytes loaded, and 8 stored every other time */
__attribute__((noipa)) static double sorted(void)
{
	double sum = 0;
	for (int i = 0; i < N; i++) {
		sum = sum + 0.5;
		if (*(volatile int *)&d[i] & 1)
			*(volatile double *)&a[i] = sum;
	}
	return sum;
}

int main(int argc, char **argv)
{
	long each_ms = argc > 1 ? atol(argv[1]) : 100;
	double sum = 0;
	for (int i = 0; i < N; i++)
		d[i] = i;
	for (long end = now_ms() + each_ms; now_ms() < end;)
		triad(1.5);
	for (long end = now_ms() + each_ms; now_ms() < end;)
		sum += polynomial();
	for (long end = now_ms() + each_ms; now_ms() < end;)
		sum += sorted();
	printf("%g\n", sum);
	return 0;
}
