/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Slots: the namer's data for each file. Descriptors are scarce, and a file once named is rarely needed
 * again, so slots are listed with the least recently used first, and closed from that end. A slot itself
 * stays until a sweep frees its file: it records that a file was tried and must not be tried again.
 */
#include "daemon/naming/namer_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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

struct slot *slot_free(struct namer *n, struct slot *s)
{
	slot_dequeue(n, s);
	if (n->trial_slot == s)
		n->trial_slot = NULL;
	if (n->stays == s)
		n->stays = NULL;
	while (!TAILQ_EMPTY(&s->wishes))
		wish_free(n, TAILQ_FIRST(&s->wishes));
	if (s->fd[PART_MAIN] >= 0)
		TAILQ_REMOVE(&n->held, s, held);
	for (int part = 0; part < N_PARTS; part++)
		if (s->fd[part] >= 0)
			close(s->fd[part]);
	free(s->found);
	free(s->split);
	free(s->late);
	free(s);
	return NULL;
}

void slot_touch(struct namer *n, struct slot *s)
{
	s->used_ns = n->now_ns;
	TAILQ_REMOVE(&n->slots, s, by_use);
	TAILQ_INSERT_TAIL(&n->slots, s, by_use);
	if (s->fd[PART_MAIN] < 0)
		return;
	TAILQ_REMOVE(&n->held, s, held);
	TAILQ_INSERT_TAIL(&n->held, s, held);
}

void slot_hold(struct namer *n, struct slot *s, enum message_part part, int fd, uint64_t bytes)
{
	if (s->fd[part] >= 0) {
		close(s->fd[part]);
		n->n_fds--;
	} else if (part == PART_MAIN) {
		TAILQ_INSERT_TAIL(&n->held, s, held);
	}
	s->fd[part] = fd;
	s->bytes[part] = bytes;
	n->n_fds++;
	slot_touch(n, s);
}

void slot_drop(struct namer *n, struct slot *s, enum message_part part)
{
	if (s->fd[part] < 0)
		return;
	close(s->fd[part]);
	s->fd[part] = -1;
	n->n_fds--;
}

int slot_want_split(struct slot *s, const uint8_t *path, size_t n_path)
{
	char *wanted = path ? strndup((const char *)path, n_path) : NULL;

	if (path && !wanted)
		return -ENOMEM;
	free(s->split);
	s->split = wanted;
	s->tried &= ~(1u << PART_SPLIT);
	return 0;
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
	if (s->fd[PART_MAIN] >= 0)
		TAILQ_REMOVE(&n->held, s, held);
	for (enum message_part part = PART_MAIN; part < N_PARTS; part++)
		slot_drop(n, s, part);
	n->copied_bytes -= s->copied_bytes;
	s->copied_bytes = 0;
	s->tried = 0;
	s->first = 0;
	free(s->found);
	s->found = NULL;
	slot_want_split(s, NULL, 0);
	return slot_forget(n, s);
}

bool slot_is_dead(const struct slot *s)
{
	if (s->file->kind > FILE_JITDUMP)
		return true; /* anonymous, unknown: there is no file */
	if (s->file->replaced && s->fd[PART_MAIN] < 0)
		return true; /* replaced by one that would be mistaken for it */
	switch (s->file->state) {
	case FILE_UNSEEN:
	case FILE_OPENING:
	case FILE_READY:
		return false;
	default:
		return true;
	}
}

/* A stripped file has no names, but call frame information for unwinding. */
static bool is_openable(const struct slot *s)
{
	if (s->file->kind > FILE_JITDUMP)
		return false;
	return !slot_is_dead(s) || s->file->state == FILE_NO_SYMBOLS;
}

static int hold_vdso(struct namer *n, struct slot *s)
{
	int fd = -1;
	uint64_t bytes;

	if (vdso_copy(&fd, &bytes) < 0)
		return slot_fail(n, s, FILE_VANISHED);
	slot_hold(n, s, PART_MAIN, fd, bytes);
	if (s->file->state != FILE_NO_SYMBOLS)
		s->file->state = FILE_READY;
	return 0;
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
		return hold_vdso(n, s);
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

/* Close the slot's files: later writes to them go unnoticed from now on. */
static bool evict(struct namer *n, struct slot *s)
{
	s->file->touched |= s->written_ns != 0;
	return slot_release(n, s) == 0;
}

bool slot_evict(struct namer *n, struct naming_user *u)
{
	struct slot *spare = NULL;

	for (struct slot *s = TAILQ_FIRST(&n->held); s; s = TAILQ_NEXT(s, held)) {
		if (s->queue == QUEUE_NONE && s->n_frames == 0)
			return evict(n, s);
		if (!spare && s != n->trial_slot && waits_behind(n, s, u))
			spare = s;
	}
	return spare && evict(n, spare);
}

int slots_leave(struct namer *n)
{
	struct slot *next;
	int r = 0;

	if (n->now_ns < n->leave_ns)
		return 0;
	n->leave_ns = n->now_ns + NAMER_HELD_NS / 4;
	for (struct slot *s = TAILQ_FIRST(&n->held); s && r == 0; s = next) {
		next = TAILQ_NEXT(s, held);
		if (n->now_ns < s->used_ns + NAMER_HELD_NS)
			break; /* so are those behind it */
		if (!s->leaves || slot_grows(s) || s->queue != QUEUE_NONE || s->n_frames > 0)
			continue;
		s->file->touched |= s->written_ns != 0;
		r = slot_release(n, s);
	}
	return r;
}

/* A JIT compiler may write its line later, or all lines at its end. A file that was not found may be. */
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

static int64_t in_ns(const struct statx_timestamp *t)
{
	return t->tv_sec * 1000000000ll + t->tv_nsec;
}

/* The inode of an open file is in memory, and a file system with times from our clock is local. So
 * besides close, fstat is the only call that cannot hang on this descriptor. */
int slot_look(struct slot *s)
{
	const unsigned wanted = STATX_MTIME | STATX_CTIME;
	struct statx x;

	if (s->fd[PART_MAIN] < 0 || s->written_ns == 0 || s->file->kind != FILE_ELF ||
		statx(s->fd[PART_MAIN], "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, wanted, &x) < 0)
		return SLOT_SAME;
	if (in_ns(&x.stx_mtime) != s->written_ns) {
		s->file->replaced = true;
		return SLOT_REWRITTEN;
	}
	if (in_ns(&x.stx_ctime) == s->status_ns)
		return SLOT_SAME;
	s->status_ns = in_ns(&x.stx_ctime);
	s->unproved = s->file->touched = true;
	return SLOT_TOUCHED;
}

/* The parser compares the build id when it loads it; else the opener has to prove it again. A file that is in no
 * folder any more was unlinked, and only its owner can still write to it. */
int slot_prove(struct namer *n, struct slot *s)
{
	struct stat st;

	s->unproved = false;
	if (++s->n_proved > NAMER_PROVED_MAX)
		return slot_fail(n, s, FILE_VANISHED);
	if (s->file->n_build_id)
		return slot_forget(n, s);
	if (fstat(s->fd[PART_MAIN], &st) == 0 && st.st_nlink == 0)
		return 0;
	return slot_release(n, s);
}

/* The callback may request more frames of this very file, so the wish is removed first. */
void slot_finish(struct namer *n, struct slot *s)
{
	struct wish *w;
	size_t n_wishes = 0;

	s->n_proved = 0;
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
			int r = frames_reserve(&s->late, s->n_late, &s->size_late);
			if (r < 0)
				return r;
			s->late[s->n_late++] = w->frame[i];
			n->n_waiting_frames--;
			/* once: its other entries are no longer valid */
			w->frame[i]->asker = FRAME_LATE;
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

/* Is this a state that the next look at the file may change? */
static bool may_come_right(enum file_state state)
{
	return state == FILE_VANISHED || state == FILE_REFUSED || state == FILE_NO_SYMBOLS ||
	       state == FILE_MALFORMED;
}

int slot_ask_again(struct namer *n, struct slot *s)
{
	bool over = s->file->replaced; /* the current file describes another program */

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
