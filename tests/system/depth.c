/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A program of known depth
 *
 *      depth N          N calls of descend() lie between main() and spin()
 *      depth N clock    spin() reads the clock, so that many samples fall into the vdso
 *
 * Built with -fomit-frame-pointer it has no frame pointers to follow: only call frame information
 * leads from spin() to _start(), over N + 3 frames of this file. One byte on standard output says
 * that the bottom is reached; then it spins until it is killed, or for a minute.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOT_INLINED __attribute__((noinline, noclone))
#ifdef __clang__
#undef NOT_INLINED
#define NOT_INLINED __attribute__((noinline))
#endif

static volatile unsigned long sink;
static volatile int done; /* never: but a compiler cannot know */

static NOT_INLINED void spin(int clock)
{
	struct timespec now;

	if (write(STDOUT_FILENO, "x", 1) != 1)
		_exit(1);
	while (!done) {
		if (clock)
			clock_gettime(CLOCK_MONOTONIC, &now);
		for (int i = 0; i < 100; i++)
			sink += (unsigned long)i;
	}
}

/* The array makes frames larger than a return address; what follows the call keeps it from being a
 * jump. */
static NOT_INLINED void descend(int depth, int clock)
{
	volatile char room[40];

	room[depth % 40] = (char)depth;
	if (depth > 1)
		descend(depth - 1, clock);
	else
		spin(clock);
	sink += (unsigned long)room[depth % 40];
}

int main(int argc, char *argv[])
{
	int depth = argc > 1 ? atoi(argv[1]) : 20;

	alarm(60);
	descend(depth > 0 ? depth : 1, argc > 2 && !strcmp(argv[2], "clock"));
	return 0;
}
