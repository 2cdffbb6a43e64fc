/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What another compiler built. */
double of_stranger(double x)
{
	return x + 1;
}
