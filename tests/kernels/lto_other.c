/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The other half of lto_main.c.
 */

double scale_and_add(double a, double b);

double scale_and_add(double a, double b)
{
	return a * 3 + b;
}
