/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Debug files that came later, by `apt install libc6-dbg` beside a running service, or from a server that was asked.
 * Frames without a name wait again, and their files are read again together with their debug files. Frames that have a
 * name keep it.
 */
#include "daemon/naming/namer_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool namer_debug_path(const uint8_t *build_id, uint8_t n, char ret_path[NAMER_DEBUG_PATH_BYTES])
{
	int at = snprintf(ret_path, NAMER_DEBUG_PATH_BYTES, "%s/", NAMER_DEBUG_FOLDER);

	if (n < 2 || n > MESSAGE_BUILD_ID_BYTES)
		return false;
	for (uint8_t i = 0; i < n; i++)
		at += snprintf(ret_path + at, NAMER_DEBUG_PATH_BYTES - (size_t)at, "%02x%s",
			build_id[i], i == 0 ? "/" : "");
	snprintf(ret_path + at, NAMER_DEBUG_PATH_BYTES - (size_t)at, ".debug");
	return true;
}

bool namer_has_debug_file(const uint8_t *build_id, uint8_t n)
{
	char path[NAMER_DEBUG_PATH_BYTES];

	return namer_debug_path(build_id, n, path) && access(path, R_OK) == 0;
}

static bool is_unnamed(const struct frame *f)
{
	return f->state == FRAME_OUT_OF_SYMBOL || f->state == FRAME_UNNAMED ||
	       f->state == FRAME_PLACED;
}

/* Open the file and name its frames, if any wait. */
static int queue(struct namer *n, struct slot *s)
{
	s->completes = false;
	if (TAILQ_EMPTY(&s->wishes))
		return 0;
	int r = slot_want(n, s, TAILQ_FIRST(&s->wishes)->user);
	if (r == 0 && s->queue == QUEUE_NONE)
		slot_enqueue_name(n, s);
	return r;
}

/* Name the frames of all files that are to be read again (slot->completes). */
static int complete(struct namer *n)
{
	const struct file_table *t = n->options.files;
	int r = 0;

	for (uint32_t i = 0; i < t->n_frames && r == 0; i++) {
		struct frame *frame = t->frame[i];
		const struct slot *s = frame ? frame->file->namer_slot : NULL;
		if (s && s->completes && is_unnamed(frame))
			r = frame_ask_anew(n, frame);
	}
	/* a slot that is used goes to the end of the list, and is not met again */
	for (struct slot *s = slots_next(n, NULL), *next; s; s = next) {
		next = slots_next(n, s);
		if (s->completes && r == 0)
			r = queue(n, s);
	}
	return r;
}

int namer_look_for_debug(struct namer *n, bool at_all)
{
	bool any = false;
	int r = 0;

	for (struct slot *s = slots_next(n, NULL); s && r == 0; s = slots_next(n, s)) {
		const struct file *f = s->file;
		if (!slot_may_be_completed(s) ||
			!(at_all || namer_has_debug_file(f->build_id, f->n_build_id)))
			continue;
		r = slot_complete(n, s);
		any = s->completes = true;
	}
	return any && r == 0 ? complete(n) : r;
}

/* --- debug files of servers ------------------------------------------------------------------- */

static bool may_be_fetched(const struct slot *s)
{
	return slot_may_be_completed(s) && s->file->n_build_id >= 2;
}

const struct file *namer_without_debug(struct namer *n, uint64_t samples_min,
	bool (*may)(void *userdata, const struct file *f), void *userdata)
{
	const struct file_table *t = n->options.files;
	const struct slot *most = NULL;

	for (uint32_t i = 0; i < t->n_frames; i++) {
		const struct frame *frame = t->frame[i];
		struct slot *s = frame ? frame->file->namer_slot : NULL;
		if (s && is_unnamed(frame))
			s->has_unnamed = true;
	}
	for (struct slot *s = slots_next(n, NULL); s; s = slots_next(n, s)) {
		if (s->has_unnamed && s->n_samples >= samples_min &&
			(!most || s->n_samples > most->n_samples) && may_be_fetched(s) &&
			may(userdata, s->file))
			most = s;
		s->has_unnamed = false;
	}
	return most ? most->file : NULL;
}

int namer_fetched(struct namer *n, const uint8_t *build_id, uint8_t n_build_id, const char *path)
{
	bool any = false;
	int r = 0;

	for (struct slot *s = slots_next(n, NULL); s && r == 0; s = slots_next(n, s)) {
		struct file *f = s->file;
		if (!may_be_fetched(s) || f->n_build_id != n_build_id ||
			memcmp(f->build_id, build_id, n_build_id) != 0)
			continue;
		free(f->debug_path);
		f->debug_path = strdup(path);
		r = f->debug_path ? slot_complete(n, s) : -ENOMEM;
		any = s->completes = true;
	}
	return any && r == 0 ? complete(n) : r;
}
