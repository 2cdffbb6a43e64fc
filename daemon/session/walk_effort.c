/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/session/walk_effort.h"

#include "daemon/pmu/sampler/effort.h"
#include "proto/clock.h"

int walk_set_effort(struct walk *w, const struct sampler_effort *effort)
{
	if (effort_is(w->sampler, effort))
		return 0;
	/* records of events that are closed now could not be read later */
	int r = walk_catch_up(w, clock_ns(CLOCK_MONOTONIC));
	return r < 0 ? r : sampler_set_effort(w->sampler, effort);
}
