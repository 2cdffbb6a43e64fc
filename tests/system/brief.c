/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A process that is gone long before the next drain: it spends 5 ms of CPU, whatever it is told. */

#include <time.h>

#define SPIN_NS 5000000

int main(void)
{
	struct timespec t;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while (t.tv_sec == 0 && t.tv_nsec < SPIN_NS);
	return 0;
}
