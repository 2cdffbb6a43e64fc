/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/session/copies.h"

#include "daemon/sampler/sampler.h"

/* Part of the stacks (1 / N) that is deeper than its copy when copies grow: 99 % are to be whole. */
#define DEEP_PART 100u
/* Deep stacks below which chance decides, and the time in which they are counted: 200 samples of a busy hart. */
#define DEEP_MIN 3u
#define MORE_NS UINT64_C(2000000000)
/* Time without a deep stack after which copies shrink: longer than most commands of a build take. */
#define LESS_NS UINT64_C(60000000000)

static uint32_t at_most(uint32_t bytes)
{
	return bytes < SAMPLER_STACK_BYTES_MAX ? bytes : SAMPLER_STACK_BYTES_MAX;
}

static bool is_too_small(const struct copy_depths *sum)
{
	return sum->n_deep >= DEEP_MIN && sum->n_deep * DEEP_PART > sum->n;
}

static void begin_less(struct copies *c, uint64_t now_ns)
{
	c->deepest = 0;
	c->less_ns = now_ns + LESS_NS;
}

uint32_t copies_next(struct copies *c, const struct copy_depths *found, uint32_t now_bytes,
	uint32_t least_bytes, uint64_t now_ns)
{
	uint32_t bytes = now_bytes;

	c->sum.n += found->n;
	c->sum.n_deep += found->n_deep;
	c->deepest = found->n_deep > 0             ? UINT64_MAX
		     : found->deepest > c->deepest ? found->deepest
						   : c->deepest;
	if (now_ns >= c->more_ns) {
		bytes = is_too_small(&c->sum) ? at_most(2 * now_bytes) : now_bytes;
		c->sum = (struct copy_depths){0};
		c->more_ns = now_ns + MORE_NS;
	}
	if (bytes > now_bytes || c->less_ns == 0) {
		begin_less(c, now_ns);
	} else if (now_ns >= c->less_ns) {
		const uint32_t half = (now_bytes + 8) / 2 & ~UINT32_C(7);
		if (now_bytes > least_bytes && c->deepest < half / 4 * 3)
			bytes = half > least_bytes ? half : least_bytes;
		begin_less(c, now_ns);
	}
	return bytes;
}
