/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A loop that computes, and after each of 20 parts waits so many milliseconds as its argument says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define N 1000
#define PARTS 20
#define PASSES 20000 /* some 20 ms */

static double values[N] = {1, 2};

/* So that the compiler does not know them. */
static double *volatile known_at_run_time = values;

int main(int argc, char **argv)
{
	const unsigned wait_us = argc > 1 ? 1000 * (unsigned)atoi(argv[1]) : 0;
	double *const value = known_at_run_time;
	double sum = 0;
	for (int part = 0; part < PARTS; part++) {
		for (int pass = 0; pass < PASSES; pass++)
			for (int i = 0; i < N; i++)
				sum += value[i] * (pass + i);
		if (wait_us)
			usleep(wait_us);
	}
	printf("%g\n", sum);
	return 0;
}
