/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the namer frees in a sweep. Queued and pending requests keep their file and frames. An idle
 * slot is freed with its file. The parser forgets the file first, so a later file with the same id
 * is new to the parser, too.
 */
#include "daemon/naming/namer_private.h"

static bool is_at_rest(const struct namer *n, const struct slot *s)
{
	return s->queue == QUEUE_NONE && s->n_frames == 0 && s != n->opening && s != n->asked_slot;
}

void namer_sweep_mark(const struct namer *n, struct file_marks *m)
{
	for (uint32_t i = 0; i < n->n_sampled; i++)
		file_marks_keep(m, n->sampled[i]);
	for (const struct slot *slot = TAILQ_FIRST(&n->slots); slot;
		slot = TAILQ_NEXT(slot, by_use)) {
		if (!is_at_rest(n, slot))
			file_marks_keep(m, slot->file);
		const struct wish *w;
		for (w = TAILQ_FIRST(&slot->wishes); w; w = TAILQ_NEXT(w, of_slot))
			for (size_t i = 0; i < w->n; i++)
				file_marks_keep_frame(m, w->frame[i]);
	}
	for (uint32_t i = n->n_answered; i < n->n_batch; i++)
		file_marks_keep_frame(m, n->batch[i]);
	for (const struct snapshot *shot = n->snapshots; shot; shot = shot->hh.next)
		for (uint32_t i = 0; i < shot->n_maps; i++)
			file_marks_keep(m, shot->map[i].file);
}

/* A line may still come for these frames, but nothing would use it. */
static void forget_late(struct slot *slot, const struct file_marks *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < slot->n_late; i++)
		if (m->frame[slot->late[i]->id - 1] == SWEEP_KEPT)
			slot->late[kept++] = slot->late[i];
	slot->n_late = kept;
}

int namer_sweep_slots(struct namer *n, const struct file_marks *m)
{
	struct slot *next;

	for (struct slot *slot = TAILQ_FIRST(&n->slots); slot; slot = next) {
		next = TAILQ_NEXT(slot, by_use);
		forget_late(slot, m);
		if (m->file[slot->file->id - 1] == SWEEP_KEPT)
			continue;
		int r = slot_release(n, slot);
		if (r < 0)
			return r;
		TAILQ_REMOVE(&n->slots, slot, by_use);
		slot->file->namer_slot = NULL;
		slot_free(n, slot);
	}
	return 0;
}

void namer_sweep_names(struct namer *n)
{
	const struct file_table *t = n->options.files;

	for (uint32_t i = 0; i < t->n_frames; i++) {
		const struct frame *frame = t->frame[i];

		for (uint32_t p = 0; frame && p < frame->n_places; p++) {
			strings_keep(frame->place[p].function);
			strings_keep(frame->place[p].source);
		}
	}
	strings_sweep(&n->strings, n->user, n->n_users);
}
