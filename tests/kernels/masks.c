/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loops with a condition on data, which compilers turn into masks where they can: what is stored is
 * what the condition lets through, and arithmetic may be done for lanes that nobody uses.
 *
 * expect: masked_store fp32_ops 5003..10007
 * expect: masked_store outside_bytes_stored 20012
 * expect: masked fp64_ops 5003..10007
 * expect: masked outside_bytes_stored 40024
 * expect: clip outside_bytes_loaded 40028
 * expect: clip outside_bytes_stored 20012
 * expect: filter outside_bytes_loaded 40028
 * expect: filter outside_bytes_stored 20012
 * expect: sum_of_some fp64_ops 5003..10800
 */

#include "kernels.h"

#define N 10007

static ALIGNED float from32[N], to32[N];
static ALIGNED double from64[N], to64[N];
static ALIGNED int flags[N];

KERNEL void masked_store(float *restrict to, const float *restrict from, int n)
{
	for (int i = 0; i < n; i++)
		if (from[i] > 0)
			to[i] = from[i] * 3;
}

KERNEL void masked(
	double *restrict to, const double *restrict from, const int *restrict flag, int n)
{
	for (int i = 0; i < n; i++)
		if (flag[i] & 1)
			to[i] = from[i] * from[i];
}

KERNEL void clip(float *values, float limit, int n)
{
	for (int i = 0; i < n; i++)
		if (values[i] > limit)
			values[i] = limit;
}

/* Nothing makes a mask of this one: where a value goes depends on all before it. */
KERNEL int filter(float *restrict to, const float *restrict from, int n)
{
	int kept = 0;
	for (int i = 0; i < n; i++) {
		const float value = from[i];
		if (value > 0)
			to[kept++] = value;
	}
	return kept;
}

#pragma clang fp reassociate(on)
KERNEL double sum_of_some(const double *from, const int *flag, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		if (flag[i] & 1)
			sum += from[i];
	return sum;
}

static double run_masked_store(void)
{
	masked_store(to32, from32, N);
	return to32[4];
}

static double run_masked(void)
{
	masked(to64, from64, flags, N);
	return to64[4];
}

/* What was above one limit is above the next, so nothing need be brought back between rounds. */
static double run_clip(void)
{
	static float limit = 1, values[N];
	if (limit == 1)
		memcpy(values, from32, sizeof(values));
	limit *= 0.99999f;
	clip(values, limit, N);
	return values[4];
}

static double run_filter(void)
{
	return filter(to32, from32, N) + to32[17];
}

static double run_sum_of_some(void)
{
	return sum_of_some(from64, flags, N);
}

int main(int argc, char **argv)
{
	static const struct kernel kernels[] = {
		{"masked_store", run_masked_store},
		{"masked", run_masked},
		{"clip", run_clip},
		{"filter", run_filter},
		{"sum_of_some", run_sum_of_some},
	};
	/* 5,003 of 10,007, without a pattern that a branch predictor would learn */
	unsigned random = 1;
	for (int i = 0, left = 5003; i < N; i++) {
		random = random * 1103515245u + 12345u;
		flags[i] = (int)((random >> 16) % (unsigned)(N - i)) < left;
		left -= flags[i];
		from32[i] = (float)(flags[i] ? 1 + i % 7 : -(i % 7));
		from64[i] = i % 19;
	}
	return RUN_KERNELS(kernels, argc, argv);
}
