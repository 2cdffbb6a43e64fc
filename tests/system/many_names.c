/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program of 8,192 functions, which take the parser some time to read: it works for argv[1] ms.
 */
#include <stdlib.h>
#include <time.h>

#define ONE(n)                                                                                     \
	int n(int x);                                                                              \
	int n(int x)                                                                               \
	{                                                                                          \
		return x + 1;                                                                      \
	}
#define FOUR(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3)
#define SIXTEEN(n) FOUR(n##0) FOUR(n##1) FOUR(n##2) FOUR(n##3)
#define MANY(n) SIXTEEN(n##0) SIXTEEN(n##1) SIXTEEN(n##2) SIXTEEN(n##3)
#define MORE(n) MANY(n##0) MANY(n##1) MANY(n##2) MANY(n##3)
#define MOST(n) MORE(n##0) MORE(n##1) MORE(n##2) MORE(n##3)

MOST(function_of_a_long_name_0)
MOST(function_of_a_long_name_1)
MOST(function_of_a_long_name_2)
MOST(function_of_a_long_name_3)
MOST(function_of_a_long_name_4)
MOST(function_of_a_long_name_5)
MOST(function_of_a_long_name_6)
MOST(function_of_a_long_name_7)

int main(int argc, char **argv)
{
	const long ms = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
	struct timespec t;
	int x = 0;
	do {
		for (int i = 0; i < 1000; i++)
			x = function_of_a_long_name_000000(x);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
	return x == 0;
}
