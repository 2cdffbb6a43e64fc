/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One half of a program whose other half is inlined at link time.
 * fp64_ops of both: 30000
 */

#include <stdio.h>

double scale_and_add(double a, double b);

static double a[10000];

int main(void)
{
	for (int i = 0; i < 10000; i++)
		a[i] = scale_and_add(a[i], i) - 1;
	printf("%g\n", a[9999]);
	return 0;
}
