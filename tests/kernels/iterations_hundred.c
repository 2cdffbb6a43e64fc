/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A loop of 100 iterations in the source: 25 of vectors of four, which are unrolled by two, so that the loop
 * is left in its middle (clang 16). It is entered ten times.
 */

#include "kernels.h"

#define N 100

static double a[N], b[N];

KERNEL void hundred(void)
{
	for (int i = 0; i < N; i++)
		a[i] = a[i] * 1.5 + b[i];
}

static double run_hundred(void)
{
	for (int i = 0; i < 10; i++)
		hundred();
	return a[1];
}

int main(int argc, char **argv)
{
	static const struct kernel kernels[] = {
		{"hundred", run_hundred},
	};
	for (int i = 0; i < N; i++)
		b[i] = i % 7;
	return RUN_KERNELS(kernels, argc, argv);
}
