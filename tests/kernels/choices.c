/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Functions that are entered often, seldom, and with arguments of all kinds, for the
 * mode that chooses at each entry whether it counts.
 *
 * expect: often entries 1000
 * expect: often fp64_ops 64000
 * expect: seldom entries 3
 * expect: seldom fp64_ops 300
 * expect: many entries 50
 * expect: many fp64_ops 250
 * expect: by_value entries 20
 * expect: by_value fp64_ops 320
 * expect: in_two entries 40
 * expect: in_two fp64_ops 640
 */

#include <stdarg.h>
#include <stdio.h>

#define N 64

/* So that no call is left out because another gave the same. */
#define EACH __asm__ volatile("" : : : "memory")

static double values[N];

struct large {
	double value[8];
};

__attribute__((noinline)) double often(const double *v)
{
	double sum = 0;
	EACH;
	for (int i = 0; i < N; i++)
		sum += v[i];
	return sum;
}

__attribute__((noinline)) double seldom(const double *v, int n)
{
	double sum = 0;
	EACH;
	for (int i = 0; i < n; i++)
		sum += v[i % N];
	return sum;
}

__attribute__((noinline)) double many(int n, ...)
{
	va_list list;
	double sum = 0;
	EACH;
	va_start(list, n);
	for (int i = 0; i < n; i++)
		sum += va_arg(list, double);
	va_end(list);
	return sum;
}

__attribute__((noinline)) struct large by_value(struct large a, double by)
{
	EACH;
	for (int i = 0; i < 8; i++)
		a.value[i] = a.value[i] * by + 1;
	return a;
}

/* A local array that both bodies use, whose length is known when it runs. */
__attribute__((noinline)) double in_two(int n)
{
	double local[n];
	double sum = 0;
	for (int i = 0; i < n; i++)
		local[i] = i;
	__asm__ volatile("" : : "r"(local) : "memory");
	for (int i = 0; i < n; i++)
		sum += local[i];
	return sum;
}

int main(void)
{
	double sum = 0;
	for (int i = 0; i < N; i++)
		values[i] = i;
	for (int i = 0; i < 1000; i++)
		sum += often(values);
	for (int i = 0; i < 3; i++)
		sum += seldom(values, 100);
	for (int i = 0; i < 50; i++)
		sum += many(5, 1.0, 2.0, 3.0, 4.0, 5.0);
	struct large large = {{1}};
	for (int i = 0; i < 20; i++)
		large = by_value(large, 0.5);
	for (int i = 0; i < 40; i++)
		sum += in_two(16);
	printf("%g %g\n", sum, large.value[0]);
	return 0;
}
