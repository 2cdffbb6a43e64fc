/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Sums of half precision, for targets that add such numbers: x86 with AVX512-FP16, RISC-V with Zfh
 * or Zvfh, Arm with fullfp16. Elsewhere compilers calculate in float, and that is what is counted.
 *
 * expect: sum16 fp16_ops 2000..2800
 * expect: sum16 outside_bytes_loaded 4000
 * expect: dot16 fp16_ops 4000..4800
 * expect: dot16 outside_bytes_loaded 8000
 * expect: scale16 fp16_ops 2000
 * expect: scale16 outside_bytes_stored 4000
 */

#include "kernels.h"

#define N 2000

static _Float16 a[N], b[N], c[N];

#pragma clang fp reassociate(on)
KERNEL _Float16 sum16(const _Float16 *from, int n)
{
	_Float16 sum = 0;
	for (int i = 0; i < n; i++)
		sum += from[i];
	return sum;
}

KERNEL _Float16 dot16(const _Float16 *from, const _Float16 *with, int n)
{
	_Float16 sum = 0;
	for (int i = 0; i < n; i++)
		sum += from[i] * with[i];
	return sum;
}

KERNEL void scale16(_Float16 *restrict to, const _Float16 *restrict from, _Float16 by, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = from[i] * by;
}

static double run_sum16(void)
{
	return (double)sum16(a, N);
}

static double run_dot16(void)
{
	return (double)dot16(a, b, N);
}

static double run_scale16(void)
{
	scale16(c, a, (_Float16)0.5f, N);
	return (double)c[N - 1];
}

int main(int argc, char **argv)
{
	static const struct kernel kernels[] = {
		{"sum16", run_sum16},
		{"dot16", run_dot16},
		{"scale16", run_scale16},
	};
	/* Sums stay below 2,048, up to which all whole numbers are exact. */
	for (int i = 0; i < N; i++) {
		a[i] = (_Float16)(float)(i % 2);
		b[i] = (_Float16)(float)(i % 3 % 2);
	}
	return RUN_KERNELS(kernels, argc, argv);
}
