/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A kernel in a library, which opener.c opens.
 *
 * expect: axpy fp64_ops 40000
 * expect: axpy outside_bytes_loaded 320000
 * expect: axpy outside_bytes_stored 160000
 */

void axpy(double *to, const double *from, double by, int n);

void axpy(double *to, const double *from, double by, int n)
{
	for (int i = 0; i < n; i++)
		to[i] += by * from[i];
}
