/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A process that counts, forks while it has counted something, and counts on in both: each tells
 * what it did itself.
 *
 * expect: before_and_after fp64_ops 30000
 * expect: in_child fp64_ops 5000
 */

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels.h"

enum { N = 10000 };

static double a[N];

KERNEL double before_and_after(double *values, int n)
{
	for (int i = 0; i < n; i++)
		values[i] = values[i] + 1;
	return values[n - 1];
}

KERNEL double in_child(double *values, int n)
{
	for (int i = 0; i < n; i++)
		values[i] = values[i] * 2;
	return values[n - 1];
}

int main(void)
{
	before_and_after(a, N);
	const pid_t child = fork();
	if (child < 0)
		return 1;
	if (child == 0)
		exit(in_child(a, N / 2) == 2 ? 0 : 1);
	before_and_after(a, N);
	const double last = before_and_after(a, N);
	int status;
	if (waitpid(child, &status, 0) != child || status != 0)
		return 1;
	printf("%g\n", last);
	return 0;
}
