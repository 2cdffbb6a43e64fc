/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Diagnosis: what one hart can do for a profiler, and what would give more, for its owner
 *
 * Each finding is a sentence that names the layer which refuses (core, firmware, driver, sysctl),
 * and what mends it if anything does.
 */

#include "daemon/pmu/cores.h"
#include "daemon/pmu/ladder.h"

struct diagnosis {
	const char *topic;  /* "core", "sampling", "counters", "modes", "errata" */
	const char *state;  /* "ok", "info", "warn", "fail" */
	const char *says;   /* borrowed for the call */
	const char *remedy; /* the same; "" if nothing mends it */
};

struct diagnose_question {
	const struct kernel *kernel;
	const struct machine *machine;
	const struct cores *cores; /* may be NULL */
	int hart;
	const struct plan *plan; /* what was found by trying, with the tries */
	double counted_share;    /* of the time, that its counters were had; 1 where not known */
};

/* Tell all that is known, in a fixed order. Opens a counter or two for a moment; the hart is not
 * kept busy. Stops at the first value of tell that is not 0, and returns it. */
int diagnose_hart(const struct diagnose_question *q,
	int (*tell)(void *userdata, const struct diagnosis *d), void *userdata);
