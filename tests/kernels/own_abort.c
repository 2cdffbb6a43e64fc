/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program with an abort of its own in another file, which jumps out, as test frameworks have it:
 * what comes after a call that it leaves is entered only as often as that call returns.
 *
 * expect: behind_abort fp64_ops 6
 * expect: check entries 10
 */

#include <setjmp.h>

#include "kernels.h"

extern jmp_buf out;

static KERNEL void check(int i)
{
	if (i % 5 < 2)
		abort();
}

static KERNEL double behind_abort(double x)
{
	return x * 1.5;
}

KERNEL double checked(int i, double x)
{
	check(i);
	return behind_abort(x);
}

static double run_checked(void)
{
	volatile double x = 1;
	for (volatile int i = 0; i < 10; i++) {
		if (setjmp(out) == 0)
			x = checked(i, x);
	}
	return x;
}

int main(int argc, char **argv)
{
	static const struct kernel kernels[] = {{"checked", run_checked}};
	return RUN_KERNELS(kernels, argc, argv);
}
