/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Cycles that are no natural loops, since they are entered in two places, and loops that go on from
 * two places: a block that all paths through such a cycle or loop pass need not run once in it.
 *
 * expect: in_second_entry fp64_ops 225
 * expect: short_sums fp64_ops 60
 * expect: device fp64_ops 101
 * expect: device_of_loops fp64_ops 707
 * expect: two_latches fp64_ops 120
 * expect: crossing fp64_ops 300
 */

#include "kernels.h"

#define N 128
#define AS_IT_IS _Pragma("clang loop vectorize(disable) unroll(disable)")

static double numbers[N];
static int ways[N];

/* The inner loop begins once in each run of `second`, which is three times in each iteration. */
KERNEL double in_second_entry(double *a, const int *way, int n, int m, int length)
{
	for (int o = 0; o < n; o++) {
		for (int i = 0; i < m; i++) {
			int r = 0;
			if (way[i])
				goto second;
		first:
			a[N - 1 - r] = r;
			r++;
		second:;
			int k = 0;
			AS_IT_IS
			do {
				a[k] *= 0.5;
			} while (++k < length);
			r++;
			if (r < 5)
				goto first;
		}
	}
	return a[0];
}

/* The same in an outermost loop, with a branch, which may become a mask */
KERNEL double short_sums(double *a, const int *way, int n)
{
	for (int i = 0; i < 4; i++) {
		int r = 0;
		if (way[i])
			goto second;
	first:
		a[r] = i;
		r++;
	second:
		for (int k = 0; k < 5; k++)
			if (way[k] || n > 0)
				a[k] += 1;
		r++;
		if (r < 5)
			goto first;
	}
	return a[2];
}

/* Duff's: enters its loop in the middle. */
KERNEL double device(const double *a, int n)
{
	double sum = 0;
	int rounds = (n + 3) / 4;
	switch (n % 4) {
	case 0:
		do {
			sum += *a++;
			__attribute__((fallthrough));
		case 3:
			sum += *a++;
			__attribute__((fallthrough));
		case 2:
			sum += *a++;
			__attribute__((fallthrough));
		case 1:
			sum += *a++;
		} while (--rounds > 0);
	}
	return sum;
}

/* The same with a loop in each part, called for seven lengths */
KERNEL double device_of_loops(double *a, const int *way, int n)
{
	double sum = 0;
	int rounds = (n + 1) / 2;
	switch (n & 1) {
	case 0:
		do {
			AS_IT_IS
			for (int k = 0; k < way[0] + 7; k++)
				sum += a[k];
			__attribute__((fallthrough));
		case 1:
			AS_IT_IS
			for (int k = 0; k < way[0] + 7; k++)
				sum *= a[k];
		} while (--rounds > 0);
	}
	return sum;
}

/* The second part is passed on each way out, and in few iterations. */
KERNEL double two_latches(double *a, const int *way, int n)
{
	int i = 0;
	for (;;) {
		a[i] += 1.5;
		if (way[i++] == 0)
			continue;
		a[0] *= 0.75;
		if (i >= n)
			return a[0];
	}
}

/* Two cycles that share blocks */
KERNEL double crossing(double *a, const int *way, int n)
{
	int i = 0, left = n;
	if (way[1])
		goto middle;
top:
	a[0] += 1.5;
	if (--left <= 0)
		return a[0];
	i = (i + 1) % N;
middle:
	a[1] += 0.5;
	if (--left <= 0)
		return a[1];
	if (way[i])
		goto top;
	a[2] *= 0.5;
	if (--left <= 0)
		return a[2];
	i = (i + 3) % N;
	if (way[i])
		goto middle;
	goto top;
}

int main(void)
{
	for (int i = 0; i < N; i++) {
		numbers[i] = 1 + i % 3 * 0.125;
		ways[i] = i % 5 == 4 || i % 3 == 1;
	}
	ways[0] = 0;
	printf("%g\n", in_second_entry(numbers, ways, 3, 5, 5));
	printf("%g\n", short_sums(numbers, ways, 1));
	printf("%g\n", device(numbers, 101));
	printf("%g\n", device_of_loops(numbers, ways, 101));
	for (int i = 0; i < N; i++)
		ways[i] = i % 5 == 4 || i >= 114;
	printf("%g\n", two_latches(numbers, ways, 100));
	printf("%g\n", crossing(numbers, ways, 300));
	return 0;
}
