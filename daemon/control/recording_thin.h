/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Thinning: a recording that keeps its own rate while the walk samples faster for others
 *
 *      walk, 999 Hz   s s s s s s s s s s   each stands for 1 ms
 *      kept, 99 Hz                      s   stands for 10 ms: the sum of these
 *
 * A kept sample is what a sampler of the lower rate would have taken: it stands for all the time on
 * that hart since the one before, so weights add up to the same, and what a task counted meanwhile
 * goes to that task's next sample.
 *
 * All functions take NULL, a recording that keeps all, and do nothing then.
 */

#include "daemon/control/walk.h"

struct recording_thin;

/* hz: samples a second and hart that are kept. 0 or -ENOMEM. */
int recording_thin_new(uint32_t hz, int n_harts, struct recording_thin **ret_thin);

/* An attribution of a walk that samples at walk_hz: 0, it is kept, with what was passed over added;
 * THIN_PASSED, it is not; -ENOMEM. */
enum { THIN_PASSED = 1 };
int recording_thin_take(struct recording_thin *t, uint32_t walk_hz, struct attribution *a);

/* What tasks counted that have had no sample since: an attribution without sample or stack for
 * each, until there is none. True with *ret. */
bool recording_thin_rest(struct recording_thin *t, struct attribution *ret);

/* Samples that were passed over. */
uint64_t recording_thin_passed(const struct recording_thin *t);

/* The tasks that it holds. */
void recording_thin_mark(const struct recording_thin *t, struct sweep *sweep);

struct recording_thin *recording_thin_free(struct recording_thin *t);
