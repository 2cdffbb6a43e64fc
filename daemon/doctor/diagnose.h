/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Diagnosis: the profiling abilities of one hart, and how to get more of them
 *
 * Each finding is a sentence that names the layer that refuses (core, firmware, driver, sysctl),
 * with a remedy if there is one.
 */

#include "daemon/pmu/cores.h"
#include "daemon/sampler/ladder.h"

struct diagnosis {
	const char *topic;  /* "core", "sampling", "counters", "modes", "errata" */
	const char *state;  /* "ok", "info", "warn", "fail" */
	const char *says;   /* borrowed for the call */
	const char *remedy; /* the same; "" if there is no remedy */
};

struct diagnose_question {
	const struct kernel *kernel;
	const struct machine *machine;
	const struct cores *cores; /* may be NULL */
	int hart;
	const struct plan *plan; /* the result of trying, with the tries */
	double counted_share;    /* fraction of the time that it had its counters; 1 if not known */
};

/* Report all findings in a fixed order. Opens one or two counters for a moment; does not keep the
 * hart busy. Stops when tell returns a value other than 0, and returns it. */
int diagnose_hart(const struct diagnose_question *q,
	int (*tell)(void *userdata, const struct diagnosis *d), void *userdata);
