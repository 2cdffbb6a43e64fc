/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * An indirect function whose resolver calls others, here and in another module. In a static program
 * it runs before there is thread-local storage, so that nothing it calls may be counted; what it
 * chooses is counted, and who else calls the former calls what is not seen.
 *
 * expect: plain_sum fp64_ops 1000
 * expect: twice fp64_ops 1000
 * expect: twice external_calls 1
 * expect: is_wanted entries 0
 * expect: n_set_bits iterations 0
 * expect: look_elsewhere entries 0
 */

#include "kernels.h"

#define N 1000

/* In resolver_other.c, and annotated there */
int look_elsewhere(int number);

static volatile unsigned wanted = 0x2a;

/* Called by nobody else, and by counted code too */
KERNEL int n_set_bits(unsigned word)
{
	int n = 0;
	for (int i = 0; i < 32; i++)
		n += word >> i & 1;
	return n;
}

static KERNEL int is_wanted(unsigned word)
{
	return n_set_bits(word) == 3 && look_elsewhere(1) != 7;
}

static KERNEL double plain_sum(const double *a, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += a[i];
	return sum;
}

static KERNEL double other_sum(const double *a, int n)
{
	return n ? a[0] : 0;
}

typedef double sum_function(const double *a, int n);

static sum_function *choose_sum(void)
{
	return is_wanted(wanted) ? plain_sum : other_sum;
}

double sum(const double *a, int n) __attribute__((ifunc("choose_sum")));

KERNEL double twice(double *a, int n)
{
	for (int i = 0; i < n; i++)
		a[i] = a[i] * 2;
	return a[n_set_bits((unsigned)n)];
}

int main(void)
{
	static double a[N];
	for (int i = 0; i < N; i++)
		a[i] = i;
	printf("%g\n", sum(a, N));
	printf("%g\n", twice(a, N));
	return 0;
}
