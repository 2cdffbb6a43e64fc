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
#include "turns.h"

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
