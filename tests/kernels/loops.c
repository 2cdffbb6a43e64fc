/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loops of known counts, of the kinds that compilers treat differently.
 *
 * The triad has 2 n operations. A row i of the matrix has 8 + i % 17 values, 7,965 in all 500, of
 * two operations each. The triangle sums up n (n + 1) (n + 2) / 6 times for n = 99, the stencil
 * adds 4 times for each of 98 * 98 points. The grid of 64 * 64 nodes has 16,128 edges, at which two
 * words are looked at, and four at each node.
 *
 * expect: triad fp64_ops 80018
 * expect: triad outside_bytes_loaded 640144
 * expect: triad outside_bytes_stored 320072
 * expect: spmv fp64_ops 15930
 * expect: spmv outside_bytes_loaded 161300..163300
 * expect: spmv outside_bytes_stored 4000
 * expect: triangular fp32_ops 166650
 * expect: stencil fp32_ops 38416
 * expect: stencil outside_bytes_stored 38416
 * expect: chase outside_bytes_loaded 40000
 * expect: histogram outside_bytes_loaded 50000
 * expect: histogram outside_bytes_stored 40000
 * expect: half_open fp32_ops 4950
 * expect: multiple_exits fp32_ops 7778
 * expect: constant_trips fp32_ops 51200
 * expect: bfs outside_bytes_stored 32768
 * expect: bfs outside_bytes_loaded 194560
 */

#include <stdint.h>

#include "kernels.h"

#define N 40009
#define ROWS 500
#define ROW_VALUES_MAX 24
#define POINTS 100
#define BINS 256
#define SIDE 64 /* of the grid that is searched */

static ALIGNED double a[N], b[N], c[N];
static ALIGNED float f[2 * POINTS * POINTS], ones[20000];
static ALIGNED long next[N];
static ALIGNED int rows[ROWS + 1], columns[ROWS * ROW_VALUES_MAX];
static ALIGNED double values[ROWS * ROW_VALUES_MAX];
static ALIGNED uint8_t data[N];
static ALIGNED uint32_t bins[BINS];
static ALIGNED int first_edges[SIDE * SIDE + 1], edges[4 * SIDE * SIDE];
static ALIGNED int distances[SIDE * SIDE], queue[SIDE * SIDE];

KERNEL void triad(double *to, const double *from, const double *scaled, double s, long n)
{
	for (long i = 0; i < n; i++)
		to[i] = from[i] + s * scaled[i];
}

KERNEL void spmv(
	double *y, const int *first, const int *column, const double *value, const double *x, int n)
{
	for (int i = 0; i < n; i++) {
		double sum = 0;
		const int end = first[i + 1];
		for (int k = first[i]; k < end; k++)
			sum += value[k] * x[column[k]];
		y[i] = sum;
	}
}

KERNEL float triangular(const float *from, int n)
{
	float sum = 0;
	for (int i = 0; i < n; i++)
		for (int j = 0; j <= i; j++)
			for (int k = 0; k <= j; k++)
				sum += from[k];
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

KERNEL long chase(const long *from, long n)
{
	long at = 0;
	while (n-- > 0)
		at = from[at];
	return at;
}

KERNEL void histogram(uint32_t *counts, const uint8_t *from, int n)
{
	for (int i = 0; i < n; i++)
		counts[from[i]]++;
}

KERNEL float half_open(const float *from, int n)
{
	float sum = 0;
	int i = 0;
	do {
		sum += from[i];
		i += 2;
	} while (i < 2 * n);
	return sum;
}

KERNEL float multiple_exits(const float *from, int n)
{
	float sum = 0;
	for (int i = 0; i < n; i++) {
		if (from[i] < 0)
			break;
		sum += from[i];
		if (sum > 1e9f)
			return 0;
	}
	return sum;
}

KERNEL float constant_trips(const float *from, int n)
{
	float sum = 0;
	for (int i = 0; i < n; i++)
#pragma clang loop unroll(disable)
		for (int j = 0; j < 512; j++)
			sum += from[j];
	return sum;
}

/* Each node is put into the queue once, with its distance; each edge is looked at once. */
KERNEL int bfs(int *distance, int *waiting, const int *first, const int *edge)
{
	int n = 0;
	waiting[n++] = 0;
	distance[0] = 0;
	for (int at = 0; at < n; at++) {
		const int node = waiting[at];
		const int end = first[node + 1];
		const int further = distance[node] + 1;
		for (int k = first[node]; k < end; k++) {
			const int other = edge[k];
			if (distance[other] < 0) {
				distance[other] = further;
				waiting[n++] = other;
			}
		}
	}
	return n;
}

static double run_triad(void)
{
	triad(a, b, c, 3, N);
	return a[N - 1];
}

static double run_spmv(void)
{
	spmv(a, rows, columns, values, b, ROWS);
	return a[ROWS - 1];
}

static double run_triangular(void)
{
	return triangular(f, 99);
}

static double run_stencil(void)
{
	stencil(f + POINTS * POINTS, f, POINTS);
	return f[POINTS * POINTS + POINTS + 1];
}

static double run_chase(void)
{
	return chase(next, 5000);
}

static double run_histogram(void)
{
	histogram(bins, data, 10000);
	return bins[3];
}

static double run_half_open(void)
{
	return half_open(f, 4950);
}

static double run_multiple_exits(void)
{
	return multiple_exits(ones, 20000);
}

static double run_constant_trips(void)
{
	return constant_trips(f, 100);
}

static double run_bfs(void)
{
	memset(distances, -1, sizeof(distances));
	return bfs(distances, queue, first_edges, edges) + distances[SIDE * SIDE - 1];
}

static void make_matrix(void)
{
	for (int i = 0; i < ROWS; i++) {
		rows[i + 1] = rows[i] + 8 + i % 17;
		for (int k = rows[i]; k < rows[i + 1]; k++) {
			columns[k] = k * 7919 % N;
			values[k] = k % 13;
		}
	}
}

static void make_grid(void)
{
	int n = 0;
	for (int i = 0; i < SIDE * SIDE; i++) {
		first_edges[i] = n;
		if (i % SIDE > 0)
			edges[n++] = i - 1;
		if (i % SIDE < SIDE - 1)
			edges[n++] = i + 1;
		if (i >= SIDE)
			edges[n++] = i - SIDE;
		if (i < SIDE * (SIDE - 1))
			edges[n++] = i + SIDE;
	}
	first_edges[SIDE * SIDE] = n;
}

static void make_arrays(void)
{
	for (int i = 0; i < N; i++) {
		b[i] = i % 19;
		c[i] = i % 17;
		next[i] = (i * 7L + 1) % N;
		data[i] = (uint8_t)(i * 31);
	}
	for (int i = 0; i < POINTS * POINTS; i++)
		f[i] = (float)(i % 11);
	for (int i = 0; i < 7778; i++)
		ones[i] = 1;
	ones[7778] = -1;
}

int main(int argc, char **argv)
{
	static const struct kernel kernels[] = {
		{"triad", run_triad},
		{"spmv", run_spmv},
		{"triangular", run_triangular},
		{"stencil", run_stencil},
		{"chase", run_chase},
		{"histogram", run_histogram},
		{"half_open", run_half_open},
		{"multiple_exits", run_multiple_exits},
		{"constant_trips", run_constant_trips},
		{"bfs", run_bfs},
	};
	make_arrays();
	make_matrix();
	make_grid();
	return RUN_KERNELS(kernels, argc, argv);
}
