/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The effort of a walk: how often it samples, and how much its sampler does at each sample and
 * switch */

#include "daemon/session/walk.h"

/* Do only that much from now on (sampler/effort.h). What is in the rings is taken before. 0 or
 * -errno. Cheap if nothing changes. */
int walk_set_effort(struct walk *w, const struct sampler_effort *effort);

/* Change the rate of events chosen by the ladder. Weights change with it. 0 or -errno. */
int walk_set_rate(struct walk *w, uint32_t hz);
