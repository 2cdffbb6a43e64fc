/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Two buckets of a minute stand for "the last minute": what is asked for is the longest of both.
 */
#include "daemon/budget/loop_latency.h"

#include <stdbool.h>
#include <sys/resource.h>

static uint64_t longer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Source: man 2 getrusage, ru_nvcsw. */
static uint64_t n_sleeps(void)
{
	struct rusage used = {.ru_nvcsw = 0};
	(void)getrusage(RUSAGE_THREAD, &used);
	return (uint64_t)used.ru_nvcsw;
}

struct slice slice_of_waits(void)
{
	const uint64_t ran_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return (struct slice){ran_ns + SLICE_NS, clock_ns(CLOCK_MONOTONIC), ran_ns, n_sleeps()};
}

bool slice_of_waits_is_over(const struct slice *s)
{
	return slice_is_over(s->until_ns) ||
	       clock_ns(CLOCK_MONOTONIC) - s->began_ns >= SLICE_WAITS_NS;
}

uint64_t slice_waited_ns(const struct slice *s)
{
	const uint64_t took_ns = clock_ns(CLOCK_MONOTONIC) - s->began_ns;
	const uint64_t ran_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - s->ran_ns;
	return n_sleeps() > s->n_sleeps && took_ns > ran_ns ? took_ns - ran_ns : 0;
}

void loop_latency_add(struct loop_latency *t, uint64_t took_ns, uint64_t now_ns)
{
	if (now_ns - t->minute_began_ns >= LOOP_MINUTE_NS) {
		bool next = now_ns - t->minute_began_ns < 2 * LOOP_MINUTE_NS;
		t->minute_ns[1] = next ? t->minute_ns[0] : 0;
		t->minute_ns[0] = 0;
		t->minute_began_ns = now_ns;
	}
	t->n_turns++;
	t->n_long += took_ns > TURN_NS_MAX;
	t->longest_ns = longer(t->longest_ns, took_ns);
	t->minute_ns[0] = longer(t->minute_ns[0], took_ns);
}

uint64_t loop_latency_lately_ns(const struct loop_latency *t)
{
	return longer(t->minute_ns[0], t->minute_ns[1]);
}
