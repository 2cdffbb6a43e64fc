/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loops of known counts, of the kinds that compilers treat differently.
 *
 * expect: triad fp64_ops 200000
 * expect: spmv fp64_ops 2982
 * expect: triangular fp32_ops 166650
 * expect: stencil fp32_ops 38416
 * expect: masked_store fp32_ops.least 5000
 * expect: chase loads.least 5000
 * expect: histogram stores.least 10000
 * expect: half_open fp32_ops 4950
 * expect: multiple_exits fp32_ops 778
 * expect: constant_trips fp32_ops 51200
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL __attribute__((noinline))

KERNEL void triad(double *a, const double *b, const double *c, double s, long n)
{
	for (long i = 0; i < n; i++)
		a[i] = b[i] + s * c[i];
}

KERNEL void spmv(double *y, const int *rows, const int *columns, const double *values,
	const double *x, int n)
{
	for (int i = 0; i < n; i++) {
		double sum = 0;
		for (int k = rows[i]; k < rows[i + 1]; k++)
			sum += values[k] * x[columns[k]];
		y[i] = sum;
	}
}

/* sum over i < n of sum over j <= i of (j + 1) times 1, for n = 99: 1/6 n (n+1) (n+2) */
KERNEL float triangular(const float *a, int n)
{
	float sum = 0;
	for (int i = 0; i < n; i++)
		for (int j = 0; j <= i; j++)
			for (int k = 0; k <= j; k++)
				sum += a[k];
	return sum;
}

KERNEL void stencil(float *restrict to, const float *restrict from, int n)
{
	for (int y = 1; y < n - 1; y++)
		for (int x = 1; x < n - 1; x++)
			to[y * n + x] = from[y * n + x - 1] + from[y * n + x + 1] +
					from[(y - 1) * n + x] + from[(y + 1) * n + x] +
					from[y * n + x];
}

KERNEL void masked_store(float *restrict to, const float *restrict from, int n)
{
	for (int i = 0; i < n; i++)
		if (from[i] > 0)
			to[i] = from[i] * 3;
}

KERNEL long chase(const long *next, long n)
{
	long at = 0;
	while (n-- > 0)
		at = next[at];
	return at;
}

KERNEL void histogram(uint32_t *bins, const uint8_t *data, int n)
{
	for (int i = 0; i < n; i++)
		bins[data[i]]++;
}

KERNEL float half_open(const float *a, int n)
{
	float sum = 0;
	int i = 0;
	do {
		sum += a[i];
		i += 2;
	} while (i < 2 * n);
	return sum;
}

KERNEL float multiple_exits(const float *a, int n)
{
	float sum = 0;
	for (int i = 0; i < n; i++) {
		if (a[i] < 0)
			break;
		sum += a[i];
		if (sum > 1e9f)
			return 0;
	}
	return sum;
}

KERNEL float constant_trips(const float *a, int n)
{
	float sum = 0;
	for (int i = 0; i < n; i++)
#pragma clang loop unroll(disable)
		for (int j = 0; j < 512; j++)
			sum += a[j];
	return sum;
}

int main(void)
{
	enum { N = 100000 };
	double *d = calloc(4 * N, sizeof(*d));
	float *f = calloc(2 * N, sizeof(*f));
	long *next = calloc(N, sizeof(*next));
	int *rows = calloc(N, sizeof(*rows));
	uint8_t *bytes = calloc(N, 1);
	uint32_t bins[256] = {0};
	if (!d || !f || !next || !rows || !bytes)
		return 1;
	triad(d, d + N, d + 2 * N, 3, N);
	for (int i = 0; i <= 100; i++)
		rows[i] = i * (i - 1) * 3 / 10;
	for (int i = 0; i < 10; i++)
		rows[1000 + i] = i;
	memset(rows + 1000, 0, 3000 * sizeof(*rows));
	/* rows[71] = 1491, of 2 operations each */
	spmv(d, rows, rows + 1000, d + N, d + 2 * N, 71);
	for (int i = 0; i < 778; i++)
		f[i] = 1;
	f[778] = -1;
	for (int i = 0; i < 10000; i++)
		f[20000 + i] = i % 2 ? 1 : -1;
	for (long i = 0; i < N; i++)
		next[i] = (i * 7 + 1) % N;
	for (int i = 0; i < N; i++)
		bytes[i] = i * 31;
	stencil(f + N, f, 100);
	masked_store(f + N, f + 20000, 10000);
	histogram(bins, bytes, 10000);
	printf("%g %ld %g %g %g %u\n", (double)triangular(f, 99), chase(next, 5000),
		(double)half_open(f, 4950), (double)multiple_exits(f, 2000),
		(double)constant_trips(f, 100), bins[3]);
	free(d);
	free(f);
	free(next);
	free(rows);
	free(bytes);
	return 0;
}
