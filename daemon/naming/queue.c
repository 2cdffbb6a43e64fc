/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Queues of slots, by next step and by user. A slot that is to be opened is in the queue of one
 * user; one that is to be named is in those of all users who wish for its frames. Nothing here asks
 * a worker or decides what comes next.
 */
#include "daemon/naming/namer_private.h"

#include <errno.h>
#include <stdlib.h>

int frames_reserve(struct frame ***frames, size_t n, size_t *size)
{
	if (n < *size)
		return 0;
	size_t more = *size ? 2 * *size : 16;
	struct frame **grown = realloc(*frames, more * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	*frames = grown;
	*size = more;
	return 0;
}

struct wish *wish_free(struct namer *n, struct wish *w)
{
	if (w->slot->queue == QUEUE_NAME) {
		TAILQ_REMOVE(&w->user->to_name, w, of_user);
		n->n_to_name--;
	}
	TAILQ_REMOVE(&w->slot->wishes, w, of_slot);
	w->slot->n_frames -= w->n;
	n->n_entries -= w->n;
	w->user->n_wishes--;
	free(w->frame);
	free(w);
	return NULL;
}

bool wish_holds(const struct wish *w, const struct frame *frame)
{
	return frame->state == FRAME_ASKED && frame->asker == w->user->index;
}

void slot_dequeue(struct namer *n, struct slot *s)
{
	struct wish *w;

	if (s->queue == QUEUE_OPEN) {
		TAILQ_REMOVE(&s->opens->to_open, s, queued);
		n->n_to_open--;
	}
	if (s->queue == QUEUE_NAME)
		for (w = TAILQ_FIRST(&s->wishes); w; w = TAILQ_NEXT(w, of_slot)) {
			TAILQ_REMOVE(&w->user->to_name, w, of_user);
			n->n_to_name--;
		}
	s->queue = QUEUE_NONE;
}

void slot_enqueue_open(
	struct namer *n, struct slot *s, enum message_part part, struct naming_user *u)
{
	slot_dequeue(n, s);
	naming_user_joins(n, u);
	s->part = part;
	s->opens = u;
	s->queue = QUEUE_OPEN;
	/* Debug files first: they complete a file in progress, and its process may end soon. */
	if (part == PART_MAIN)
		TAILQ_INSERT_TAIL(&u->to_open, s, queued);
	else
		TAILQ_INSERT_HEAD(&u->to_open, s, queued);
	n->n_to_open++;
	n->fresh = true;
}

void slot_enqueue_name(struct namer *n, struct slot *s)
{
	struct wish *w;

	slot_dequeue(n, s);
	n->fresh = true;
	if (TAILQ_EMPTY(&s->wishes))
		return;
	s->queue = QUEUE_NAME;
	for (w = TAILQ_FIRST(&s->wishes); w; w = TAILQ_NEXT(w, of_slot)) {
		TAILQ_INSERT_TAIL(&w->user->to_name, w, of_user);
		n->n_to_name++;
	}
}

void slot_enqueue_first(struct namer *n, struct slot *s)
{
	struct wish *w;

	slot_enqueue_name(n, s);
	if (s->queue != QUEUE_NAME)
		return;
	for (w = TAILQ_FIRST(&s->wishes); w; w = TAILQ_NEXT(w, of_slot)) {
		TAILQ_REMOVE(&w->user->to_name, w, of_user);
		TAILQ_INSERT_HEAD(&w->user->to_name, w, of_user);
	}
}

static struct wish *wish_get(struct namer *n, struct slot *s, struct naming_user *u)
{
	struct wish *w;

	for (w = TAILQ_FIRST(&s->wishes); w; w = TAILQ_NEXT(w, of_slot))
		if (w->user == u)
			return w;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->slot = s;
	w->user = u;
	naming_user_joins(n, u);
	u->n_wishes++;
	TAILQ_INSERT_TAIL(&s->wishes, w, of_slot);
	if (s->queue == QUEUE_NAME) {
		TAILQ_INSERT_TAIL(&u->to_name, w, of_user);
		n->n_to_name++;
	}
	return w;
}

int slot_push_none(struct namer *n, struct slot *s, struct naming_user *u)
{
	if (!wish_get(n, s, u))
		return -ENOMEM;
	if (s->queue == QUEUE_NONE)
		slot_enqueue_name(n, s);
	n->fresh = true;
	return 0;
}

int slot_push(struct namer *n, struct slot *s, struct frame *frame, struct naming_user *u)
{
	struct wish *w = wish_get(n, s, u);
	int r = w ? frames_reserve(&w->frame, w->n, &w->size) : -ENOMEM;

	if (r == 0) {
		frame->state = FRAME_ASKED;
		frame->asker = u->index;
		w->frame[w->n++] = frame;
		s->n_frames++;
		n->n_entries++;
		n->fresh = true;
	} else if (w && w->n == 0) {
		wish_free(n, w);
	}
	return r;
}
