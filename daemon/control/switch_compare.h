/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Both ways to cut counts at switches, tried on this machine for a moment
 */

#include "daemon/attribute/switch_check.h"
#include "daemon/pmu/sampler.h"

struct switch_comparison {
	unsigned cut; /* CUT_* that could be had */
	int error;    /* without CUT_BPF: why, an errno as sampler.switch_error has it */
	struct switch_verdict verdict; /* with both */
	char worst_event[EVENT_NAME_BYTES_MAX];
	struct event_error why; /* with SWITCH_COMPARE_REFUSED */
};

/* Have a session with both, in which the caller is busy and sleeps by turns for some 50 ms, and
 * compare what they say. Who asks must see the whole system. 0; SWITCH_COMPARE_REFUSED: there is no
 * such session; -errno. */
enum { SWITCH_COMPARE_REFUSED = 1 };
int switch_compare(const struct kernel *k, struct switch_comparison *ret_comparison);
