/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A segment keeps build id and offset of each frame, so a debug file that was installed since names them as well as
 * one that was there. Nothing is written: the next query asks again.
 */
#include "daemon/query/load_later.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/naming/later.h"
#include "proto/base/array.h"
#include "proto/base/digit.h"
#include "proto/base/memory.h"

static uint8_t parse_build_id(const char *text, uint8_t ret_id[20])
{
	uint8_t n = 0;

	for (; text && text[0] && text[1] && n < 20; text += 2) {
		const int high = digit_value(text[0]), low = digit_value(text[1]);
		if (high < 0 || low < 0)
			return 0;
		ret_id[n++] = (uint8_t)(high << 4 | low);
	}
	return text && !*text ? n : 0;
}

static struct later_file file_of(const struct loaded *l, const struct loaded_file *f)
{
	const char *path = text_of(l->texts, f->module);
	struct later_file file = {.path = path ? path : "",
		.state = (enum file_state)f->state,
		.has_debug = f->has_debug};

	file.n_build_id = parse_build_id(text_of(l->texts, f->build_id), file.build_id);
	return file;
}

static bool is_unnamed(const struct loaded_frame *f)
{
	return f->file != 0 && f->state != FRAME_NAMED;
}

/* The places of a frame that has its name now. */
static int take_places(struct loaded *l, struct loaded_frame *to, const struct frame *from)
{
	const uint32_t first = l->n_places;

	if (from->n_places == 0 || first + from->n_places > QUERY_IDS_MAX)
		return 0;
	int r = array_grow(&l->place, &l->size_places, first + from->n_places, sizeof(*l->place));
	for (uint16_t i = 0; i < from->n_places && r == 0; i++) {
		const struct place *p = &from->place[i];
		struct loaded_place *place = &l->place[first + i];
		*place = (struct loaded_place){.line = p->line, .inlined = p->inlined};
		if (p->function)
			r = query_fail_full(l, text_get(l->texts, p->function, &place->function));
		if (r == 0 && p->source)
			r = query_fail_full(l, text_get(l->texts, p->source, &place->source));
	}
	if (r != 0)
		return r;
	l->n_places = first + from->n_places;
	to->place = first;
	to->n_places = from->n_places;
	to->state = FRAME_NAMED;
	return 0;
}

/* The files that know more now, by id; NULL if none does. */
static int choose(const struct loaded *l, const struct later *later, bool **ret_chosen)
{
	_cleanup_(freep) bool *asked = calloc((size_t)l->n_files + 1, sizeof(*asked));
	_cleanup_(freep) bool *chosen = calloc((size_t)l->n_files + 1, sizeof(*chosen));
	bool any = false;

	if (!asked || !chosen)
		return -ENOMEM;
	for (uint32_t i = 1; i <= l->n_frames; i++) {
		const uint32_t id = l->frame[i].file;
		const struct loaded_file *f = &l->file[id];
		if (!is_unnamed(&l->frame[i]) || asked[id] || f->kind != FILE_ELF || !f->build_id)
			continue;
		const struct later_file file = file_of(l, f);
		asked[id] = true;
		chosen[id] = later_knows_more(later, &file);
		any |= chosen[id];
	}
	*ret_chosen = any ? TAKE_PTR(chosen) : NULL;
	return 0;
}

int load_later(struct loaded *l, struct later *later)
{
	_cleanup_(freep) bool *chosen = NULL;
	_cleanup_(freep) const struct frame **frame = NULL;
	int r = later ? choose(l, later, &chosen) : 0;

	if (r < 0 || !chosen)
		return r;
	frame = calloc((size_t)l->n_frames + 1, sizeof(*frame));
	if (!frame)
		return -ENOMEM;
	for (uint32_t i = 1; i <= l->n_frames && r == 0; i++) {
		if (!is_unnamed(&l->frame[i]) || !chosen[l->frame[i].file])
			continue;
		const struct later_file file = file_of(l, &l->file[l->frame[i].file]);
		r = later_ask(later, &file, l->frame[i].offset, &frame[i]);
	}
	if (r == 0)
		r = later_wait(later);
	for (uint32_t i = 1; i <= l->n_frames && r == 0; i++)
		if (frame[i] && frame[i]->state == FRAME_NAMED)
			r = take_places(l, &l->frame[i], frame[i]);
	return r;
}
