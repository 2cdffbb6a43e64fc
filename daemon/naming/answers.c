/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Answers that hold for a whole function. Code is sampled at ever new addresses of the same functions, and a request to
 * the parser costs two processes some 100 µs; so what it said of one address names the others, as long as the parser
 * has the file, the file is open here, and its contents did not change.
 */
#include "daemon/naming/namer_private.h"

#include <stdlib.h>
#include <string.h>

/* The first answer that begins after the offset. */
static uint32_t first_after(const struct naming_answers *a, uint64_t offset)
{
	uint32_t low = 0, high = a->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (a->answer[middle].from <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct naming_answer *answer_at(const struct naming_answers *a, uint64_t offset)
{
	uint32_t i = first_after(a, offset);

	return i > 0 && offset - a->answer[i - 1].from < a->answer[i - 1].n_bytes
		       ? &a->answer[i - 1]
		       : NULL;
}

void slot_forget_answers(struct namer *n, struct slot *s)
{
	n->slots.n_answers -= s->answers.n;
	free(s->answers.answer);
	s->answers = (struct naming_answers){0};
}

/* Drop the answers of the open file that was not used for longest. */
static void make_room(struct namer *n)
{
	struct slot *s;

	TAILQ_FOREACH(s, &n->slots.held, held)
	if (s->answers.n > 0) {
		slot_forget_answers(n, s);
		return;
	}
}

static bool grow(struct naming_answers *a)
{
	const uint32_t size = a->size ? 2 * a->size : 16;

	if (a->n < a->size)
		return true;
	struct naming_answer *grown = reallocarray(a->answer, size, sizeof(*grown));
	if (!grown)
		return false;
	a->answer = grown;
	a->size = size;
	return true;
}

void slot_keep_answer(struct namer *n, struct slot *s, uint64_t from, uint64_t to,
	const struct frame *frame, enum frame_state state)
{
	struct naming_answers *a = &s->answers;

	if (frame->offset < from || frame->offset >= to || to - from > UINT32_MAX ||
		frame->n_places != 1 || frame->place->line || frame->place->source ||
		slot_grows(s) || a->n >= NAMER_ANSWERS_OF_FILE_MAX)
		return;
	if (n->slots.n_answers >= NAMER_ANSWERS_MAX)
		make_room(n);
	const uint32_t i = first_after(a, frame->offset);
	const bool overlaps = (i > 0 && a->answer[i - 1].from + a->answer[i - 1].n_bytes > from) ||
			      (i < a->n && a->answer[i].from < to);
	if (overlaps || !grow(a))
		return;
	memmove(&a->answer[i + 1], &a->answer[i], (a->n - i) * sizeof(*a->answer));
	a->answer[i] = (struct naming_answer){
		.from = from,
		.n_bytes = (uint32_t)(to - from),
		.is_placed = state == FRAME_PLACED,
		.function = frame->place->function,
	};
	a->n++;
	n->slots.n_answers++;
}

/* Does the present parser have the contents by which it answered? */
static bool are_valid(const struct namer *n, struct slot *s)
{
	return s->fd[PART_MAIN] >= 0 && slot_is_loaded(n, s) && !s->paused && !s->stale &&
	       slot_look_once(n, s) == SLOT_SAME && !s->unproved;
}

bool slot_knows_answer(struct namer *n, struct slot *s, struct frame *frame)
{
	const struct naming_answer *a = answer_at(&s->answers, frame->offset);

	if (!a || !are_valid(n, s))
		return false;
	struct place *place = calloc(1, sizeof(*place));
	if (!place)
		return false;
	place->function = a->function;
	frame_set_places(n->options.files, frame, place, 1);
	frame_settle(n, frame, a->is_placed ? FRAME_PLACED : FRAME_NAMED);
	slot_touch(n, s);
	return true;
}

void answers_keep_names(const struct namer *n)
{
	for (const struct slot *s = slots_next(n, NULL); s; s = slots_next(n, s))
		for (uint32_t i = 0; i < s->answers.n; i++)
			strings_keep(s->answers.answer[i].function);
}
