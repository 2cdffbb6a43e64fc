/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A program that has its text in anonymous memory, as for huge pages
 *
 *      remapped same MS    the pages of moved() and moved_too() are copied, replaced in place, and written
 *                          back; then both run
 *      remapped other MS   other code is written there: that of elsewhere(), which runs at the place of moved()
 *
 * Says "x" once that is done.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TEXT_BYTES 65536 /* a page, also where these are large */
#define IN(name) __attribute__((noinline, section(".text.hot." name)))

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* They refer to nothing outside, so that they run anywhere. */
IN("b") __attribute__((aligned(TEXT_BYTES))) void moved(unsigned long n)
{
	for (volatile unsigned long i = 0; i < n; i++)
		;
}

IN("b") void moved_too(unsigned long n)
{
	for (volatile unsigned long i = n; i > 0; i--)
		;
}

IN("c") __attribute__((aligned(TEXT_BYTES))) void elsewhere(unsigned long n)
{
	for (volatile unsigned long i = 0, k = 1; i < n; i++)
		k = k * 3 + i;
}

IN("d") __attribute__((aligned(TEXT_BYTES))) void behind(void)
{
}

/* Not known where it is called. */
static void (*volatile first)(unsigned long) = moved;
static void (*volatile second)(unsigned long) = moved_too;

int main(int argc, char *argv[])
{
	static char copy[TEXT_BYTES];
	char *const at = (char *)(uintptr_t)moved;
	const int other = argc > 1 && !strcmp(argv[1], "other");

	memcpy(copy, other ? (char *)(uintptr_t)elsewhere : at, TEXT_BYTES);
	if (mmap(at, TEXT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		    -1, 0) != at)
		return 1;
	memcpy(at, copy, TEXT_BYTES);
	__builtin___clear_cache(at, at + TEXT_BYTES);
	if (mprotect(at, TEXT_BYTES, PROT_READ | PROT_EXEC) < 0)
		return 2;
	if (write(STDOUT_FILENO, "x", 1) != 1)
		return 3;
	const double end = now() + (argc > 2 ? atof(argv[2]) : 500) * 1e-3;
	while (now() < end) {
		first(100000);
		if (!other)
			second(100000);
	}
	return 0;
}
