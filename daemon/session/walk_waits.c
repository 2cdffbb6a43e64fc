/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A walk's targets where they wait, by their switches (switch_waits.h). */

#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "daemon/session/walk_private.h"
#include "proto/base/clock.h"

/* Beyond all code of the kernel. */
#define NAME_ALONE (1ull << 48)

int walk_function(struct walk *w, const char *function, struct frame **ret_frame)
{
	const struct file_key key = {.kind = FILE_KERNEL, .path = "[kernel]"};
	struct file *file;
	int r = file_get(&w->files, &key, &file);
	if (r == 0)
		r = frame_get(&w->files, file, NAME_ALONE | XXH32(function, strlen(function), 0),
			ret_frame);
	if (r == 0 && (*ret_frame)->state == FRAME_NEW)
		r = namer_name_as(w->namer, *ret_frame, function);
	return r;
}

/* Is it one of the processes that count from their next exec on? */
static bool is_awaited(const struct targets *t, const struct task *task)
{
	for (size_t i = 0; t->after_exec && i < t->n_pids; i++)
		if (t->pid[i] == task->pid)
			return true;
	return false;
}

static int watch(struct walk *w, const struct targets *targets)
{
	bool any = false;
	int r = 0;
	for (struct task *task = w->tasks.live; task && r == 0; task = task->hh.next) {
		if (!targets_take(targets, task) && !is_awaited(targets, task))
			continue;
		r = sampler_watch_waits(w->sampler, task->tid);
		any |= r == 0;
		if (r == SAMPLER_GONE)
			r = 0;
	}
	return r < 0 ? r : r == 0 && any ? 0 : WALK_NO_WAITS;
}

/* Threads that wait already. */
static void seed(struct walk *w, const struct targets *targets, uint64_t since_ns)
{
	for (struct task *task = w->tasks.live; task; task = task->hh.next) {
		struct frame *frame = NULL;
		struct thread_wait wait;
		if (!targets_take(targets, task) ||
			!thread_wait_read("/proc", task->pid, task->tid, &wait))
			continue;
		if (*wait.function && walk_function(w, wait.function, &frame) != 0)
			frame = NULL;
		switch_waits_seed(w->inner->waits, task, wait.kind, frame, since_ns,
			clock_ns(CLOCK_MONOTONIC));
	}
}

int walk_watch_waits(
	struct walk *w, struct tap *tap, const struct targets *targets, uint64_t since_ns)
{
	struct walk_inner *in = w->inner;
	const struct switch_waits_options o = {
		.sampler = w->sampler,
		.attribute = w->attribute,
		.tasks = &w->tasks,
		.proc = "/proc",
		.start_ns = since_ns,
		.seed = since_ns,
		.take = walk_take_switch_wait,
		.userdata = w,
	};
	int r = in->waits ? 0 : switch_waits_new(&o, &in->waits);
	if (r == 0)
		r = watch(w, targets);
	if (r == 0)
		r = walk_follow_rings(w);
	if (r == 0) {
		tap->wants_waits = true;
		seed(w, targets, since_ns);
	} else if (r == WALK_NO_WAITS && !walk_watches_waits(w)) {
		switch_waits_stop(in->waits);
	}
	return r;
}

void walk_take_ready(struct walk *w, const struct task *task, uint64_t ready_ns)
{
	switch_waits_ready(w->inner->waits, task, ready_ns);
}

bool walk_awaits_kinds(const struct walk *w)
{
	return switch_waits_held(w->inner->waits);
}

void walk_settle_kinds(struct walk *w)
{
	switch_waits_dispatch(w->inner->waits, UINT64_MAX);
}

bool walk_has_looks(const struct walk *w)
{
	return w->inner->offcpu != NULL;
}

void walk_put_off_looks(struct walk *w, bool put_off)
{
	offcpu_put_off(w->inner->offcpu, put_off);
}
