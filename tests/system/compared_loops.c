/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * compared_loops ROUNDS MORE: a function with two loops, of which one does MORE percent more work, and another
 * function. A round takes about a tenth of a millisecond.
 */
#include <stdio.h>
#include <stdlib.h>

#define N 4096

static double a[N], b[N];

__attribute__((noinline)) static double two_loops(int passes)
{
	double sum = 0;
	for (int i = 0; i < 4 * N; i++)
		a[i % N] = a[i % N] * 0.5 + b[i % N];
	for (int pass = 0; pass < passes; pass++)
		for (int i = 0; i < N / 10; i++)
			sum += a[i] * b[i];
	return sum;
}

__attribute__((noinline)) static unsigned long hashed(unsigned long n)
{
	unsigned long h = 1;
	for (unsigned long i = 0; i < n; i++)
		h = (h >> 7) + h * 31;
	return h;
}

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 1, more = argc > 2 ? atoi(argv[2]) : 0;
	double sum = 0;
	unsigned long h = 0;
	for (int i = 0; i < N; i++)
		b[i] = i;
	for (int round = 0; round < rounds; round++) {
		sum += two_loops(60 + 60 * more / 100);
		h += hashed(5 * N);
	}
	printf("%g %lu\n", sum, h);
	return 0;
}
