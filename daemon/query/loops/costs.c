/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What an update of a counter and a look at the clock take here. Updates of one loop go to several
 * counters, and the processor does not wait for one before it begins the next, so a row of words is
 * updated in turn. The shortest of some runs counts: the others were disturbed.
 */
#include <math.h>
#include <time.h>

#include "daemon/query/loops/roofline.h"
#include "proto/base/clock.h"

#define RUNS 8
#define UPDATES 16384
#define LOOKS 512
#define WORDS 8 /* a cache line, as neighbours in a thread's block are */

static double updates_ns(volatile uint64_t *word)
{
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
	for (unsigned i = 0; i < UPDATES; i += WORDS)
		for (unsigned k = 0; k < WORDS; k++)
			word[k] += 1;
	return (double)(clock_ns(CLOCK_MONOTONIC) - begin_ns);
}

static double looks_ns(void)
{
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), now_ns = begin_ns;
	for (unsigned i = 0; i < LOOKS; i++)
		now_ns = clock_ns(CLOCK_MONOTONIC);
	return (double)(now_ns - begin_ns);
}

struct roof_costs roof_costs_measure(void)
{
	uint64_t words[WORDS] = {0};
	double updates = INFINITY, looks = INFINITY;
	for (unsigned i = 0; i < RUNS; i++) {
		updates = fmin(updates, updates_ns(words));
		looks = fmin(looks, looks_ns());
	}
	return (struct roof_costs){updates / UPDATES, looks / LOOKS};
}
