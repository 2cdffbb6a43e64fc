/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program for a board that marks a region and counts nothing else.
 *
 *      regions N     enters "solve" N times, with a million turns of four instructions in each, and
 *                    rests 50 ms between two
 */
#include <stdlib.h>
#include <unistd.h>

#include "runtime/mperf.h"

static inline void turns(unsigned long n)
{
#if defined(__riscv)
	__asm__ volatile("1: addi %0, %0, -1\n\tnop\n\tnop\n\tbnez %0, 1b" : "+r"(n));
#elif defined(__aarch64__)
	__asm__ volatile("1: sub %0, %0, #1\n\tnop\n\tnop\n\tcbnz %0, 1b" : "+r"(n));
#else
	while (--n)
		__asm__ volatile("");
#endif
}

int main(int argc, char **argv)
{
	for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--) {
		MPERF_REGION_BEGIN("solve");
		turns(1000000);
		MPERF_REGION_END("solve");
		usleep(50000);
	}
	return 0;
}
