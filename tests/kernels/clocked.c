/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Regions that the program times itself: for each it prints
 *
 *      NAME SECONDS FLOPS BYTES
 *
 * of which the last two are what the algorithm has, so that whoever tells GFLOP/s and GB/s of a
 * region can be held against it. The clock is read outside of the region. Then it waits for the end
 * of its standard input, and can be asked about.
 *
 *      clocked [PASSES]        20; each takes some ten milliseconds for each region
 */

#include <time.h>

#include "kernels.h"
#include "mperf.h"

#define N 100003
#define REPEATS 200
#define SIDE 200

static double a[N], b[N], c[N];
static float x[SIDE * SIDE], y[SIDE * SIDE], z[SIDE * SIDE];

struct told {
	double seconds, flops, bytes;
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

KERNEL void triad(double *to, const double *from, const double *scaled, double s, long n)
{
	for (long i = 0; i < n; i++)
		to[i] = from[i] + s * scaled[i];
}

KERNEL void stencil(float *restrict to, const float *restrict from, int n)
{
	for (int i = 1; i < n - 1; i++)
		for (int k = 1; k < n - 1; k++)
			to[i * n + k] = from[i * n + k - 1] + from[i * n + k + 1] +
					from[(i - 1) * n + k] + from[(i + 1) * n + k];
}

KERNEL void product(float *restrict to, const float *restrict l, const float *restrict r, int n)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			for (int j = 0; j < n; j++)
				to[i * n + j] += l[i * n + k] * r[k * n + j];
}

static void time_triad(struct told *told)
{
	const double begin = now();
	MPERF_REGION_BEGIN("triad");
	for (int i = 0; i < REPEATS; i++)
		triad(a, b, c, 1 + i % 2, N);
	MPERF_REGION_END("triad");
	told->seconds += now() - begin;
	told->flops += REPEATS * 2.0 * N;
	told->bytes += REPEATS * 24.0 * N;
}

static void time_stencil(struct told *told)
{
	const double begin = now();
	MPERF_REGION_BEGIN("stencil");
	for (int i = 0; i < REPEATS; i++)
		stencil(i % 2 ? x : y, i % 2 ? y : x, SIDE);
	MPERF_REGION_END("stencil");
	told->seconds += now() - begin;
	told->flops += REPEATS * 3.0 * (SIDE - 2) * (SIDE - 2);
	told->bytes += REPEATS * 20.0 * (SIDE - 2) * (SIDE - 2);
}

/* A row of `to` stays in memory: each of n^3 steps loads two words and stores one, but that of l,
 * which stays in a register. */
static void time_product(struct told *told)
{
	const double begin = now();
	MPERF_REGION_BEGIN("product");
	product(z, x, y, SIDE);
	MPERF_REGION_END("product");
	told->seconds += now() - begin;
	told->flops += 2.0 * SIDE * SIDE * SIDE;
	told->bytes += 12.0 * SIDE * SIDE * SIDE + 4.0 * SIDE * SIDE;
}

static void print_told(const char *name, const struct told *told)
{
	printf("%s %.9f %.0f %.0f\n", name, told->seconds, told->flops, told->bytes);
}

int main(int argc, char **argv)
{
	const int passes = argc > 1 ? atoi(argv[1]) : 20;
	struct told of_triad = {0}, of_stencil = {0}, of_product = {0};
	for (int i = 0; i < N; i++)
		b[i] = c[i] = i % 13;
	for (int i = 0; i < passes; i++) {
		time_triad(&of_triad);
		time_stencil(&of_stencil);
		time_product(&of_product);
	}
	print_told("triad", &of_triad);
	print_told("stencil", &of_stencil);
	print_told("product", &of_product);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
