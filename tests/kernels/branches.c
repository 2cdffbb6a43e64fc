/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loops whose branches depend on unpredictable data, with operations and bytes that differ from side to
 * side: from machine code alone, only samples say how often each side runs. The keys are all numbers below N in
 * a random order, so how often each side runs is known.
 *
 * Of the N = 4096 keys 2,560 are below FIRST, 128 below RARE. `either` has 2 operations or 1, `rarely`
 * 1, and 8 more in the rare case, `quarters` 1, 2, 3 or 5. `near` has 2 for each and 6 more for each
 * that is near, a quarter. `roots` stops after key % 8 + 1 rounds of 4. `merge` adds once a value, until
 * one of its lists ends. `cases` has 1, 2, 3, 4, 5, 8, 8 or 8. Optimised, `roots` does not divide by its
 * first root, which is 1, and `cases` adds the two lanes of a vector as one, of which the code generator
 * leaves out the lane that nobody uses.
 *
 * expect: either fp64_ops 6656
 * expect: rarely fp64_ops 5120
 * expect: quarters fp64_ops 11264
 * expect: near fp64_ops 14336
 * expect: roots fp64_ops 69632..73728
 * expect: merge fp64_ops 4096..8191
 * expect: cases fp64_ops 19968..20480
 * expect: clamp outside_bytes_stored 24576
 */

#include <stdint.h>

#include "kernels.h"

#define N 4096
#define FIRST 2560
#define RARE 128

static ALIGNED double x[N], y[N], z[N], to[2 * N];
static ALIGNED double low[N], high[N]; /* rising */
static ALIGNED int key[N];

KERNEL double either(const int *k, const double *a, const double *b, const double *c, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++) {
		if (k[i] < FIRST)
			sum += a[i] * b[i];
		else
			to[i] = sum - c[i];
	}
	return sum;
}

KERNEL double rarely(const int *k, const double *a, const double *b, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++) {
		sum += a[i];
		if (k[i] < RARE) {
			const double q = b[i];
			to[i] = (((q * 0.5 + 1) * q + 2) * q + 3) * q + 4;
		}
	}
	return sum;
}

KERNEL double quarters(const int *k, const double *a, const double *b, const double *c, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++) {
		if (k[i] < N / 4) {
			sum += 1;
		} else if (k[i] < N / 2) {
			to[i] = a[i] * b[i];
			sum += 1;
		} else if (k[i] < 3 * N / 4) {
			to[i] = a[i] * b[i] + c[i];
			sum += 1;
		} else {
			to[i] = (a[i] + b[i]) * (c[i] - a[i]) / (b[i] + 2);
		}
	}
	return sum;
}

/* Molecules: those in reach of this one are worked out. */
KERNEL double near(const int *k, double here, double cut, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++) {
		const double d = (double)k[i] - here, r = d * d;
		if (r < cut) {
			const double q = 1 / (r + 1);
			to[i] = q * q * q - q;
			sum += q;
		}
	}
	return sum;
}

/* A loop within, of as many rounds as the data wants. */
KERNEL void roots(const int *k, const double *a, int n)
{
	for (int i = 0; i < n; i++) {
		const double of = a[i];
		double root = 1;
		int rounds = k[i] % 8 + 1;
		do {
			root = (root + of / root) * 0.5 + 0.0625;
		} while (--rounds > 0);
		to[i] = root;
	}
}

KERNEL double merge(double *restrict into, const double *a, const double *b, int n)
{
	int i = 0, j = 0, at = 0;
	double sum = 0;
	while (i < n && j < n) {
		if (a[i] <= b[j]) {
			sum += a[i];
			into[at++] = a[i++];
		} else {
			sum += b[j];
			into[at++] = b[j++];
		}
	}
	return sum;
}

KERNEL double cases(const int *k, const double *a, const double *b, int n)
{
	double s = 0;
	for (int i = 0; i < n; i++) {
		switch (k[i] % 8) {
		case 0:
			s += 1;
			break;
		case 1:
			s += a[i] * b[i];
			break;
		case 2:
			to[i] = a[i] * 2 + 1;
			s += 1;
			break;
		case 3:
			s += a[i] * a[i] * a[i] * 0.5;
			break;
		case 4:
			s = (s + 1) * 0.5 + a[i] * b[i] + 1;
			break;
		case 5:
			to[i] = (a[i] + 1) * (b[i] + 1) * (a[i] - 1) * (b[i] - 1) / 3;
			break;
		case 6:
			s += (a[i] + 1) / (b[i] + 1) + (a[i] + 2) / 3 + 4;
			to[i] = s;
			break;
		default:
			s = ((((s * 0.5 + 1) * 0.5 + 1) * 0.5 + 1) * 0.5 + 1);
			break;
		}
	}
	return s;
}

KERNEL int clamp(const int *k, const double *a, int n)
{
	int outside = 0;
	for (int i = 0; i < n; i++) {
		if (k[i] < N / 4) {
			to[i] = a[i];
			outside++;
		} else if (k[i] >= N / 2) {
			to[i] = a[0];
		}
	}
	return outside;
}

static double run_either(void)
{
	return either(key, x, y, z, N);
}

static double run_rarely(void)
{
	return rarely(key, x, y, N);
}

static double run_quarters(void)
{
	return quarters(key, x, y, z, N);
}

static double run_near(void)
{
	return near(key, 0, (double)N / 4 * N / 4, N);
}

static double run_roots(void)
{
	roots(key, x, N);
	return to[5];
}

static double run_merge(void)
{
	return merge(to, low, high, N);
}

static double run_cases(void)
{
	return cases(key, x, y, N);
}

static double run_clamp(void)
{
	return clamp(key, x, N);
}

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u; /* Source: Press et al., Numerical Recipes, 7.1 */
	return *state >> 8;
}

int main(int argc, char **argv)
{
	static const struct kernel kernels[] = {
		{"either", run_either},
		{"rarely", run_rarely},
		{"quarters", run_quarters},
		{"near", run_near},
		{"roots", run_roots},
		{"merge", run_merge},
		{"cases", run_cases},
		{"clamp", run_clamp},
	};
	uint32_t state = 1;
	for (int i = 0; i < N; i++) {
		x[i] = i % 97 * 0.125;
		y[i] = i % 89 * 0.25;
		z[i] = i % 83 * 0.5;
		key[i] = i;
	}
	for (int i = 0; i < N; i++) {
		low[i] = (i ? low[i - 1] : 0) + (double)(next_random(&state) % 1000);
		high[i] = (i ? high[i - 1] : 0) + (double)(next_random(&state) % 1000);
	}
	for (int i = N - 1; i > 0; i--) {
		const int other = (int)(next_random(&state) % (uint32_t)(i + 1)), kept = key[i];
		key[i] = key[other];
		key[other] = kept;
	}
	return RUN_KERNELS(kernels, argc, argv);
}
