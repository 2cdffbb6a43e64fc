// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/*
 * A function that takes nearly all of the time, called from a loop with a tiny one inside: the callee's
 * time belongs to neither.
 *
 *      innocent N    N rounds of each
 */
#include <stdio.h>
#include <stdlib.h>

#define N_NUMBERS 4096
#define N_TINY 64
#define REPEATS 200 /* of work in a round: the tiny loop has less than a thousandth of the time */

static double numbers[N_NUMBERS], tiny[N_TINY];

__attribute__((noinline)) static double work(const double *x)
{
	double sum = 0;
	for (int k = 0; k < REPEATS; k++)
		for (int i = 0; i < N_NUMBERS; i++)
			sum += x[i] * (i + k);
	return sum;
}

__attribute__((noinline)) static double around(int n)
{
	double sum = 0;
	for (int r = 0; r < n; r++) {
		for (int i = 0; i < N_TINY; i++)
			tiny[i] += i * sum;
		sum += work(numbers) / 1e30;
	}
	return sum;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < N_NUMBERS; i++)
		numbers[i] = 1.0 / (i + 1);
	printf("%g %g\n", around(argc > 1 ? atoi(argv[1]) : 1), tiny[N_TINY - 1]);
	return 0;
}
