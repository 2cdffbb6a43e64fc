/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Calls of what is not counted, and copies: with callees_other.c, which is counted too, and
 * callees_stranger.c, which another compiler built.
 *
 * expect: sort_of entries 1
 * expect: copies entries 1
 * expect: copies bytes_loaded 171600
 * expect: copies bytes_stored 580400
 */
#include <stdlib.h>
#include <string.h>

double of_counted(double x);
double of_stranger(double x);

char from[4096], to[4096];
volatile size_t some = 1700;
volatile int use_sort;

static int compare(const void *a, const void *b)
{
	return *(const char *)a - *(const char *)b;
}

__attribute__((noinline)) double sort_of(int n)
{
	double s = 0;
	for (int i = 0; i < n; i++) {
		s += rand() & 1;
		if (i % 10 == 0)
			s += of_stranger(s);
		s = of_counted(s);
	}
	if (use_sort)
		qsort(to, sizeof(to), 1, compare); /* outside of all loops */
	return s;
}

/* Of these, the one of 8 bytes is a load and a store; the others are the C library's. */
__attribute__((noinline)) void copies(int n)
{
	for (int i = 0; i < n; i++) {
		size_t length = some; /* a volatile load: 8 bytes */
		memcpy(to, from, length);
		__asm__ volatile("" ::: "memory");
		memset(to, i, sizeof(to));
		__asm__ volatile("" ::: "memory");
		memcpy(to + 64, from + 64, 8);
		__asm__ volatile("" ::: "memory");
	}
}

int main(void)
{
	double s = sort_of(1000);
	copies(100);
	return s < 0;
}
