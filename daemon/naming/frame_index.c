/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A look-up costs cache misses, since the daemon runs only a few times a second: one for the slot,
 * which has the offset in it, and one for the frame, which the caller needs anyway.
 */

#include "daemon/naming/frame_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/naming/file.h"
#include "proto/base/hash.h"

#define SLOTS_MIN 1024u /* a power of two */
/* Slots are freed if all frames would fit in this fraction of them. */
#define SPARSE_PART 8u
/* Slots of the old array that move for each frame that is added. Until the new array is to grow in its turn, three
 * quarters as many frames are added as the old one has slots, so two would do; four let the old one go sooner. */
#define MOVED_EACH 4u

struct frame_slot {
	struct frame *frame; /* NULL: free */
	uint64_t offset;     /* its */
};

static size_t first_slot(size_t n_slots, const struct file *file, uint64_t offset, uint32_t version)
{
	uint64_t hash = hash_words((uintptr_t)file, offset);
	if (version)
		hash = hash_words(hash, version);
	return (size_t)hash & (n_slots - 1);
}

/* The slot of the key, or the free one where it belongs. */
static struct frame_slot *slot_of(struct frame_slot *slot, size_t n_slots, const struct file *file,
	uint64_t offset, uint32_t version)
{
	for (size_t at = first_slot(n_slots, file, offset, version);;
		at = (at + 1) & (n_slots - 1)) {
		struct frame_slot *s = &slot[at];
		if (!s->frame || (s->offset == offset && s->frame->file == file &&
					 frame_version(s->frame) == version))
			return s;
	}
}

static void put(struct frame_index *x, struct frame *frame)
{
	*slot_of(x->slot, x->n_slots, frame->file, frame->offset, frame_version(frame)) =
		(struct frame_slot){frame, frame->offset};
}

struct frame *frame_index_find(
	const struct frame_index *x, const struct file *file, uint64_t offset, uint32_t version)
{
	struct frame *found =
		x->n_slots ? slot_of(x->slot, x->n_slots, file, offset, version)->frame : NULL;

	return found || !x->old ? found : slot_of(x->old, x->n_old, file, offset, version)->frame;
}

static void forget_old(struct frame_index *x)
{
	free(x->old);
	x->old = NULL;
	x->n_old = x->n_moved = 0;
}

static void move_some(struct frame_index *x)
{
	for (uint32_t n = 0; n < MOVED_EACH && x->n_moved < x->n_old; n++, x->n_moved++)
		if (x->old[x->n_moved].frame)
			put(x, x->old[x->n_moved].frame);
	if (x->old && x->n_moved == x->n_old)
		forget_old(x);
}

static int grow(struct frame_index *x)
{
	const size_t n_slots = x->n_slots ? 2 * x->n_slots : SLOTS_MIN;
	struct frame_slot *slot = calloc(n_slots, sizeof(*slot));

	if (!slot)
		return -ENOMEM;
	x->old = x->slot; /* what was old before has moved: MOVED_EACH */
	x->n_old = x->n_slots;
	x->slot = slot;
	x->n_slots = n_slots;
	return 0;
}

int frame_index_add(struct frame_index *x, struct frame *frame)
{
	int r = x->n < x->n_slots / 4 * 3 ? 0 : grow(x);
	if (r < 0)
		return r;
	put(x, frame);
	x->n++;
	move_some(x);
	return 0;
}

/* Without memory for a smaller array, the index keeps its slots. */
static void shrink_slots(struct frame_index *x, size_t n)
{
	size_t n_slots = SLOTS_MIN;
	while (n_slots / 4 * 3 <= n)
		n_slots *= 2;
	if (n_slots > x->n_slots / SPARSE_PART)
		return;
	struct frame_slot *slot = calloc(n_slots, sizeof(*slot));
	if (!slot)
		return;
	free(x->slot);
	x->slot = slot;
	x->n_slots = n_slots;
}

void frame_index_set(struct frame_index *x, struct frame *const *frame, size_t n)
{
	size_t n_frames = 0;
	for (size_t i = 0; i < n; i++)
		n_frames += frame[i] != NULL;

	forget_old(x);
	shrink_slots(x, n_frames);
	if (x->n_slots)
		memset(x->slot, 0, x->n_slots * sizeof(*x->slot));
	for (size_t i = 0; i < n; i++)
		if (frame[i])
			put(x, frame[i]);
	x->n = n_frames;
}

void frame_index_clear(struct frame_index *x)
{
	forget_old(x);
	free(x->slot);
	*x = (struct frame_index){.n = 0};
}
