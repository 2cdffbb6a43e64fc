/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Queues of slots, by next step and by user. A slot to open is in the queue of one user; a slot to
 * name is in those of all users who want its frames named. Nothing here sends requests to a
 * worker.
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

void queue_note(struct namer *n)
{
	n->queues.changed = true;
}

bool queue_take_note(struct namer *n)
{
	bool changed = n->queues.changed;

	n->queues.changed = false;
	return changed;
}

bool queue_is_noted(const struct namer *n)
{
	return n->queues.changed;
}

/* --- wishes ----------------------------------------------------------------------------------- */

static void wish_enqueue(struct namer *n, struct wish *w)
{
	TAILQ_INSERT_TAIL(&w->user->to_name, w, of_user);
	naming_user_queued(&n->users, w->user, QUEUED_NAME);
}

static void wish_dequeue(struct namer *n, struct wish *w)
{
	TAILQ_REMOVE(&w->user->to_name, w, of_user);
	naming_user_dequeued(&n->users, w->user, QUEUED_NAME);
}

struct wish *wish_free(struct namer *n, struct wish *w)
{
	if (w->slot->queue == QUEUE_NAME)
		wish_dequeue(n, w);
	TAILQ_REMOVE(&w->slot->wishes, w, of_slot);
	w->slot->n_frames -= w->n;
	n->queues.n_entries -= w->n;
	naming_user_dequeued(&n->users, w->user, QUEUED_WISH);
	free(w->frame);
	free(w);
	return NULL;
}

bool wish_holds(const struct wish *w, const struct frame *frame)
{
	return frame->state == FRAME_ASKED && frame->asker == w->user->index;
}

uint32_t wish_take(struct namer *n, struct wish *w, struct frame **ret_frame, uint32_t n_max)
{
	uint32_t n_taken = 0;

	while (n_taken < n_max && w->n > 0) {
		struct frame *frame = w->frame[--w->n];
		w->slot->n_frames--;
		n->queues.n_entries--;
		if (wish_holds(w, frame))
			ret_frame[n_taken++] = frame;
	}
	return n_taken;
}

/* --- slots ------------------------------------------------------------------------------------ */

void slot_dequeue(struct namer *n, struct slot *s)
{
	struct wish *w;

	if (s->queue == QUEUE_OPEN) {
		TAILQ_REMOVE(&s->opens->to_open, s, queued);
		naming_user_dequeued(&n->users, s->opens, QUEUED_OPEN);
	}
	if (s->queue == QUEUE_NAME)
		for (w = TAILQ_FIRST(&s->wishes); w; w = TAILQ_NEXT(w, of_slot))
			wish_dequeue(n, w);
	s->queue = QUEUE_NONE;
}

void slot_send(struct namer *n, struct slot *s, enum place_of_slot to)
{
	slot_dequeue(n, s);
	s->queue = to;
}

void slot_enqueue_open(
	struct namer *n, struct slot *s, enum message_part part, struct naming_user *u)
{
	slot_dequeue(n, s);
	naming_user_joins(&n->users, u);
	s->part = part;
	s->opens = u;
	s->queue = QUEUE_OPEN;
	/* Debug files first: they complete a file in progress, and its process may end soon. */
	if (part == PART_MAIN)
		TAILQ_INSERT_TAIL(&u->to_open, s, queued);
	else
		TAILQ_INSERT_HEAD(&u->to_open, s, queued);
	naming_user_queued(&n->users, u, QUEUED_OPEN);
	queue_note(n);
}

void slot_enqueue_name(struct namer *n, struct slot *s)
{
	struct wish *w;

	slot_dequeue(n, s);
	queue_note(n);
	if (TAILQ_EMPTY(&s->wishes))
		return;
	s->queue = QUEUE_NAME;
	for (w = TAILQ_FIRST(&s->wishes); w; w = TAILQ_NEXT(w, of_slot))
		wish_enqueue(n, w);
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
	naming_user_joins(&n->users, u);
	naming_user_queued(&n->users, u, QUEUED_WISH);
	TAILQ_INSERT_TAIL(&s->wishes, w, of_slot);
	if (s->queue == QUEUE_NAME)
		wish_enqueue(n, w);
	return w;
}

struct wish *slot_wish(const struct slot *s, const struct naming_user *u)
{
	struct wish *w = s->queue == QUEUE_NAME ? TAILQ_FIRST(&s->wishes) : NULL;

	while (w && w->user != u)
		w = TAILQ_NEXT(w, of_slot);
	return w;
}

int slot_push_none(struct namer *n, struct slot *s, struct naming_user *u)
{
	if (!wish_get(n, s, u))
		return -ENOMEM;
	if (s->queue == QUEUE_NONE)
		slot_enqueue_name(n, s);
	queue_note(n);
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
		n->queues.n_entries++;
		queue_note(n);
	} else if (w && w->n == 0) {
		wish_free(n, w);
	}
	return r;
}

size_t queue_entries(const struct namer *n)
{
	return n->queues.n_entries;
}

/* --- what comes next -------------------------------------------------------------------------- */

struct slot *slot_queued(const struct naming_user *u)
{
	const struct wish *w = TAILQ_FIRST(&u->to_name);
	struct slot *s = TAILQ_FIRST(&u->to_open);

	return s ? s : w ? w->slot : NULL;
}

struct slot *queue_next_open(const struct namer *n)
{
	const struct naming_user *u = naming_users_next(&n->users, QUEUED_OPEN, NULL, n->now_ns);

	return u ? TAILQ_FIRST(&u->to_open) : NULL;
}

struct wish *queue_next(const struct namer *n)
{
	const struct naming_user *u = naming_users_next(&n->users, QUEUED_NAME, NULL, n->now_ns);

	struct wish *first = u ? TAILQ_FIRST(&u->to_name) : NULL, *w;

	if (!first || !naming_users_are_paced(&n->users))
		return first;
	for (w = TAILQ_NEXT(first, of_user); w; w = TAILQ_NEXT(w, of_user))
		if (w->slot->n_samples > first->slot->n_samples)
			first = w;
	return first;
}

/* The wish of the user who was served last comes before those of others. */
struct wish *queue_first(struct namer *n)
{
	struct queues *q = &n->queues;
	struct slot *s = q->trial ? q->trial : q->loaded;
	struct wish *w;

	if (!s || s->queue != QUEUE_NAME) {
		queue_drop_first(n);
		return NULL;
	}
	for (w = TAILQ_FIRST(&s->wishes); w; w = TAILQ_NEXT(w, of_slot))
		if (w->user == naming_users_served(&n->users, WORKER_PARSER))
			return w;
	return TAILQ_FIRST(&s->wishes);
}

void queue_put_first(struct namer *n, struct slot *s)
{
	n->queues.loaded = s;
}

void queue_put_on_trial(struct namer *n, struct slot *s)
{
	n->queues.trial = s;
}

void queue_drop_loaded(struct namer *n, const struct slot *s)
{
	if (!s || n->queues.loaded == s)
		n->queues.loaded = NULL;
}

void queue_drop(struct namer *n, const struct slot *s)
{
	queue_drop_loaded(n, s);
	if (n->queues.trial == s)
		n->queues.trial = NULL;
}

void queue_drop_first(struct namer *n)
{
	n->queues.trial = n->queues.loaded = NULL;
}

bool queue_has_first(const struct namer *n)
{
	return n->queues.loaded || n->queues.trial;
}

bool queue_is_on_trial(const struct namer *n, const struct slot *s)
{
	return n->queues.trial == s;
}
