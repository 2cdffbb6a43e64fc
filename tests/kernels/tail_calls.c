/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Calls that must be tail calls: nothing may stand between them and the return. What strlen reads is
 * not known before it, so it counts as a call of what is not seen.
 *
 * expect: length_of external_calls 1
 * expect: copy_to outside_bytes_loaded 600
 * expect: copy_to outside_bytes_stored 600
 * expect: fill outside_bytes_stored 500
 * expect: halve_and_add fp64_ops 200
 * expect: add fp64_ops 200
 * expect: even fp64_ops 51
 * expect: odd fp64_ops 50
 */

#include "kernels.h"

#define N 200
#define TAIL __attribute__((musttail))

static char text[1000], source[600];
static double numbers[N];

KERNEL size_t length_of(const char *t)
{
	TAIL return strlen(t);
}

KERNEL void *copy_to(void *to, const void *from, size_t n)
{
	TAIL return memcpy(to, from, n);
}

KERNEL void *fill(void *to, int byte, size_t n)
{
	TAIL return memset(to, byte, n);
}

KERNEL double add(double *a, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += a[i];
	return sum;
}

/* A timed loop before the call */
KERNEL double halve_and_add(double *a, int n)
{
	for (int i = 0; i < n; i++)
		a[i] *= 0.5;
	if (n > 5)
		TAIL return add(a, n);
	return 0;
}

KERNEL double odd(double *a, int n);

KERNEL double even(double *a, int n)
{
	a[0] += 1;
	if (n == 0)
		return a[0];
	TAIL return odd(a, n - 1);
}

KERNEL double odd(double *a, int n)
{
	a[1] += 1.5;
	if (n == 0)
		return a[1];
	TAIL return even(a, n - 1);
}

int main(void)
{
	fill(text, 'a', 500);
	copy_to(text + 200, source, 600);
	for (int i = 0; i < N; i++)
		numbers[i] = i;
	printf("%zu %g %g\n", length_of(text), halve_and_add(numbers, N), even(numbers, 100));
	return 0;
}
