/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Both ways to cut counts at switches, briefly tried on this machine */

#include "daemon/doctor/switch_check.h"
#include "daemon/sampler/sampler.h"

struct switch_comparison {
	unsigned cut; /* available CUT_* */
	int error;    /* without CUT_BPF: why, an errno as of sampler_switch_error */
	struct switch_verdict verdict; /* with both */
	char worst_event[EVENT_NAME_BYTES_MAX];
	struct event_error why; /* with SWITCH_COMPARE_REFUSED */
};

/* Run a session with both, in which the caller alternates between work and sleep for about 50 ms,
 * and compare the results. The caller must see the whole system. 0; SWITCH_COMPARE_REFUSED: no such
 * session can be opened; -errno. */
enum { SWITCH_COMPARE_REFUSED = 1 };
int switch_compare(const struct kernel *k, struct switch_comparison *ret_comparison);
