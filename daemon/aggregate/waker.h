/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The stack of a wait with its waker
 *
 *      root ─▶ … ─▶ where the thread waits ─▶ [woken by] ─▶ where the waker was ─▶ … ─▶ its root ─▶ its name
 *
 * The waker's frames come in the opposite order, above the thread's. What is no code has frames of a file of its own, at
 * these offsets; names of tasks begin at WAKER_AT_NAME.
 */

#define WAKER_FILE "[waker]"

enum {
	WAKER_AT_SEPARATOR,
	WAKER_AT_INTERRUPT,
	WAKER_AT_OTHER_USER,
	WAKER_AT_KERNEL,
	WAKER_AT_OUTSIDE,
	WAKER_AT_UNKNOWN,
	N_WAKER_FRAMES,
	WAKER_AT_NAME = 1 << 16,
};
#define WAKER_SEPARATOR "[woken by]"
