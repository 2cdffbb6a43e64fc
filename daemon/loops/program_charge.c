/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What a program holds of the memory that its user and all programs may. */

#include "daemon/loops/program_private.h"

int program_charge(struct program *p, size_t n)
{
	for (struct budget *b = &p->budget; b; b = b->above)
		if (n > b->max || b->used > b->max - n)
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
