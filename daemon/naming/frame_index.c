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

struct frame_slot {
	struct frame *frame; /* NULL: free */
	uint64_t offset;     /* its */
};

static size_t first_slot(
	const struct frame_index *x, const struct file *file, uint64_t offset, uint32_t version)
{
	uint64_t hash = hash_words((uintptr_t)file, offset);
	if (version)
		hash = hash_words(hash, version);
	return (size_t)hash & (x->n_slots - 1);
}

/* The slot of the key, or the free one where it belongs. */
static struct frame_slot *slot_of(
	const struct frame_index *x, const struct file *file, uint64_t offset, uint32_t version)
{
	for (size_t at = first_slot(x, file, offset, version);; at = (at + 1) & (x->n_slots - 1)) {
		struct frame_slot *s = &x->slot[at];
		if (!s->frame || (s->offset == offset && s->frame->file == file &&
					 frame_version(s->frame) == version))
			return s;
	}
}

static void put(struct frame_index *x, struct frame *frame)
{
	*slot_of(x, frame->file, frame->offset, frame_version(frame)) =
		(struct frame_slot){frame, frame->offset};
	x->n++;
}

struct frame *frame_index_find(
	const struct frame_index *x, const struct file *file, uint64_t offset, uint32_t version)
{
	return x->n_slots ? slot_of(x, file, offset, version)->frame : NULL;
}

static int grow(struct frame_index *x)
{
	struct frame_index grown = {.n_slots = x->n_slots ? 2 * x->n_slots : SLOTS_MIN};

	grown.slot = calloc(grown.n_slots, sizeof(*grown.slot));
	if (!grown.slot)
		return -ENOMEM;
	for (size_t i = 0; i < x->n_slots; i++)
		if (x->slot[i].frame)
			put(&grown, x->slot[i].frame);
	free(x->slot);
	*x = grown;
	return 0;
}

int frame_index_add(struct frame_index *x, struct frame *frame)
{
	int r = x->n < x->n_slots / 4 * 3 ? 0 : grow(x);
	if (r == 0)
		put(x, frame);
	return r;
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
	*x = (struct frame_index){.slot = slot, .n_slots = n_slots};
}

void frame_index_set(struct frame_index *x, struct frame *const *frame, size_t n)
{
	size_t n_frames = 0;
	for (size_t i = 0; i < n; i++)
		n_frames += frame[i] != NULL;

	shrink_slots(x, n_frames);
	if (x->n_slots)
		memset(x->slot, 0, x->n_slots * sizeof(*x->slot));
	x->n = 0;
	for (size_t i = 0; i < n; i++)
		if (frame[i])
			put(x, frame[i]);
}

void frame_index_clear(struct frame_index *x)
{
	free(x->slot);
	*x = (struct frame_index){.n = 0};
}
