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

void slots_begin(struct slots *s)
{
	TAILQ_INIT(&s->all);
	TAILQ_INIT(&s->held);
}

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
		TAILQ_INSERT_TAIL(&n->slots.all, s, by_use);
	}
	*ret_slot = s;
	return 0;
}

static void slot_free(struct namer *n, struct slot *s)
{
	TAILQ_REMOVE(&n->slots.all, s, by_use);
	s->file->namer_slot = NULL;
	slot_dequeue(n, s);
	queue_drop(n, s);
	while (!TAILQ_EMPTY(&s->wishes))
		wish_free(n, TAILQ_FIRST(&s->wishes));
	if (s->fd[PART_MAIN] >= 0)
		TAILQ_REMOVE(&n->slots.held, s, held);
	for (int part = 0; part < N_PARTS; part++)
		if (s->fd[part] >= 0)
			close(s->fd[part]);
	free(s->found);
	free(s->split);
	free(s->late);
	slot_forget_answers(n, s);
	slot_settle_table(n, s, TABLE_UNASKED);
	free(s);
}

void slots_free(struct namer *n)
{
	struct slot *s;

	while ((s = TAILQ_FIRST(&n->slots.all)))
		slot_free(n, s);
}

struct slot *slots_next(const struct namer *n, const struct slot *s)
{
	return s ? TAILQ_NEXT(s, by_use) : TAILQ_FIRST(&n->slots.all);
}

void slot_touch(struct namer *n, struct slot *s)
{
	s->used_ns = n->now_ns;
	TAILQ_REMOVE(&n->slots.all, s, by_use);
	TAILQ_INSERT_TAIL(&n->slots.all, s, by_use);
	if (s->fd[PART_MAIN] < 0)
		return;
	TAILQ_REMOVE(&n->slots.held, s, held);
	TAILQ_INSERT_TAIL(&n->slots.held, s, held);
}

void slot_hold(struct namer *n, struct slot *s, enum message_part part, int fd, uint64_t bytes)
{
	if (s->fd[part] >= 0) {
		close(s->fd[part]);
		n->slots.n_fds--;
	} else if (part == PART_MAIN) {
		TAILQ_INSERT_TAIL(&n->slots.held, s, held);
	}
	s->fd[part] = fd;
	s->bytes[part] = bytes;
	n->slots.n_fds++;
	slot_touch(n, s);
}

void slot_drop(struct namer *n, struct slot *s, enum message_part part)
{
	if (s->fd[part] < 0)
		return;
	close(s->fd[part]);
	s->fd[part] = -1;
	n->slots.n_fds--;
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

/* --- copies of remote files ------------------------------------------------------------------- */

void slot_note_copy(struct namer *n, struct slot *s, uint64_t bytes)
{
	s->copied_bytes += bytes;
	n->slots.copied_bytes += bytes;
}

void slot_forget_copies(struct namer *n, struct slot *s)
{
	n->slots.copied_bytes -= s->copied_bytes;
	s->copied_bytes = 0;
}

uint64_t slots_copied_bytes(const struct namer *n)
{
	return n->slots.copied_bytes;
}

/* --- what the parser has ---------------------------------------------------------------------- */

uid_t slot_author(const struct slot *s, enum message_part part)
{
	const struct origin *o = &s->origin[part];

	switch (s->file->kind) {
	case FILE_KERNEL:
	case FILE_MODULE:
	case FILE_VDSO:
		return 0;
	default:
		return o->sole ? o->owner : s->asker;
	}
}

int slot_give(struct namer *n, struct slot *s, enum message_part part)
{
	struct message_file m = {.file = s->file->id, .part = part};
	struct iovec iov = {&m, sizeof(m)};
	int r = parser_ask(n, MESSAGE_FILE, &iov, 1, s->fd[part]);

	if (r < 0)
		return r;
	parser_saw(n, slot_author(s, part));
	s->joined |= 1u << part;
	if (part == PART_MAIN) {
		s->given = worker_generation(&n->parser);
		s->loaded = 0;
		s->joined = 0;
	}
	return 0;
}

bool slot_is_given(const struct namer *n, const struct slot *s)
{
	return s->given == worker_generation(&n->parser);
}

bool slot_is_loaded(const struct namer *n, const struct slot *s)
{
	return s->loaded == worker_generation(&n->parser);
}

void slot_note_loaded(const struct namer *n, struct slot *s)
{
	s->loaded = worker_generation(&n->parser);
}

/* The parser forgets it. */
static int forget(struct namer *n, struct slot *s)
{
	bool given = s->given != 0 && slot_is_given(n, s);

	queue_drop_loaded(n, s);
	slot_forget_answers(n, s);
	int r = given ? parser_forget(n, s->file) : 0;
	if (r < 0)
		return r;
	s->given = s->loaded = 0;
	s->joined = 0;
	return 0;
}

static uint64_t loaded_bytes(const struct slot *s)
{
	uint64_t sum = 0;

	for (enum message_part part = PART_MAIN; part < N_PARTS; part++)
		sum += s->bytes[part];
	return sum;
}

/* The total of loaded files stays below its limit; a single file may be larger. */
int slots_make_room_to_load(struct namer *n, const struct slot *wanted)
{
	uint64_t sum = wanted->bytes[PART_MAIN];
	struct slot *s = TAILQ_LAST(&n->slots.held, slot_list);

	for (; s; s = TAILQ_PREV(s, slot_list, held)) {
		if (s == wanted || s->loaded == 0 || !slot_is_loaded(n, s))
			continue;
		sum += loaded_bytes(s);
		if (sum <= NAMER_IMAGES_BYTES_MAX)
			continue;
		int r = forget(n, s);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- opening and closing ---------------------------------------------------------------------- */

int slot_release(struct namer *n, struct slot *s)
{
	if (s->fd[PART_MAIN] >= 0)
		TAILQ_REMOVE(&n->slots.held, s, held);
	for (enum message_part part = PART_MAIN; part < N_PARTS; part++)
		slot_drop(n, s, part);
	slot_forget_copies(n, s);
	s->tried = 0;
	s->first = 0;
	free(s->found);
	s->found = NULL;
	slot_want_split(s, NULL, 0);
	return forget(n, s);
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
	case FILE_NO_SYMBOLS:
		return !slot_has_starts(s);
	default:
		return true;
	}
}

bool slot_has_starts(const struct slot *s)
{
	return s->file->kind == FILE_ELF || s->file->kind == FILE_VDSO;
}

bool slot_is_openable(const struct slot *s)
{
	if (s->file->kind > FILE_JITDUMP)
		return false;
	return !slot_is_dead(s);
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
		(naming_user_opens_before(u, s->opens) ||
			!naming_user_may_open(&n->users, s->opens, n->now_ns)))
		slot_enqueue_open(n, s, s->part, u);
	if (s->fd[PART_MAIN] >= 0 || !slot_is_openable(s) || s->queue == QUEUE_OPEN ||
		s->queue >= QUEUE_OPENER)
		return 0;
	if (s->file->kind == FILE_VDSO)
		return hold_vdso(n, s);
	if (s->file->state == FILE_UNSEEN || s->file->state == FILE_READY)
		s->file->state = FILE_OPENING;
	slot_enqueue_open(n, s, PART_MAIN, u);
	return 0;
}

bool slot_is_awaited(const struct slot *s)
{
	return s->part == PART_MAIN && (s->queue == QUEUE_OPEN || s->queue == QUEUE_OPENER);
}

static bool waits_behind(struct namer *n, const struct slot *s, struct naming_user *u)
{
	struct wish *w;

	for (w = TAILQ_FIRST(&s->wishes); w; w = TAILQ_NEXT(w, of_slot))
		if (w->user == u || !naming_user_is_before(u, w->user, n->now_ns))
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

	for (struct slot *s = TAILQ_FIRST(&n->slots.held); s; s = TAILQ_NEXT(s, held)) {
		if (s->queue == QUEUE_NONE && s->n_frames == 0)
			return evict(n, s);
		if (!spare && !queue_is_on_trial(n, s) && waits_behind(n, s, u))
			spare = s;
	}
	return spare && evict(n, spare);
}

/* Debug files may exceed the limit: the file that they complete is freed soon, and would otherwise wait for
 * itself. */
bool slots_make_room(struct namer *n, const struct slot *s)
{
	while (n->slots.n_fds >= NAMER_FILES_OPEN_MAX ||
		n->slots.copied_bytes >= NAMER_COPIES_BYTES_MAX)
		if (!slot_evict(n, s->opens))
			return s->part != PART_MAIN;
	return true;
}

int slots_leave(struct namer *n)
{
	struct slot *next;
	int r = 0;

	if (n->now_ns < n->slots.leave_ns)
		return 0;
	n->slots.leave_ns = n->now_ns + NAMER_HELD_NS / 4;
	for (struct slot *s = TAILQ_FIRST(&n->slots.held); s && r == 0; s = next) {
		next = TAILQ_NEXT(s, held);
		if (n->now_ns < s->used_ns + NAMER_HELD_NS)
			break; /* so were those behind it */
		if (!s->leaves || slot_grows(s) || s->queue != QUEUE_NONE || s->n_frames > 0)
			continue;
		s->file->touched |= s->written_ns != 0;
		r = slot_release(n, s);
	}
	return r;
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

/* The parser compares the build id when it loads the file; without a build id the opener must prove the file
 * again. A file that is in no folder any more was unlinked, and only its owner can still write to it. */
int slot_prove(struct namer *n, struct slot *s)
{
	struct stat st;

	s->unproved = false;
	if (++s->n_proved > NAMER_PROVED_MAX)
		return slot_fail(n, s, FILE_VANISHED);
	if (s->file->n_build_id)
		return forget(n, s);
	if (fstat(s->fd[PART_MAIN], &st) == 0 && st.st_nlink == 0)
		return 0;
	return slot_release(n, s);
}

/* Is this a state that the next look at the file may change? */
static bool may_come_right(enum file_state state)
{
	return state == FILE_VANISHED || state == FILE_REFUSED || state == FILE_NO_SYMBOLS ||
	       state == FILE_MALFORMED;
}

int slot_renew(struct namer *n, struct slot *s)
{
	s->stale = false;
	slot_settle_table(n, s, TABLE_UNASKED);
	if (may_come_right(s->file->state))
		s->file->state = FILE_UNSEEN;
	int r = forget(n, s);
	if (r < 0)
		return r;
	if (slot_is_dead(s)) {
		slot_dequeue(n, s);
		slot_finish(n, s);
		return 0;
	}
	s->renewing = s->fd[PART_MAIN] >= 0;
	s->file->state = FILE_OPENING;
	slot_enqueue_open(n, s, PART_MAIN, naming_user_get(&n->users, s->asker));
	return 0;
}

int slot_fail(struct namer *n, struct slot *s, enum file_state state)
{
	int r = 0;

	s->file->state = state;
	if (s->stale && may_come_right(state)) {
		slot_enqueue_name(n, s); /* one more look, which is the last */
		return 0;
	}
	slot_dequeue(n, s);
	if (state != FILE_NO_SYMBOLS)
		r = slot_release(n, s);
	slot_finish(n, s);
	return r;
}

int slots_ask_again(struct namer *n)
{
	int r = 0;

	for (struct slot *s = slots_next(n, NULL); s && r == 0; s = slots_next(n, s))
		r = slot_ask_again(n, s);
	return r;
}

bool slot_may_be_completed(const struct slot *s)
{
	const struct file *f = s->file;

	return f->kind == FILE_ELF && !f->has_debug && !f->replaced && !s->no_debug &&
	       (f->state == FILE_READY || f->state == FILE_NO_SYMBOLS);
}

/* The parser will read the file again, with its debug file. One that it is reading now gets the debug file after that. */
int slot_complete(struct namer *n, struct slot *s)
{
	s->tried &= 1u << PART_MAIN;
	if (s->file->state == FILE_NO_SYMBOLS)
		s->file->state = s->fd[PART_MAIN] >= 0 ? FILE_READY : FILE_UNSEEN;
	if (s->queue == QUEUE_PARSER)
		return 0;
	for (enum message_part part = PART_DEBUG; part < N_PARTS; part++)
		slot_drop(n, s, part);
	return forget(n, s);
}

bool slot_part_is_fetched(const struct slot *s, enum message_part part)
{
	return part == PART_DEBUG && s->file->debug_path;
}

/* --- answers for functions ----------------------------------------------------------------------- */

void slot_forget_answers(struct namer *n, struct slot *s)
{
	n->slots.n_answers -= s->answers.n;
	answers_clear(&s->answers);
}

/* Drop the answers of the open file that was not used for longest. */
static void make_room_for_answers(struct namer *n)
{
	struct slot *s = TAILQ_FIRST(&n->slots.held);

	while (s && s->answers.n == 0)
		s = TAILQ_NEXT(s, held);
	if (s)
		slot_forget_answers(n, s);
}

void slot_keep_answer(struct namer *n, struct slot *s, uint64_t from, uint64_t to,
	const struct frame *frame, enum frame_state state)
{
	const struct place *place = frame->place;
	const struct naming_answer answer = {.from = from,
		.n_bytes = (uint32_t)(to - from),
		.is_placed = state == FRAME_PLACED,
		.function = frame->n_places == 1 ? place->function : NULL};

	if ((state != FRAME_NAMED && state != FRAME_PLACED) || frame->offset < from ||
		frame->offset >= to || to - from > UINT32_MAX || !answer.function || place->line ||
		place->source || slot_grows(s))
		return;
	if (n->slots.n_answers >= ANSWERS_MAX)
		make_room_for_answers(n);
	n->slots.n_answers += answers_add(&s->answers, &answer);
}

/* Does the present parser have the contents by which it answered? And is no debug file to be tried, which may know
 * lines? */
static bool answers_are_valid(const struct namer *n, struct slot *s)
{
	const bool is_whole = s->no_debug || !s->wants.want_debug || s->tried & 1u << PART_DEBUG;

	return s->fd[PART_MAIN] >= 0 && slot_is_loaded(n, s) && is_whole && !s->paused &&
	       !s->stale && !s->file->replaced && slot_look(s) == SLOT_SAME && !s->unproved;
}

bool slot_knows_answer(struct namer *n, struct slot *s, struct frame *frame)
{
	const struct naming_answer *a = answers_find(&s->answers, frame->offset);
	struct place *place = a && answers_are_valid(n, s) ? calloc(1, sizeof(*place)) : NULL;

	if (!place)
		return false;
	place->function = a->function;
	frame_set_places(n->options.files, frame, place, 1);
	frame_settle(n, frame, a->is_placed ? FRAME_PLACED : FRAME_NAMED);
	slot_touch(n, s);
	return true;
}

/* --- sweeping --------------------------------------------------------------------------------- */

void slots_sweep_mark(const struct namer *n, struct file_marks *m)
{
	for (const struct slot *s = slots_next(n, NULL); s; s = slots_next(n, s)) {
		if (s->queue != QUEUE_NONE || s->n_frames > 0)
			file_marks_keep(m, s->file);
		slot_sweep_mark_frames(s, m);
	}
}

int slots_sweep(struct namer *n, const struct file_marks *m)
{
	struct slot *next;

	for (struct slot *s = slots_next(n, NULL); s; s = next) {
		next = slots_next(n, s);
		slot_sweep_late(s, m);
		if (m->file[s->file->id - 1] == SWEEP_KEPT)
			continue;
		int r = slot_release(n, s);
		if (r < 0)
			return r;
		slot_free(n, s);
	}
	return 0;
}

void slots_keep_names(struct namer *n)
{
	for (struct slot *s = TAILQ_FIRST(&n->slots.all); s; s = TAILQ_NEXT(s, by_use)) {
		if (n->now_ns > s->used_ns + NAMER_ANSWERS_KEPT_NS)
			slot_forget_answers(n, s);
		for (uint32_t i = 0; i < s->answers.n; i++)
			strings_keep(s->answers.answer[i].function);
	}
}
