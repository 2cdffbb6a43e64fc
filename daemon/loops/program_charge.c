/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Memory that a program holds, charged to the budgets of its user and of all programs. */

#include "daemon/loops/program_private.h"

static bool has_room(const struct budget *b, uint64_t n)
{
	return n <= b->max && b->used <= b->max - n;
}

/* The rule for all that users hold (control/user.c): a single user has half, the next half of the
 * remainder. */
static bool leaves_enough(const struct budget *b, uint64_t n)
{
	return !b->leaves_half || has_room(b->above, b->used + n + n);
}

int program_charge(struct program *p, size_t n)
{
	for (const struct budget *b = &p->budget; b; b = b->above)
		if (!has_room(b, n) || !leaves_enough(b, n))
			return b == &p->budget ? FEED_MEMORY : FEED_MEMORY_ALL;
	for (struct budget *b = &p->budget; b; b = b->above)
		b->used += n;
	return 0;
}

void program_discharge(struct program *p, size_t n)
{
	for (struct budget *b = &p->budget; b; b = b->above)
		b->used -= n;
}
