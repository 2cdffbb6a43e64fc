/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The parser's side of the namer. A slot with frames advances one request at a time: send the
 * descriptor, load, send a debug file if one is needed and was found, then name a batch of offsets,
 * then the next slot. After a restart the new parser has no descriptors and nothing loaded (the
 * slots' generations are older), and the same steps restore both from the descriptors that the
 * daemon holds.
 */
#include "daemon/naming/namer_private.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/naming/reply.h"

#define FORGOTTEN_MAX 3 /* consecutive times that the parser may forget a file */

/* The parser has a request for the slot, on behalf of that user. */
static void sent(struct namer *n, struct slot *s, struct naming_user *u)
{
	slot_send(n, s, QUEUE_PARSER);
	slot_touch(n, s);
	n->parsing.slot = s;
	naming_users_serve(&n->users, WORKER_PARSER, u);
}

/* The user of the parser's request. */
static struct naming_user *asker(const struct namer *n)
{
	return naming_users_served(&n->users, WORKER_PARSER);
}

bool parser_is_asked(const struct namer *n)
{
	return n->parsing.slot || job_is_asked(n);
}

/* A request that is not delivered leaves the worker broken, which namer.c sees. */
static int ask_forget(struct namer *n)
{
	(void)parser_ask_forget(n);
	return 0;
}

static int ask_load(struct namer *n, struct slot *s, struct naming_user *u)
{
	const struct file *f = s->file;
	struct message_load m = {.file = f->id, .kind = f->kind, .base = f->map_start};
	struct iovec iov[2] = {{&m, sizeof(m)}};
	size_t n_iov = 1;

	m.n_build_id = f->n_build_id <= sizeof(m.build_id) ? f->n_build_id : 0;
	memcpy(m.build_id, f->build_id, sizeof(m.build_id));
	if (f->kind == FILE_MODULE && f->path) {
		/* "[nf_tables]" is the module nf_tables. */
		const char *name = f->path + (f->path[0] == '[');
		size_t length = strcspn(name, "]");
		if (length > 0 && length < 64) {
			m.n_module = (uint16_t)length;
			iov[n_iov++] = (struct iovec){(void *)name, length};
		}
	}
	int r = slots_make_room_to_load(n, s);
	if (r < 0)
		return r;
	if (parser_has_to_forget(n))
		return ask_forget(n);
	if (parser_ask(n, MESSAGE_LOAD, iov, n_iov, -1) == 0)
		sent(n, s, u);
	return 0;
}

/* Let a frame wait again. */
static int put_frame_back(
	struct namer *n, struct slot *s, struct frame *frame, struct naming_user *u)
{
	bool hurried = frame->state != FRAME_ASKED || frame->asker != u->index;

	return hurried ? 0 : slot_push(n, s, frame, u);
}

/* Let requested frames that were not answered wait again. */
static int put_back(struct namer *n, struct slot *s, struct naming_user *u)
{
	while (n->parsing.n_answered < n->parsing.n_batch) {
		int r = put_frame_back(n, s, n->parsing.batch[n->parsing.n_answered], u);
		if (r < 0)
			return r;
		n->parsing.n_answered++;
	}
	n->parsing.n_batch = n->parsing.n_answered = 0;
	return 0;
}

static int ask_names(struct namer *n, struct slot *s, struct wish *w)
{
	struct message_name m = {.file = s->file->id, .no_split = s->split != NULL};
	struct message_offset offset[MESSAGE_OFFSETS_MAX];
	struct naming_user *u = w->user;

	n->parsing.n_answered = 0;
	n->parsing.n_batch = wish_take(n, w, n->parsing.batch, MESSAGE_OFFSETS_MAX);
	for (; m.n < n->parsing.n_batch; m.n++)
		offset[m.n] = (struct message_offset){
			n->parsing.batch[m.n]->offset, slot_order(s, n->parsing.batch[m.n]), 0};
	if (w->n == 0)
		wish_free(n, w);
	if (m.n == 0) {
		s->n_proved = 0;
		slot_enqueue_first(n, s);
		return 0;
	}
	struct iovec iov[] = {{&m, sizeof(m)}, {offset, m.n * sizeof(*offset)}};
	if (parser_ask(n, MESSAGE_NAME, iov, 2, -1) < 0)
		return put_back(n, s, u);
	(void)slot_want_split(s, NULL, 0);
	sent(n, s, u);
	gather_note_served(n);
	return 0;
}

static int ask_table(struct namer *n, struct slot *s, struct naming_user *u)
{
	if (slot_ask_table(n, s) == 0)
		sent(n, s, u);
	return 0;
}

static bool is_wanted(const struct slot *s, enum message_part part)
{
	switch (part) {
	case PART_DEBUG:
		return s->wants.want_debug;
	case PART_ALT:
		return s->wants.want_alt;
	case PART_PACKAGE:
		return s->split;
	case PART_SPLIT:
		return s->split && s->split[0] && s->copied_bytes < NAMER_COPIES_BYTES_MAX;
	default:
		return false;
	}
}

static bool is_worth(
	const struct namer *n, const struct slot *s, enum message_part part, struct naming_user *u)
{
	/* A program that waits for a split unit keeps the copies of its other split units, so these
	 * copies have a limit of their own. */
	if (part == PART_SPLIT && slots_copied_bytes(n) >= 2 * NAMER_COPIES_BYTES_MAX)
		return false;
	return is_wanted(s, part) && !s->no_debug && !(s->tried & 1u << part) &&
	       account_deaths(&u->opens, n->now_ns) < NAMER_DEBUG_HANGS_MAX;
}

/* Join debug files after the file itself; then ask the parser again, before another file is tried for a
 * split unit. True: a step was taken. */
static bool parts_step(struct namer *n, struct slot *s, struct naming_user *u)
{
	for (enum message_part part = PART_DEBUG; part < N_PARTS; part++) {
		if (s->fd[part] >= 0 && !(s->joined & 1u << part)) {
			if (slot_give(n, s, part) == 0) {
				sent(n, s, u);
				if (part >= PART_PACKAGE)
					(void)slot_want_split(s, NULL, 0);
			}
			return true;
		}
		if (s->fd[part] < 0 && is_worth(n, s, part, u)) {
			slot_enqueue_open(n, s, part, u);
			return true;
		}
	}
	return false;
}

/* The next step of one slot with frames. */
static int slot_step(struct namer *n, struct wish *w)
{
	struct slot *s = w->slot;
	struct naming_user *u = w->user;

	if (s->file->replaced && s->fd[PART_MAIN] < 0)
		return slot_fail(n, s, FILE_VANISHED);
	if (s->stale)
		return slot_renew(n, s);
	if (slot_look(s) == SLOT_REWRITTEN)
		return slot_fail(n, s, FILE_VANISHED);
	int r = s->unproved ? slot_prove(n, s) : 0;
	if (r < 0)
		return r;
	const bool for_table = s->table_state == TABLE_WANTED && slot_is_openable(s);
	if (slot_is_dead(s) && !for_table) {
		slot_finish(n, s);
		return 0;
	}
	if (s->fd[PART_MAIN] < 0)
		return slot_want(n, s, u);
	if (slot_is_refused(n, s))
		return slot_pause(n, s);
	if (!slot_is_given(n, s)) {
		if (slot_give(n, s, PART_MAIN) == 0)
			sent(n, s, u);
		return 0;
	}
	if (for_table && !slot_grows(s))
		return ask_table(n, s, u);
	if (!slot_is_loaded(n, s))
		return ask_load(n, s, u);
	if (parts_step(n, s, u))
		return 0;
	const bool any = s->file->has_symbols || s->file->has_debug || slot_grows(s);
	if (!any && !slot_has_starts(s))
		return slot_fail(n, s, FILE_NO_SYMBOLS);
	s->file->state = any ? FILE_READY : FILE_NO_SYMBOLS;
	if (slot_must_read_on(s)) {
		if (slot_ask_grow(n, s) == 0)
			sent(n, s, u);
		return 0;
	}
	if (for_table) /* of all that was read */
		return ask_table(n, s, u);
	return ask_names(n, s, w);
}

/* A slot that was just loaded is named before others can evict it; a slot on trial after a parser
 * death comes before all others, and so does a stack. */
static struct wish *next_wish(struct namer *n)
{
	struct wish *w = queue_first(n);

	return w || job_is_on_trial(n) || gather_waits(n) ? w : queue_next(n);
}

int parser_feed(struct namer *n, bool *ret_fed)
{
	if (!worker_is_idle(&n->parser))
		return 0;
	if (parser_has_to_forget(n)) {
		*ret_fed = true;
		return ask_forget(n);
	}
	struct wish *w = next_wish(n);
	bool stacks_first = n->parsing.stacks_first = !n->parsing.stacks_first;
	if (!w || (stacks_first && !queue_has_first(n))) {
		struct wish *for_stack = NULL;
		bool fed = false;
		int r = job_feed(n, &for_stack, &fed);
		if (r < 0 || fed) {
			*ret_fed = fed;
			return r;
		}
		if (for_stack)
			w = for_stack;
	}
	if (!w)
		return 0;
	*ret_fed = true;
	return slot_step(n, w);
}

/* --- answers ---------------------------------------------------------------------------------- */

/* The parser has answered for the slot, or ended. */
static void take_back(struct namer *n, struct slot *s)
{
	n->parsing.slot = NULL;
	slot_dequeue(n, s);
}

static void settle(struct namer *n, struct slot *s)
{
	take_back(n, s);
	/* Continue with it before others, so that it is used while loaded. */
	slot_enqueue_first(n, s);
}

static int file_forgotten(struct namer *n, struct slot *s)
{
	s->given = s->loaded = 0;
	if (++s->forgotten <= FORGOTTEN_MAX) {
		settle(n, s);
		return 0;
	}
	take_back(n, s);
	return slot_fail(n, s, FILE_OVERSIZE);
}

/* Try the next candidate, since this is not the file that was mapped. */
static int file_other(struct namer *n, struct slot *s)
{
	uint32_t next = s->first + 1;

	take_back(n, s);
	int r = slot_release(n, s);
	if (r < 0)
		return r;
	s->first = next;
	return slot_want(n, s, asker(n));
}

/* Did the parser read the contents that were proved? If not, its answer may be about other contents, and the
 * next step proves them again. */
static bool is_proved(struct slot *s)
{
	return slot_look(s) == SLOT_SAME && !s->unproved;
}

static int hear_loaded(struct namer *n, const uint8_t *bytes, size_t n_bytes)
{
	struct slot *s = n->parsing.slot;
	struct message_loaded m;

	if (!s || reply_loaded(bytes, n_bytes, &m) < 0 ||
		(m.state != STATE_FORGOTTEN && m.file != s->file->id))
		return -EBADMSG;
	switch (m.state) {
	case STATE_FORGOTTEN:
		return file_forgotten(n, s);
	case STATE_VANISHED:
		if (s->file->kind == FILE_ELF)
			return file_other(n, s);
		break;
	case STATE_READY:
	case STATE_NO_SYMBOLS:
		slot_forget_answers(n, s); /* of another parser, or without the part that came */
		if (!is_proved(s)) {
			settle(n, s);
			return 0;
		}
		s->file->has_symbols = m.has_symbols;
		s->file->has_debug = m.has_debug;
		slot_note_loaded(n, s);
		s->wants = m;
		slot_begin_growth(s);
		if (s->file->n_build_id == 0 && m.n_build_id) {
			s->file->n_build_id = m.n_build_id;
			memcpy(s->file->build_id, m.build_id, m.n_build_id);
		}
		if (s->joined & 1u << PART_SPLIT)
			slot_drop(n, s, PART_SPLIT); /* there may be thousands */
		settle(n, s);
		queue_put_first(n, s);
		return 0;
	}
	take_back(n, s);
	return slot_fail(n, s, (enum file_state)m.state);
}

static int fill_places(
	struct namer *n, const struct reply_naming *from, struct frame *frame, bool *ret_complete)
{
	*ret_complete = true;
	if (from->n_places == 0)
		return 0;
	struct place *place = calloc(from->n_places, sizeof(*place));
	if (!place)
		return -ENOMEM;
	for (uint8_t i = 0; i < from->n_places; i++) {
		const struct reply_place *p = &from->place[i];
		place[i].line = p->line;
		place[i].inlined = p->inlined;
		frame->file->split_missing |= p->split_missing;
		if (p->n_function) {
			place[i].function =
				strings_intern(&n->strings, p->function, p->n_function, asker(n));
			*ret_complete &= place[i].function != NULL;
		}
		if (p->n_source)
			place[i].source =
				strings_intern(&n->strings, p->source, p->n_source, asker(n));
	}
	if (!*ret_complete) {
		free(place);
		return 0;
	}
	frame_set_places(n->options.files, frame, place, from->n_places);
	return 0;
}

/* Name code of an ELF file that has no symbol. */
static int fill_address(
	struct namer *n, const struct reply_naming *from, struct frame *frame, bool *ret_complete)
{
	const struct file *f = frame->file;
	char name[CODE_NAME_BYTES];
	struct reply_naming made = {0};

	if ((f->kind == FILE_ELF || f->kind == FILE_VDSO) && from->outcome != NAMING_NAMED)
		made.n_places = from->addr != 0 || from->outcome == NAMING_PLACED;
	made.place[0].function = name;
	made.place[0].n_function =
		(uint16_t)file_call_code(f->path, from->addr, from->outcome == NAMING_PLACED, name);
	return fill_places(n, &made, frame, ret_complete);
}

static int finish_naming(struct namer *n, const struct reply_naming *from, struct frame *frame)
{
	static const enum frame_state states[] = {
		[NAMING_NAMED] = FRAME_NAMED,
		[NAMING_OUT_OF_SYMBOL] = FRAME_OUT_OF_SYMBOL,
		[NAMING_NO_SYMBOLS] = FRAME_UNNAMED,
		[NAMING_PLACED] = FRAME_PLACED,
	};
	bool complete = false;

	/* If two users ask for a frame alternately, a batch may have it twice: it already has its
	 * name. */
	if (frame->state != FRAME_ASKED)
		return 0;
	int r = from->n_places > 0 ? fill_places(n, from, frame, &complete)
				   : fill_address(n, from, frame, &complete);
	if (r < 0)
		return r;
	const bool is_known = frame->n_places > 0 || states[from->outcome] == FRAME_OUT_OF_SYMBOL;
	if (complete && is_known)
		slot_keep_answer(n, frame->file->namer_slot, from->from, from->to, frame,
			states[from->outcome]);
	frame_finish(n, frame, complete && is_known ? states[from->outcome] : FRAME_UNNAMED);
	return 0;
}

/* The rest of the batch waits for a file. */
static int hear_wanted(struct namer *n, struct slot *s, const struct reply_names *names)
{
	if (!names->named.wants_split)
		return -EBADMSG;
	s->n_splits = n->parsing.n_answered > 0 ? 1 : s->n_splits + 1;
	if (s->n_splits > NAMER_SPLITS_MAX)
		return -EBADMSG;
	int r = slot_want_split(s, names->split, names->named.n_split);
	queue_put_first(n, s);
	return r < 0 ? r : put_back(n, s, asker(n));
}

static int hear_named(struct namer *n, const uint8_t *bytes, size_t n_bytes)
{
	struct slot *s = n->parsing.slot;
	struct reply_names names;
	struct reply_naming naming;

	if (!s || reply_names_begin(&names, bytes, n_bytes) < 0 ||
		names.named.file != s->file->id ||
		names.named.n > n->parsing.n_batch - n->parsing.n_answered)
		return -EBADMSG;
	if (names.named.state == STATE_FORGOTTEN) {
		if (n->parsing.n_answered > 0 || names.at != names.end)
			return -EBADMSG;
		int r = put_back(n, s, asker(n));
		return r < 0 ? r : file_forgotten(n, s);
	}
	const bool proved = is_proved(s);
	for (;;) {
		int r = reply_names_next(&names, &naming);
		if (r == REPLY_END)
			break;
		struct frame *frame = r == 0 ? n->parsing.batch[n->parsing.n_answered++] : NULL;
		if (r == 0)
			r = proved ? finish_naming(n, &naming, frame)
				   : put_frame_back(n, s, frame, asker(n));
		if (r < 0)
			return r;
	}
	if (!names.named.last)
		return names.named.n > 0 ? PARSER_MORE : -EBADMSG;
	queue_drop_first(n);
	if (n->parsing.n_answered != n->parsing.n_batch) {
		int r = hear_wanted(n, s, &names);
		if (r < 0)
			return r;
	} else {
		s->n_splits = 0;
	}
	n->parsing.n_batch = n->parsing.n_answered = 0;
	s->forgotten = 0;
	s->retries = 0;
	s->n_proved = proved ? 0 : s->n_proved;
	settle(n, s);
	return 0;
}

static int hear_grown(struct namer *n, const uint8_t *bytes, size_t n_bytes)
{
	struct slot *s = n->parsing.slot;
	int r = s ? slot_hear_grown(n, s, bytes, n_bytes) : -EBADMSG;

	if (r < 0)
		return r;
	if (r == STATE_FORGOTTEN)
		return file_forgotten(n, s);
	if (r == 0) {
		settle(n, s);
		return 0;
	}
	take_back(n, s);
	return slot_fail(n, s, (enum file_state)r);
}

static int hear_tabled(struct namer *n, const uint8_t *bytes, size_t n_bytes)
{
	struct slot *s = n->parsing.slot;
	int r = s ? slot_hear_table(n, s, bytes, n_bytes) : -EBADMSG;

	if (r < 0 || r == PARSER_MORE)
		return r;
	if (r == TABLE_FORGOTTEN)
		return file_forgotten(n, s);
	if (r == TABLE_OTHER_FILE)
		return file_other(n, s);
	if (!is_proved(s))
		slot_settle_table(n, s, TABLE_WANTED); /* once more */
	s->forgotten = 0;
	s->retries = 0;
	queue_drop_first(n);
	settle(n, s);
	return 0;
}

static int hear_done(struct namer *n, const uint8_t *bytes, size_t n_bytes)
{
	struct message_done m;

	if (reply_done(bytes, n_bytes, &m) < 0)
		return -EBADMSG;
	if (job_is_asked(n)) {
		job_step_done(n, m.error);
		return 0;
	}
	struct slot *s = n->parsing.slot;
	if (!s)
		return parser_asked(n) == MESSAGE_FORGET ? 0 : -EBADMSG;
	if (m.error)
		return file_forgotten(n, s);
	settle(n, s);
	return 0;
}

int parser_hear(struct namer *n, const uint8_t *bytes, size_t n_bytes)
{
	switch (parser_asked(n)) {
	case MESSAGE_FILE:
		if (n->parsing.slot && slot_is_loaded(n, n->parsing.slot))
			return hear_loaded(n, bytes, n_bytes);
		return hear_done(n, bytes, n_bytes);
	case MESSAGE_SPACE:
	case MESSAGE_FORGET:
		return hear_done(n, bytes, n_bytes);
	case MESSAGE_LOAD:
		return hear_loaded(n, bytes, n_bytes);
	case MESSAGE_NAME:
		return hear_named(n, bytes, n_bytes);
	case MESSAGE_TABLE:
		return hear_tabled(n, bytes, n_bytes);
	case MESSAGE_GROW:
		return hear_grown(n, bytes, n_bytes);
	case MESSAGE_UNWIND:
		return job_hear(n, bytes, n_bytes);
	default:
		return -EBADMSG;
	}
}

/* Queue it again, before all others. */
static void try_again(struct namer *n, struct slot *s)
{
	settle(n, s);
	queue_put_on_trial(n, s);
}

/* Mark the file that was being parsed if no other may be the cause; after a kill from outside try
 * it once more. */
int parser_ended(struct namer *n, enum worker_end end)
{
	struct slot *s = n->parsing.slot;

	n->parsing.slot = NULL;
	table_drop_arriving(n);
	queue_drop_loaded(n, NULL);
	if (job_is_asked(n))
		job_ended(n, end);
	if (!s)
		return 0;

	int r = put_back(n, s, asker(n));
	if (r < 0)
		return r;
	slot_dequeue(n, s);
	if (!slot_is_proven(n, s) || (end == WORKER_KILLED && s->retries++ == 0)) {
		try_again(n, s);
		return 0;
	}
	queue_put_on_trial(n, NULL);
	return slot_blame(n, s, end == WORKER_OVER_TIME ? FILE_SPUN : FILE_CRASHED);
}

void parsing_sweep_mark(const struct namer *n, struct file_marks *m)
{
	for (uint32_t i = n->parsing.n_answered; i < n->parsing.n_batch; i++)
		file_marks_keep_frame(m, n->parsing.batch[i]);
}
