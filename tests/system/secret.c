/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program whose names are another user's secret: secret MS [OTHER] runs for that many
 * milliseconds of CPU time. With OTHER it first replaces itself by a link to that file, as an
 * attacker does to make the daemon open it.
 */

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static __attribute__((noinline)) void secret_recipe(unsigned long ms)
{
	struct timespec now;

	do {
		for (int i = 0; i < 100000; i++)
			sink += (unsigned long)i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while ((unsigned long)now.tv_sec * 1000 + (unsigned long)now.tv_nsec / 1000000 < ms);
}

int main(int argc, char *argv[])
{
	if (argc > 2 && (unlink(argv[0]) < 0 || symlink(argv[2], argv[0]) < 0))
		return 1;
	secret_recipe(argc > 1 ? strtoul(argv[1], NULL, 10) : 100);
	return 0;
}
