/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Threads that never end, with work dealt out beforehand and as it comes. What the directives
 * outline belongs to the function that they stand in. Its arguments are how
 * many threads work, and "wait" where it is to wait for the end of its standard input.
 *
 * expect: dealt fp64_ops 200000
 * expect: as_it_comes fp64_ops 200000
 */

#include <stdio.h>
#include <stdlib.h>

#define KERNEL __attribute__((noinline))

KERNEL void dealt(double *a, const double *b, int n, int n_threads)
{
#pragma omp parallel for schedule(static) num_threads(n_threads)
	for (int i = 0; i < n; i++)
		a[i] = a[i] + 3 * b[i];
}

KERNEL void as_it_comes(double *a, const double *b, int n, int n_threads)
{
#pragma omp parallel for schedule(dynamic, 100) num_threads(n_threads)
	for (int i = 0; i < n; i++)
		a[i] = a[i] + 3 * b[i];
}

int main(int argc, char **argv)
{
	enum { N = 100000 };
	const int n_threads = argc > 1 ? atoi(argv[1]) : 4;
	double *a = calloc(2 * N, sizeof(*a));
	if (!a)
		return 1;
	for (int i = 0; i < 2 * N; i++)
		a[i] = i % 11;
	dealt(a, a + N, N, n_threads);
	as_it_comes(a, a + N, N, n_threads);
	printf("%g\n", a[N - 1]);
	fflush(stdout);
	while (argc > 2 && getchar() != EOF)
		;
	free(a);
	return 0;
}
