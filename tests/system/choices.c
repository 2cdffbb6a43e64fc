/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program in two bodies, for tests of what chooses between them.
 *
 *   choices runs          the same in each run
 *   choices differs       enters one function more often where it counts
 *   choices goes-on       on and on until standard input ends
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mperf.h"

#define N 1000
#define EACH __asm__ volatile("" : : : "memory")

static double values[N];

/* Of external linkage, so that how often they are entered is not known from this file alone. */
double summed(const double *v, int n);
double multiplied(const double *v, int n);

__attribute__((noinline)) double summed(const double *v, int n)
{
	double sum = 0;
	EACH;
	for (int i = 0; i < n; i++)
		sum += v[i];
	return sum;
}

__attribute__((noinline)) double multiplied(const double *v, int n)
{
	double product = 1;
	EACH;
	for (int i = 0; i < n; i++)
		product *= 1 + v[i];
	return product;
}

static int stdin_ended(void)
{
	struct pollfd p = {.fd = 0, .events = POLLIN};
	return poll(&p, 1, 1) != 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "runs";
	const char *sample = getenv("MPERF_SAMPLE");
	int differs = strcmp(what, "differs") == 0 && sample && strcmp(sample, "0") != 0;
	double sum = 0;
	if (strcmp(what, "goes-on") == 0) {
		puts("ready");
		fflush(stdout);
		while (!stdin_ended())
			sum += summed(values, N) + multiplied(values, N);
		return sum < 0;
	}
	for (int i = 0; i < 500; i++)
		sum += summed(values, N);
	MPERF_REGION_BEGIN("few");
	for (int i = 0; i < (differs ? 12 : 10); i++)
		sum += multiplied(values, N);
	MPERF_REGION_END("few");
	return sum < 0;
}
