/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Products of numbers that are the same in all lanes of a vector, and in all parts of an interleaved
 * loop: the code generator makes one of them. How many it leaves depends on it alone, so a test
 * compares counts with the machine code as it ran, not with a number in this file.
 */

#include "kernels.h"

#define N 100
#define ROWS 4

static double a[N * ROWS], b[N * ROWS], c[N * ROWS];
static float f[N * ROWS], g[N * ROWS], h[N * ROWS];

KERNEL void scaled_row(
	double *to, const double *by, const double *from, double scale, int n, int row)
{
	for (int j = 0; j < n; j++)
		to[j] += scale * by[row] * from[j];
}

KERNEL void gemm(double *to, const double *by, const double *from, double scale, int rows, int n)
{
	for (int i = 0; i < rows; i++)
		for (int k = 0; k < rows; k++)
			for (int j = 0; j < n; j++)
				to[i * n + j] += scale * by[i * n + k] * from[k * n + j];
}

KERNEL void quotients(float *to, const float *by, const float *from, float scale, int n)
{
	for (int j = 0; j < n; j++)
		to[j] += by[0] / scale * from[j] - by[1] / scale;
}

static double run_scaled_row(void)
{
	for (int row = 0; row < ROWS; row++)
		scaled_row(c, a, b, 1.5, N, row);
	return c[1];
}

static double run_gemm(void)
{
	gemm(c, a, b, 0.5, ROWS, N);
	return c[N * ROWS - 1];
}

static double run_quotients(void)
{
	quotients(h, f, g, 3, N * ROWS);
	return h[1];
}

int main(int argc, char **argv)
{
	static const struct kernel kernels[] = {
		{"scaled_row", run_scaled_row},
		{"gemm", run_gemm},
		{"quotients", run_quotients},
	};
	for (int i = 0; i < N * ROWS; i++) {
		a[i] = i % 7;
		b[i] = i % 5;
		f[i] = 1 + i % 3;
		g[i] = i % 11;
	}
	return RUN_KERNELS(kernels, argc, argv);
}
