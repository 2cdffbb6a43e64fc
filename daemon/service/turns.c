/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Two buckets of a minute stand for "the last minute": what is asked for is the longest of both.
 */
#include "daemon/service/turns.h"

#include <stdbool.h>

static uint64_t longer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void turns_add(struct turns *t, uint64_t took_ns, uint64_t now_ns)
{
	if (now_ns - t->minute_began_ns >= TURNS_MINUTE_NS) {
		bool next = now_ns - t->minute_began_ns < 2 * TURNS_MINUTE_NS;
		t->minute_ns[1] = next ? t->minute_ns[0] : 0;
		t->minute_ns[0] = 0;
		t->minute_began_ns = now_ns;
	}
	t->n_turns++;
	t->n_long += took_ns > TURN_NS_MAX;
	t->longest_ns = longer(t->longest_ns, took_ns);
	t->minute_ns[0] = longer(t->minute_ns[0], took_ns);
}

uint64_t turns_lately_ns(const struct turns *t)
{
	return longer(t->minute_ns[0], t->minute_ns[1]);
}
