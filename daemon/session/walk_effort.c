/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/session/walk_effort.h"

#include "daemon/sampler/effort.h"
#include "proto/base/clock.h"

int walk_set_effort(struct walk *w, const struct sampler_effort *effort)
{
	if (effort_is(w->sampler, effort))
		return 0;
	/* as few as possible remain for the events that are closed now */
	int r = walk_catch_up(w, clock_ns(CLOCK_MONOTONIC));
	return r < 0 ? r : sampler_set_effort(w->sampler, effort);
}

int walk_set_rate(struct walk *w, uint32_t hz)
{
	if (hz == w->sampler->options.hz)
		return 0;
	/* what is in the rings was sampled at the rate, and has the weight, of before */
	int r = walk_catch_up(w, clock_ns(CLOCK_MONOTONIC));
	return r < 0 ? r : sampler_set_rate(w->sampler, hz);
}
