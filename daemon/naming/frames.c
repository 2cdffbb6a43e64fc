/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Frames that wait for their names. A frame whose name may never come is late: it stays at its slot, but nobody
 * waits for it. All frames of a paused slot are late, too.
 */
#include "daemon/naming/namer_private.h"

#include <stdlib.h>

int slot_await(struct namer *n, struct slot *s, struct frame *frame, struct naming_user *u)
{
	int r = slot_push(n, s, frame, u);

	if (r == 0)
		n->frames.n_waiting++;
	return r;
}

int frame_ask_anew(struct namer *n, struct frame *frame)
{
	struct slot *s = frame->file->namer_slot;
	const enum frame_state before = frame->state;
	int r = slot_await(n, s, frame, naming_user_get(&n->users, frame->file->uid));

	if (r < 0)
		return r;
	frame->file->symbols_out -= before == FRAME_OUT_OF_SYMBOL;
	n->options.files->n_asked_anew++;
	return 0;
}

size_t frames_waiting(const struct namer *n)
{
	return n->frames.n_waiting;
}

uint64_t frames_named(const struct namer *n)
{
	return n->frames.n_named;
}

uint64_t frames_placed(const struct namer *n)
{
	return n->frames.n_placed;
}

/* A JIT compiler may write its line later, or all lines at its end. A file that was not found may
 * appear later. */
static bool frame_is_late(const struct namer *n, struct frame *f, enum frame_state state)
{
	struct slot *s = f->file->namer_slot;

	if (state == FRAME_NAMED || n->ending || !(slot_grows(s) || s->absent) ||
		f->file->replaced || frames_reserve(&s->late, s->n_late, &s->size_late) < 0)
		return false;
	s->late[s->n_late++] = f;
	f->asker = FRAME_LATE;
	return true;
}

void frame_finish(struct namer *n, struct frame *f, enum frame_state state)
{
	if (frame_is_late(n, f, state)) {
		n->frames.n_waiting--;
		return;
	}
	n->frames.n_waiting--;
	frame_settle(n, f, state);
}

void frame_settle(struct namer *n, struct frame *f, enum frame_state state)
{
	f->state = state;
	if (state == FRAME_NAMED) {
		f->file->symbols_named++;
		n->frames.n_named++;
	} else if (state == FRAME_OUT_OF_SYMBOL) {
		f->file->symbols_out++;
	}
	n->frames.n_placed += state == FRAME_PLACED;
	if (n->options.named)
		n->options.named(n->options.userdata, f);
}

/* The callback may request more frames of this very file, so the wish is removed first. */
void slot_finish(struct namer *n, struct slot *s)
{
	struct wish *w;
	size_t n_wishes = 0;

	s->n_proved = 0;
	if (s->table_state == TABLE_WANTED)
		slot_settle_table(n, s, TABLE_NO_FILE);
	slot_dequeue(n, s);
	for (w = TAILQ_FIRST(&s->wishes); w; w = TAILQ_NEXT(w, of_slot))
		n_wishes++;
	while (n_wishes-- > 0) {
		w = TAILQ_FIRST(&s->wishes);
		struct frame **frame = w->frame;
		size_t n_frames = w->n;
		uint8_t asker = w->user->index;
		w->frame = NULL;
		wish_free(n, w);
		for (size_t i = 0; i < n_frames; i++)
			if (frame[i]->state == FRAME_ASKED && frame[i]->asker == asker)
				frame_finish(n, frame[i], FRAME_UNNAMED);
		free(frame);
	}
}

int slot_postpone(struct namer *n, struct slot *s)
{
	struct wish *w;

	if (s->table_state == TABLE_WANTED)
		slot_settle_table(n, s, TABLE_NO_FILE);
	slot_dequeue(n, s);
	while ((w = TAILQ_FIRST(&s->wishes))) {
		for (size_t i = 0; i < w->n; i++) {
			if (!wish_holds(w, w->frame[i]))
				continue;
			int r = frames_reserve(&s->late, s->n_late, &s->size_late);
			if (r < 0)
				return r;
			s->late[s->n_late++] = w->frame[i];
			n->frames.n_waiting--;
			/* once: its other entries are no longer valid */
			w->frame[i]->asker = FRAME_LATE;
		}
		wish_free(n, w);
	}
	return 0;
}

int slot_resume(struct namer *n, struct slot *s)
{
	s->paused = false;
	if (s->table_state == TABLE_NO_FILE)
		slot_settle_table(n, s, TABLE_UNASKED);
	while (s->n_late > 0) {
		int r = slot_await(
			n, s, s->late[s->n_late - 1], naming_user_get(&n->users, s->asker));
		if (r < 0)
			return r;
		s->n_late--;
	}
	if (s->queue == QUEUE_NONE)
		slot_enqueue_name(n, s);
	return 0;
}

int slot_ask_again(struct namer *n, struct slot *s)
{
	bool over = s->file->replaced; /* the current file describes another program */

	if (s->n_late == 0)
		return 0;
	if (!over) {
		s->stale = slot_grows(s);
		return slot_resume(n, s);
	}
	n->frames.n_waiting += s->n_late;
	while (s->n_late > 0)
		frame_finish(n, s->late[--s->n_late], FRAME_UNNAMED);
	return 0;
}

/* --- sweeping --------------------------------------------------------------------------------- */

void slot_sweep_mark_frames(const struct slot *s, struct file_marks *m)
{
	const struct wish *w;

	for (w = TAILQ_FIRST(&s->wishes); w; w = TAILQ_NEXT(w, of_slot))
		for (size_t i = 0; i < w->n; i++)
			file_marks_keep_frame(m, w->frame[i]);
}

/* Forget late frames that are not marked: a line may still come for them, but nothing would use it. */
void slot_sweep_late(struct slot *s, const struct file_marks *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n_late; i++)
		if (m->frame[s->late[i]->id - 1] == SWEEP_KEPT)
			s->late[kept++] = s->late[i];
	s->n_late = kept;
}
