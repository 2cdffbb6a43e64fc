/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A counted function of another compilation unit. */
double of_counted(double x)
{
	for (int i = 0; i < 3; i++)
		x = x * 0.5 + i;
	return x;
}
