/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A loop that calls a function which takes nearly all the time, in a nest of its own, and beside the
 * call has a small loop that takes nearly none.
 */
#include <stdio.h>

#define N 1000
#define CALLS 50
#define PASSES 2000

static double small[N], large[N];

__attribute__((noinline)) static double work(const double *a, int k)
{
	double sum = 0;
	for (int pass = 0; pass < PASSES; pass++)
		for (int i = 0; i < N; i++)
			sum += a[i] / (i + k + 1);
	return sum;
}

__attribute__((noinline)) static double caller(void)
{
	double sum = 0;
	for (int call = 0; call < CALLS; call++) {
		for (int i = 0; i < N; i++)
			small[i] += i * sum;
		sum += work(large, call);
	}
	return sum;
}

int main(void)
{
	for (int i = 0; i < N; i++)
		large[i] = i % 7;
	printf("%.3f\n", caller() + small[N - 1] * 0);
	return 0;
}
