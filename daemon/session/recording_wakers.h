/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Frames of wakers in a recording's stacks (aggregate/waker.h) */

#include "daemon/session/targets.h"
#include "daemon/session/walk.h"

/* Names of tasks that woke others, in one recording; further ones are unknown. */
#define RECORDING_WAKER_NAMES_MAX 4096u

struct recording_wakers {
	struct frame *frame[8]; /* by WAKER_AT_*; NULL: not needed so far */
	struct frame **name;
	uint32_t n_names, size_names;
};

/* Put the stack of a wait into `stack` (STACK_FRAMES_MAX), leaf first, with its waker's before it: without what the
 * targets' user may not see of that one. Returns how many frames. */
uint32_t recording_put_waker(struct recording_wakers *k, struct walk *walk,
	const struct targets *targets, const struct attribution *a, struct frame **stack);
void recording_wakers_mark(const struct recording_wakers *k, struct sweep *s);
void recording_wakers_clear(struct recording_wakers *k);
