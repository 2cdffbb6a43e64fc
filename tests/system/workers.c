/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A region that starts parallel workers, each of which counts.
 */
#include <stdio.h>

#include "mperf.h"

#define N 100000

static double values[N] = {1, 2};

/* So that the compiler does not know them. */
static double *volatile known_at_run_time = values;

int main(void)
{
	double *const value = known_at_run_time;
	double sum = 0;
	MPERF_REGION_BEGIN("parallel");
#pragma omp parallel for reduction(+ : sum)
	for (int i = 0; i < N; i++)
		sum += value[i] * 3;
	MPERF_REGION_END("parallel");
	printf("%g\n", sum);
	return 0;
}
