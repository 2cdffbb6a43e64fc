/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Downsampling: a recording that keeps its own rate while the walk samples faster for others
 *
 *      walk, 999 Hz   s s s s s s s s s s   each represents 1 ms
 *      kept, 99 Hz                      s   represents 10 ms: the sum of these
 *
 * A kept sample is one that a sampler of the lower rate would have taken: it represents all the time on
 * that hart since the previous one, so weights add up to the same. The counts of a task in between go to
 * that task's next sample.
 *
 * All functions take NULL, a recording that keeps all, and do nothing then.
 */

#include "daemon/session/walk.h"

struct downsample;

/* hz: samples to keep per second and hart. 0 or -ENOMEM. */
int downsample_new(uint32_t hz, int n_harts, struct downsample **ret_downsample);

/* Filter an attribution of a walk that samples at walk_hz. 0: keep it; the skipped ones are added
 * to it. DOWNSAMPLE_PASSED: do not keep it. -ENOMEM. */
enum { DOWNSAMPLE_PASSED = 1 };
int downsample_take(struct downsample *t, uint32_t walk_hz, struct attribution *a);

/* The counts of tasks that have had no sample since: one attribution per task, without sample or
 * stack. True with *ret, until there are no more. */
bool downsample_remaining(struct downsample *t, struct attribution *ret);

/* Samples that were skipped. */
uint64_t downsample_passed(const struct downsample *t);

/* The tasks that it holds. */
void downsample_mark(const struct downsample *t, struct sweep *sweep);

struct downsample *downsample_free(struct downsample *t);
