/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Frame index: the frames of a file table, by (file, offset, version)
 *
 * Open addressing: 16 bytes a slot, at most three quarters of them taken. Nothing is removed alone;
 * after a sweep the index is made again. Growing takes no long turn, however many frames there are: they move to
 * the larger array while others are added.
 */

#include <stddef.h>
#include <stdint.h>

struct file;
struct frame;
struct frame_slot;

struct frame_index {
	struct frame_slot *slot;
	size_t n, n_slots;      /* a power of two, or 0 */
	struct frame_slot *old; /* what was before, whole, until all have moved; NULL: they have */
	size_t n_old, n_moved;  /* slots */
};

/* NULL: it is not there. */
struct frame *frame_index_find(
	const struct frame_index *x, const struct file *file, uint64_t offset, uint32_t version);

/* Add a frame that is not there. It is borrowed. 0 or -ENOMEM. */
int frame_index_add(struct frame_index *x, struct frame *frame);

/* Make the index hold exactly these frames, which are not more than before; NULL is skipped. Gives memory
 * back if they are few. */
void frame_index_set(struct frame_index *x, struct frame *const *frame, size_t n);

void frame_index_clear(struct frame_index *x);
