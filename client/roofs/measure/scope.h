/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Roofs of some harts that run together: one, a cluster, all of a kind, all */

#include "client/roofs/measure/measure.h"
#include "proto/base/clock.h"

/* Number of repeats of all roofs, and of those in which another program took a hart. */
struct tally {
	size_t n_repeats, n_disturbed;
};

struct scope {
	enum roof_scope scope;
	const char *kind;       /* id, or "all" */
	const uint32_t *number; /* of the harts */
	size_t n_harts;
	const struct probe *probe;  /* by kernel: what these harts can run */
	uint64_t from_ns, until_ns; /* CLOCK_MONOTONIC */
	bool quick;
	const struct measure_options *options;
	struct tally *tally;       /* of all scopes; borrowed */
	double done_from, done_to; /* this scope's part of the progress */
};

/* Has this share of its time passed? Then setting up ends, so that time is left for repeats. */
static inline bool scope_past(const struct scope *s, double share)
{
	return (double)(clock_ns(CLOCK_MONOTONIC) - s->from_ns) >
	       share * (double)(s->until_ns - s->from_ns);
}

/* Measure its roofs and append them, and notes, to `roofs`. 0, -ENOMEM, -errno. */
int scope_measure(const struct scope *s, struct roofs *roofs);
