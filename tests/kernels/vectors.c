/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What compilers make vectors of: products, sums, gathers and scatters, narrow numbers. A sum by
 * vectors also adds up its lanes in the end, which are not more than some hundred.
 *
 * expect: product fp32_ops 524288
 * expect: sum32 fp32_ops 40009..40809
 * expect: sum32 outside_bytes_loaded 160036
 * expect: sum64 fp64_ops 40009..40809
 * expect: sum64 outside_bytes_loaded 320072
 * expect: dot fp64_ops 80018..80818
 * expect: dot outside_bytes_loaded 640144
 * expect: gather fp32_ops 40009
 * expect: gather outside_bytes_loaded 320072
 * expect: gather outside_bytes_stored 160036
 * expect: scatter outside_bytes_loaded 320072
 * expect: scatter outside_bytes_stored 160036
 * expect: bytes int_ops.least 40009
 * expect: bytes outside_bytes_loaded 40009
 * expect: bytes outside_bytes_stored 40009
 */

#include <stdint.h>

#include "kernels.h"

#define N 40009
#define SIDE 64

static ALIGNED float f[N], g[N], h[N];
static ALIGNED double d[N], e[N];
static ALIGNED int at[N];
static ALIGNED uint8_t narrow[N], wider[N];

/* The matmul that vectorises: the innermost loop goes along rows. 2 n^3 for n = 64 */
KERNEL void product(float *restrict c, const float *restrict a, const float *restrict b, int n)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			for (int j = 0; j < n; j++)
				c[i * n + j] += a[i * n + k] * b[k * n + j];
}

#pragma clang fp reassociate(on)
KERNEL float sum32(const float *a, int n)
{
	float sum = 0;
	for (int i = 0; i < n; i++)
		sum += a[i];
	return sum;
}

KERNEL double sum64(const double *a, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += a[i];
	return sum;
}

KERNEL double dot(const double *a, const double *b, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

KERNEL void gather(float *restrict to, const float *restrict from, const int *restrict index, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = from[index[i]] * 2;
}

KERNEL void scatter(
	float *restrict to, const float *restrict from, const int *restrict index, int n)
{
	for (int i = 0; i < n; i++)
		to[index[i]] = from[i];
}

KERNEL void bytes(uint8_t *restrict to, const uint8_t *restrict from, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = from[i] + 3;
}

static double run_product(void)
{
	memset(h, 0, sizeof(h));
	product(h, f, f + SIDE * SIDE, SIDE);
	return h[SIDE + 1];
}

static double run_sum32(void)
{
	return sum32(f, N);
}

static double run_sum64(void)
{
	return sum64(d, N);
}

static double run_dot(void)
{
	return dot(d, e, N);
}

static double run_gather(void)
{
	gather(g, f, at, N);
	return g[N - 1];
}

static double run_scatter(void)
{
	scatter(g, f, at, N);
	return g[5];
}

static double run_bytes(void)
{
	bytes(wider, narrow, N);
	return wider[N - 1];
}

int main(int argc, char **argv)
{
	static const struct kernel kernels[] = {
		{"product", run_product},
		{"sum32", run_sum32},
		{"sum64", run_sum64},
		{"dot", run_dot},
		{"gather", run_gather},
		{"scatter", run_scatter},
		{"bytes", run_bytes},
	};
	for (int i = 0; i < N; i++) {
		f[i] = (float)(i % 17);
		d[i] = i % 19;
		e[i] = i % 23;
		at[i] = i * 3 % N;
		narrow[i] = (uint8_t)i;
	}
	return RUN_KERNELS(kernels, argc, argv);
}
