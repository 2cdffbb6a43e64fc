/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What an empty region, loop, barrier and an uncontended lock take, ns each, of one thread: prints four
 * numbers.
 */
#include <omp.h>
#include <stdio.h>

#define TIMES 200000

static double since(double *begin)
{
	double now = omp_get_wtime(), ns = (now - *begin) / TIMES * 1e9;
	*begin = now;
	return ns;
}

int main(void)
{
	volatile int x = 0;
	omp_lock_t lock;
	omp_init_lock(&lock);
	double begin = omp_get_wtime();
	for (int i = 0; i < TIMES; i++)
#pragma omp parallel num_threads(1)
		x = i;
	double region = since(&begin);
#pragma omp parallel num_threads(1)
	for (int i = 0; i < TIMES; i++)
#pragma omp for schedule(static) nowait
		for (int k = 0; k < 1; k++)
			x = k;
	double loop = since(&begin);
#pragma omp parallel num_threads(1)
	for (int i = 0; i < TIMES; i++) {
#pragma omp barrier
		x = i;
	}
	double barrier = since(&begin);
	for (int i = 0; i < TIMES; i++) {
		omp_set_lock(&lock);
		x = i;
		omp_unset_lock(&lock);
	}
	printf("%g %g %g %g\n", region, loop, barrier, since(&begin));
	return x < 0;
}
