/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Slots: what the namer holds for each file. Descriptors are scarce and a file once named is
 * rarely asked again, so they are kept least recently used first and closed from that end. A slot
 * itself stays as long as the namer: it is what says that a file was tried and is not to be tried
 * again.
 */
#include "daemon/attribute/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int slot_get(struct namer *n, struct file *file, struct slot **ret_slot)
{
	struct slot *s = file->namer_slot;

	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return -ENOMEM;
		s->file = file;
		TAILQ_INIT(&s->wishes);
		for (int part = 0; part < N_PARTS; part++)
			s->fd[part] = -1;
		file->namer_slot = s;
		TAILQ_INSERT_TAIL(&n->slots, s, by_use);
	}
	*ret_slot = s;
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

struct slot *slot_free(struct namer *n, struct slot *s)
{
	slot_dequeue(n, s);
	if (n->trial_slot == s)
		n->trial_slot = NULL;
	if (n->stays == s)
		n->stays = NULL;
	while (!TAILQ_EMPTY(&s->wishes))
		wish_free(n, TAILQ_FIRST(&s->wishes));
	for (int part = 0; part < N_PARTS; part++)
		if (s->fd[part] >= 0)
			close(s->fd[part]);
	free(s->found);
	free(s->late);
	free(s);
	return NULL;
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
	/* A debug file finishes a file that is begun; and a process that lives may not for long. */
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

void slot_touch(struct namer *n, struct slot *s)
{
	TAILQ_REMOVE(&n->slots, s, by_use);
	TAILQ_INSERT_TAIL(&n->slots, s, by_use);
}

void slot_hold(struct namer *n, struct slot *s, enum message_part part, int fd, uint64_t bytes)
{
	if (s->fd[part] >= 0) {
		close(s->fd[part]);
		n->n_fds--;
	}
	s->fd[part] = fd;
	s->bytes[part] = bytes;
	n->n_fds++;
}

int slot_forget(struct namer *n, struct slot *s)
{
	bool given = s->given != 0 && s->given == n->parser.generation;

	if (n->stays == s)
		n->stays = NULL;
	if (given && n->n_forget == n->size_forget) {
		size_t size = n->size_forget ? 2 * n->size_forget : 64;
		uint32_t *forget = realloc(n->forget, size * sizeof(*forget));
		if (!forget)
			return -ENOMEM;
		n->forget = forget;
		n->size_forget = size;
	}
	if (given)
		n->forget[n->n_forget++] = s->file->id;
	s->given = s->loaded = 0;
	s->joined = 0;
	return 0;
}

int slot_release(struct namer *n, struct slot *s)
{
	for (int part = 0; part < N_PARTS; part++) {
		if (s->fd[part] < 0)
			continue;
		close(s->fd[part]);
		s->fd[part] = -1;
		n->n_fds--;
	}
	n->copied_bytes -= s->copied_bytes;
	s->copied_bytes = 0;
	s->tried = 0;
	s->first = 0;
	free(s->found);
	s->found = NULL;
	return slot_forget(n, s);
}

bool slot_is_dead(const struct slot *s)
{
	if (s->file->kind > FILE_JITDUMP)
		return true; /* anonymous, unknown: there is no file */
	if (s->file->replaced && s->fd[PART_MAIN] < 0)
		return true; /* by one that would be taken for it */
	switch (s->file->state) {
	case FILE_UNSEEN:
	case FILE_OPENING:
	case FILE_READY:
		return false;
	default:
		return true;
	}
}

static int reserve(struct frame ***frames, size_t n, size_t *size)
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

int slot_push(struct namer *n, struct slot *s, struct frame *frame, struct naming_user *u)
{
	struct wish *w = wish_get(n, s, u);
	int r = w ? reserve(&w->frame, w->n, &w->size) : -ENOMEM;

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

/* A stripped file has nothing to name, but call frame information to unwind by. */
static bool is_openable(const struct slot *s)
{
	if (s->file->kind > FILE_JITDUMP)
		return false;
	return !slot_is_dead(s) || s->file->state == FILE_NO_SYMBOLS;
}

int slot_want(struct namer *n, struct slot *s, struct naming_user *u)
{
	/* A user who comes later may be served sooner. */
	if (s->queue == QUEUE_OPEN && s->opens != u &&
		(u->open_ns < s->opens->open_ns || !naming_user_may_open(n, s->opens)))
		slot_enqueue_open(n, s, s->part, u);
	if (s->fd[PART_MAIN] >= 0 || !is_openable(s) || s->queue == QUEUE_OPEN ||
		s->queue == QUEUE_FLIGHT)
		return 0;
	if (s->file->kind == FILE_VDSO)
		return opener_vdso(n, s);
	if (s->file->state == FILE_UNSEEN || s->file->state == FILE_READY)
		s->file->state = FILE_OPENING;
	slot_enqueue_open(n, s, PART_MAIN, u);
	return 0;
}

bool slot_is_awaited(const struct namer *n, const struct slot *s)
{
	return s->part == PART_MAIN && (s->queue == QUEUE_OPEN || n->opening == s);
}

static bool waits_behind(struct namer *n, const struct slot *s, struct naming_user *u)
{
	struct wish *w;

	for (w = TAILQ_FIRST(&s->wishes); w; w = TAILQ_NEXT(w, of_slot))
		if (w->user == u || !naming_user_is_before(n, u, w->user))
			return false;
	return s->queue == QUEUE_NAME;
}

bool slot_evict(struct namer *n, struct naming_user *u)
{
	struct slot *spare = NULL;

	for (struct slot *s = TAILQ_FIRST(&n->slots); s; s = TAILQ_NEXT(s, by_use)) {
		if (s->fd[PART_MAIN] < 0)
			continue;
		if (s->queue == QUEUE_NONE && s->n_frames == 0)
			return slot_release(n, s) == 0;
		if (!spare && s != n->trial_slot && waits_behind(n, s, u))
			spare = s;
	}
	return spare && slot_release(n, spare) == 0;
}

/* A JIT compiler may write its line later, or all lines at its end. */
static bool frame_is_late(const struct namer *n, const struct frame *f, enum frame_state state)
{
	struct slot *s = f->file->namer_slot;

	if (state == FRAME_NAMED || n->ending || !slot_grows(s) || f->file->replaced ||
		reserve(&s->late, s->n_late, &s->size_late) < 0)
		return false;
	s->late[s->n_late++] = (struct frame *)f;
	return true;
}

void frame_finish(struct namer *n, struct frame *f, enum frame_state state)
{
	if (frame_is_late(n, f, state)) {
		n->n_waiting_frames--;
		return;
	}
	f->state = state;
	if (state == FRAME_NAMED) {
		f->file->symbols_named++;
		n->n_named++;
	} else if (state == FRAME_OUT_OF_SYMBOL) {
		f->file->symbols_out++;
	}
	n->n_waiting_frames--;
	if (n->options.named)
		n->options.named(n->options.userdata, f);
}

/* The inode of an open file is in memory, and a file system whose times are ours is local, so this
 * is the one thing besides close that we may ask of a descriptor. */
bool slot_is_rewritten(struct slot *s)
{
	struct statx x;

	if (s->fd[PART_MAIN] < 0 || s->written_ns == 0 || s->file->kind != FILE_ELF ||
		statx(s->fd[PART_MAIN], "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MTIME, &x) <
			0 ||
		x.stx_mtime.tv_sec * 1000000000ll + x.stx_mtime.tv_nsec == s->written_ns)
		return false;
	s->file->replaced = true;
	return true;
}

bool wish_holds(const struct wish *w, const struct frame *frame)
{
	return frame->state == FRAME_ASKED && frame->asker == w->user->index;
}

/* The callback may ask for more frames of this very file, so the wish is taken off first. */
void slot_finish(struct namer *n, struct slot *s)
{
	struct wish *w;
	size_t n_wishes = 0;

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

	slot_dequeue(n, s);
	while ((w = TAILQ_FIRST(&s->wishes))) {
		for (size_t i = 0; i < w->n; i++) {
			if (!wish_holds(w, w->frame[i]))
				continue;
			int r = reserve(&s->late, s->n_late, &s->size_late);
			if (r < 0)
				return r;
			s->late[s->n_late++] = w->frame[i];
			n->n_waiting_frames--;
			/* once: others of its entries stand for it no more */
			w->frame[i]->asker = NAMER_ASKER_NONE;
		}
		wish_free(n, w);
	}
	return 0;
}

int slot_resume(struct namer *n, struct slot *s)
{
	s->rests = false;
	while (s->n_late > 0) {
		int r = slot_push(n, s, s->late[s->n_late - 1], naming_user_get(n, s->asker));
		if (r < 0)
			return r;
		s->n_late--;
		n->n_waiting_frames++;
	}
	if (s->queue == QUEUE_NONE)
		slot_enqueue_name(n, s);
	return 0;
}

/* What the next look at it may change. */
static bool may_come_right(enum file_state state)
{
	return state == FILE_VANISHED || state == FILE_REFUSED || state == FILE_NO_SYMBOLS ||
	       state == FILE_MALFORMED;
}

int slot_ask_again(struct namer *n, struct slot *s)
{
	bool over = s->file->replaced; /* what is there now describes another program */

	if (!over) {
		s->stale = slot_grows(s);
		return slot_resume(n, s);
	}
	n->n_waiting_frames += s->n_late;
	while (s->n_late > 0)
		frame_finish(n, s->late[--s->n_late], FRAME_UNNAMED);
	return 0;
}

int slot_renew(struct namer *n, struct slot *s)
{
	s->stale = false;
	if (may_come_right(s->file->state))
		s->file->state = FILE_UNSEEN;
	int r = slot_forget(n, s);
	if (r < 0)
		return r;
	if (slot_is_dead(s)) {
		slot_dequeue(n, s);
		slot_finish(n, s);
		return 0;
	}
	s->renewing = s->fd[PART_MAIN] >= 0;
	s->file->state = FILE_OPENING;
	slot_enqueue_open(n, s, PART_MAIN, naming_user_get(n, s->asker));
	return 0;
}

int slot_fail(struct namer *n, struct slot *s, enum file_state state)
{
	int r = 0;

	s->file->state = state;
	if (s->stale && may_come_right(state)) {
		slot_enqueue_name(n, s); /* that was the look before the last */
		return 0;
	}
	slot_dequeue(n, s);
	if (state != FILE_NO_SYMBOLS)
		r = slot_release(n, s);
	slot_finish(n, s);
	return r;
}
