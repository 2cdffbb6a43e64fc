/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Causes: reasons why data from the feed was refused
 *
 * Functions of this room return one of them as their positive outcome.
 */

#include <stdint.h>

enum feed_cause {
	FEED_TAKEN,
#define CAUSE(id, severity, name) FEED_##id,
#include "daemon/loops/cause.inc"
	N_FEED_CAUSES,
};

enum feed_severity { FEED_HANG_UP, FEED_PASS_OVER, FEED_NOTE };

struct feed_cause_kind {
	const char *name;
	enum feed_severity severity;
};
extern const struct feed_cause_kind feed_causes[N_FEED_CAUSES];
