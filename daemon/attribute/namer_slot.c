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
		for (int part = 0; part < N_PARTS; part++)
			s->fd[part] = -1;
		file->namer_slot = s;
		TAILQ_INSERT_TAIL(&n->slots, s, by_use);
	}
	*ret_slot = s;
	return 0;
}

struct slot *slot_free(struct slot *s)
{
	for (int part = 0; part < N_PARTS; part++)
		if (s->fd[part] >= 0)
			close(s->fd[part]);
	free(s->found);
	free(s->frame);
	free(s->late);
	free(s);
	return NULL;
}

void slot_dequeue(struct namer *n, struct slot *s)
{
	if (s->queue == QUEUE_OPEN)
		TAILQ_REMOVE(&n->to_open, s, queued);
	else if (s->queue == QUEUE_NAME)
		TAILQ_REMOVE(&n->to_name, s, queued);
	s->queue = QUEUE_NONE;
}

void slot_enqueue_open(struct namer *n, struct slot *s, enum message_part part)
{
	slot_dequeue(n, s);
	s->part = part;
	s->queue = QUEUE_OPEN;
	/* A debug file finishes a file that is begun; and a process that lives may not for long. */
	if (part == PART_MAIN)
		TAILQ_INSERT_TAIL(&n->to_open, s, queued);
	else
		TAILQ_INSERT_HEAD(&n->to_open, s, queued);
	n->fresh = true;
}

void slot_enqueue_name(struct namer *n, struct slot *s)
{
	slot_dequeue(n, s);
	s->queue = QUEUE_NAME;
	TAILQ_INSERT_TAIL(&n->to_name, s, queued);
	n->fresh = true;
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

int slot_push(struct namer *n, struct slot *s, struct frame *frame)
{
	int r = reserve(&s->frame, s->n_frames, &s->size_frames);
	if (r < 0)
		return r;
	frame->state = FRAME_ASKED;
	s->frame[s->n_frames++] = frame;
	n->fresh = true;
	return 0;
}

/* A stripped file has nothing to name, but call frame information to unwind by. */
static bool is_openable(const struct slot *s)
{
	if (s->file->kind > FILE_JITDUMP)
		return false;
	return !slot_is_dead(s) || s->file->state == FILE_NO_SYMBOLS;
}

int slot_want(struct namer *n, struct slot *s)
{
	if (s->fd[PART_MAIN] >= 0 || !is_openable(s) || s->queue == QUEUE_OPEN ||
		s->queue == QUEUE_FLIGHT)
		return 0;
	if (s->file->kind == FILE_VDSO)
		return opener_vdso(n, s);
	if (s->file->state == FILE_UNSEEN || s->file->state == FILE_READY)
		s->file->state = FILE_OPENING;
	slot_enqueue_open(n, s, PART_MAIN);
	return 0;
}

bool slot_is_awaited(const struct namer *n, const struct slot *s)
{
	return s->part == PART_MAIN && (s->queue == QUEUE_OPEN || n->opening == s);
}

bool slot_evict(struct namer *n)
{
	for (struct slot *s = TAILQ_FIRST(&n->slots); s; s = TAILQ_NEXT(s, by_use))
		if (s->fd[PART_MAIN] >= 0 && s->queue == QUEUE_NONE && s->n_frames == 0)
			return slot_release(n, s) == 0;
	return false;
}

/* A JIT compiler may write its line later, or all lines at its end. */
static bool frame_is_late(const struct namer *n, const struct frame *f, enum frame_state state)
{
	struct slot *s = f->file->namer_slot;

	if (state == FRAME_NAMED || n->ending || n->off || !slot_grows(s) || f->file->replaced ||
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

/* The callback may ask for more frames of this very file, so its list is taken first. */
void slot_finish(struct namer *n, struct slot *s)
{
	struct frame **frame = s->frame;
	size_t n_frames = s->n_frames;

	s->frame = NULL;
	s->n_frames = s->size_frames = 0;
	for (size_t i = 0; i < n_frames; i++)
		frame_finish(n, frame[i], FRAME_UNNAMED);
	free(frame);
}

/* What the next look at it may change. */
static bool may_come_right(enum file_state state)
{
	return state == FILE_VANISHED || state == FILE_REFUSED || state == FILE_NO_SYMBOLS ||
	       state == FILE_MALFORMED;
}

int slot_ask_again(struct namer *n, struct slot *s)
{
	bool over = n->off || s->file->replaced; /* what is there now tells of another program */

	n->n_waiting_frames += s->n_late;
	while (s->n_late > 0) {
		struct frame *frame = s->late[--s->n_late];
		int r = over ? 0 : slot_push(n, s, frame);
		if (r < 0) {
			s->n_late++;
			n->n_waiting_frames -= s->n_late;
			return r;
		}
		if (over)
			frame_finish(n, frame, FRAME_UNNAMED);
	}
	if (over)
		return 0;
	s->stale = true;
	if (s->queue == QUEUE_NONE)
		slot_enqueue_name(n, s);
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
	slot_enqueue_open(n, s, PART_MAIN);
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
