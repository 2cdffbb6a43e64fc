/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/session/recording_wakers.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "daemon/aggregate/waker.h"
#include "daemon/attribute/sweep.h"
#include "proto/base/array.h"

static const char *const names[N_WAKER_FRAMES] = {
	[WAKER_AT_SEPARATOR] = WAKER_SEPARATOR,
	[WAKER_AT_INTERRUPT] = "[interrupt]",
	[WAKER_AT_OTHER_USER] = "[another user's process]",
	[WAKER_AT_KERNEL] = "[kernel thread]",
	[WAKER_AT_OUTSIDE] = "[process outside]",
	[WAKER_AT_UNKNOWN] = "[unknown]",
};
_Static_assert(
	sizeof(((struct recording_wakers *)0)->frame) / sizeof(struct frame *) >= N_WAKER_FRAMES,
	"a place each");

/* 0; positive: there is no room for it; -errno. */
static int get_frame(struct walk *walk, uint64_t at, const char *name, struct frame **ret_frame)
{
	const struct file_key key = {.kind = FILE_UNKNOWN, .path = WAKER_FILE};
	struct frame *frame;
	struct file *file;
	int r = file_get(&walk->files, &key, &file);
	if (r == 0)
		r = frame_get(&walk->files, file, at, &frame);
	if (r == 0 && frame->state == FRAME_NEW)
		r = namer_name_as(walk->namer, frame, name);
	if (r == 0)
		*ret_frame = frame;
	return r;
}

/* NULL: there is no room for it. */
static struct frame *frame_at(struct recording_wakers *k, struct walk *walk, unsigned at)
{
	if (!k->frame[at])
		(void)get_frame(walk, at, names[at], &k->frame[at]);
	return k->frame[at];
}

static struct frame *find_name(const struct recording_wakers *k, const char *name)
{
	for (uint32_t i = 0; i < k->n_names; i++)
		if (strcmp(k->name[i]->place[0].function, name) == 0)
			return k->name[i];
	return NULL;
}

/* The frame with a task's name. NULL: there is no room for it. */
static struct frame *frame_of_name(struct recording_wakers *k, struct walk *walk, const char *name)
{
	const uint64_t at = WAKER_AT_NAME + (uint64_t)XXH32(name, strlen(name), 0);
	struct frame *frame = find_name(k, name);
	/* of two names with one hash the second is unknown */
	if (frame || k->n_names >= RECORDING_WAKER_NAMES_MAX ||
		array_grow(&k->name, &k->size_names, k->n_names + 1, sizeof(*k->name)) < 0 ||
		get_frame(walk, at, name, &frame) != 0 || frame->n_places != 1 ||
		strcmp(frame->place[0].function, name) != 0)
		return find_name(k, name);
	k->name[k->n_names++] = frame;
	return frame;
}

/* Its owner was read when the sleeper's was, if they are of one process. */
static bool may_show(const struct targets *t, struct walk *walk, const struct attribution *a)
{
	const struct task *waker = a->waker->task;
	if (!t->only_uid)
		return true;
	if (waker->process != a->task->process)
		attribute_confirm_owner(walk->attribute, waker, a->time_ns);
	return waker->process->uid == t->uid && waker->process->gid == t->gid &&
	       !waker->process->kernel_thread;
}

/* The frame that stands for a waker whose stack is not shown; N_WAKER_FRAMES: it is. */
static unsigned stands_for(const struct targets *t, struct walk *walk, const struct attribution *a)
{
	const struct waker *waker = a->waker;
	if (waker->kind == WAKER_INTERRUPT)
		return WAKER_AT_INTERRUPT;
	if (waker->kind == WAKER_OUTSIDE)
		return WAKER_AT_OUTSIDE;
	if (!waker->task)
		return WAKER_AT_UNKNOWN;
	if (may_show(t, walk, a))
		return N_WAKER_FRAMES;
	return waker->task->process->kernel_thread ? WAKER_AT_KERNEL : WAKER_AT_OTHER_USER;
}

uint32_t recording_put_waker(struct recording_wakers *k, struct walk *walk,
	const struct targets *targets, const struct attribution *a, struct frame **stack)
{
	const struct waker *waker = a->waker;
	const unsigned instead = stands_for(targets, walk, a);
	struct frame *separator = frame_at(k, walk, WAKER_AT_SEPARATOR), *outermost = NULL;
	uint32_t n = 0;
	if (separator && instead != N_WAKER_FRAMES)
		outermost = frame_at(k, walk, instead);
	else if (separator)
		outermost = frame_of_name(k, walk, waker->task->comm)
				    ?: frame_at(k, walk, WAKER_AT_UNKNOWN);
	/* the thread's own stack goes first, and needs a frame at least */
	if (outermost && a->n_frames + 2 <= STACK_FRAMES_MAX) {
		const uint32_t room = STACK_FRAMES_MAX - 2 - a->n_frames;
		uint32_t shown = instead == N_WAKER_FRAMES ? waker->n_frames : 0;
		stack[n++] = outermost;
		for (shown = shown < room ? shown : room; shown > 0; shown--)
			stack[n++] = waker->frame[shown - 1];
		stack[n++] = separator;
	}
	memcpy(&stack[n], a->frame, a->n_frames * sizeof(struct frame *));
	return n + a->n_frames;
}

void recording_wakers_mark(const struct recording_wakers *k, struct sweep *s)
{
	for (unsigned i = 0; i < N_WAKER_FRAMES; i++)
		if (k->frame[i])
			sweep_keep_frame(s, k->frame[i]);
	for (uint32_t i = 0; i < k->n_names; i++)
		sweep_keep_frame(s, k->name[i]);
}

void recording_wakers_clear(struct recording_wakers *k)
{
	free(k->name);
	*k = (struct recording_wakers){.n_names = 0};
}
