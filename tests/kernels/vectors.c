/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What compilers make vectors of: products, sums, gathers and scatters, masks, narrow numbers.
 *
 * expect: product fp32_ops 524288
 * expect: sum32 fp32_ops.least 10007
 * expect: sum64 fp64_ops.least 10007
 * expect: dot fp64_ops.least 20014
 * expect: gather fp32_ops 10007
 * expect: scatter bytes_stored.least 40028
 * expect: masked fp64_ops.least 5003
 * expect: bytes int_ops.least 10007
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define KERNEL __attribute__((noinline))

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

KERNEL void gather(float *restrict to, const float *restrict from, const int *restrict at, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = from[at[i]] * 2;
}

KERNEL void scatter(float *restrict to, const float *restrict from, const int *restrict at, int n)
{
	for (int i = 0; i < n; i++)
		to[at[i]] = from[i];
}

KERNEL void masked(double *restrict to, const double *restrict from, const int *restrict at, int n)
{
	for (int i = 0; i < n; i++)
		if (at[i] & 1)
			to[i] = from[i] * from[i];
}

KERNEL void bytes(uint8_t *restrict to, const uint8_t *restrict from, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = from[i] + 3;
}

int main(void)
{
	enum { N = 10007 };
	float *f = calloc(3 * N, sizeof(*f));
	double *d = calloc(3 * N, sizeof(*d));
	int *at = calloc(N, sizeof(*at));
	if (!f || !d || !at)
		return 1;
	for (int i = 0; i < N; i++) {
		f[i] = (float)(i % 17);
		d[i] = i % 19;
		at[i] = i * 3 % N;
	}
	product(f + 2 * N, f, f + N, 64);
	gather(f + N, f, at, N);
	scatter(f + 2 * N, f, at, N);
	masked(d + N, d, at, N);
	bytes((uint8_t *)(d + 2 * N), (const uint8_t *)d, N);
	printf("%g %g %g %g %g\n", (double)sum32(f, N), sum64(d, N), dot(d, d + N, N),
		(double)f[2 * N + 5], d[N + 1]);
	free(f);
	free(d);
	free(at);
	return 0;
}
