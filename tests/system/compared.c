/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Three functions of the same work; one of them does so many percent more of it: compared ROUNDS PERCENT.
 */
#include <stdio.h>
#include <stdlib.h>

static volatile double sum;

#define WORK 20000

__attribute__((noinline)) static void steady(long n)
{
	for (long i = 0; i < n; i++)
		sum += 1.0 / (double)(i + 1);
}

__attribute__((noinline)) static void even(long n)
{
	for (long i = 0; i < n; i++)
		sum += 2.0 / (double)(i + 2);
}

__attribute__((noinline)) static void slowed(long n)
{
	for (long i = 0; i < n; i++)
		sum += 3.0 / (double)(i + 3);
}

int main(int argc, char **argv)
{
	const long rounds = argc > 1 ? atol(argv[1]) : 1, percent = argc > 2 ? atol(argv[2]) : 0;

	for (long i = 0; i < rounds; i++) {
		steady(WORK);
		even(WORK);
		slowed(WORK + WORK * percent / 100);
	}
	printf("%g\n", sum);
	return 0;
}
