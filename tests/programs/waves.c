/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A loop whose work is done by the mathematical library. Its own: four operations a round.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000;
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += exp(-i * 1e-3) * sin(i * 1e-2);
	printf("%.9f\n", sum);
	return 0;
}
