/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A parallel loop that calls what is not counted. Its argument is how many threads work.
 *
 * expect: drawn entries.least 1
 */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) double drawn(int n, int n_threads)
{
	double sum = 0;
#pragma omp parallel num_threads(n_threads) reduction(+ : sum)
	{
		unsigned short state[3] = {1, 2, 3};
#pragma omp for schedule(dynamic, 1000)
		for (int i = 0; i < n; i++)
			sum += erand48(state);
	}
	return sum;
}

int main(int argc, char **argv)
{
	printf("%d\n", drawn(200000, argc > 1 ? atoi(argv[1]) : 4) > 0);
	return 0;
}
