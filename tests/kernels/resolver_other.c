/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a resolver of another module calls; see resolver.c.
 */

#define NOT_COUNTED __attribute__((noinline, annotate("no_mperf")))

static volatile int numbers[] = {2, 3, 5, 7};

int look_elsewhere(int number);

NOT_COUNTED int look_elsewhere(int number)
{
	int sum = 0;
	for (int i = 0; i <= number; i++)
		sum += numbers[i];
	return sum;
}
