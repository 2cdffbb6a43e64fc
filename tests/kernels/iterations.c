/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loops of 1,000 iterations in the source, whatever a compiler makes of them. A test looks at the
 * iterations of each function's loop; those that it adds here are of copies of one loop.
 */

#include "kernels.h"

#define N 1000

static double a[N], b[N];
static int numbers[N];

KERNEL void scale(double *restrict to, const double *restrict from, double by, int n)
{
	for (int i = 0; i < n; i++)
		to[i] += from[i] * by;
}

KERNEL double sum_in_order(const double *from, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += from[i];
	return sum;
}

KERNEL double sum_constant(const double *from)
{
	double sum = 0;
	for (int i = 0; i < N; i++)
		sum += from[i];
	return sum;
}

/* Unrolled by hand, too: it is the source that counts. */
KERNEL double pairs(const double *from, int n)
{
	double sum = 0;
	for (int i = 0; i < 2 * n; i += 2)
		sum = sum * 0.5 + from[i / 2] + (i + 1);
	return sum;
}

KERNEL unsigned recurrence(unsigned x, int n)
{
	for (int i = 0; i < n; i++)
		x = x * 3 + 1 + (x >> 3);
	return x;
}

KERNEL double by_pointer(const double *from, const double *end)
{
	double sum = 0;
	while (from != end)
		sum += *from++;
	return sum;
}

KERNEL int backwards(const int *from, int n)
{
	int last = 0;
	for (int i = n; i-- > 0;)
		last = last / 2 + from[i];
	return last;
}

KERNEL int search(const int *from, int n, int wanted)
{
	int i = 0;
	for (; i < n; i++) {
		if (from[i] == wanted)
			break;
	}
	return i;
}

static double run_scale(void)
{
	scale(a, b, 2, N);
	return a[1];
}

static double run_sum_in_order(void)
{
	return sum_in_order(b, N);
}

static double run_sum_constant(void)
{
	return sum_constant(b);
}

static double run_pairs(void)
{
	return pairs(b, N);
}

static double run_recurrence(void)
{
	return recurrence(1, N);
}

static double run_by_pointer(void)
{
	return by_pointer(b, b + N);
}

static double run_backwards(void)
{
	return backwards(numbers, N);
}

static double run_search(void)
{
	return search(numbers, N, -1);
}

int main(int argc, char **argv)
{
	static const struct kernel kernels[] = {
		{"scale", run_scale},
		{"sum_in_order", run_sum_in_order},
		{"sum_constant", run_sum_constant},
		{"pairs", run_pairs},
		{"recurrence", run_recurrence},
		{"by_pointer", run_by_pointer},
		{"backwards", run_backwards},
		{"search", run_search},
	};
	for (int i = 0; i < N; i++) {
		b[i] = i % 7;
		numbers[i] = i % 5;
	}
	return RUN_KERNELS(kernels, argc, argv);
}
