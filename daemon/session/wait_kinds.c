/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/session/wait_kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sampler/sampler.h"
#include "daemon/session/thread_waits.h"

struct held {
	struct attribution attribution;
	uint64_t cgroup; /* id */
	uint64_t until_ns;
	struct held *next;
	uint32_t n_frames;
	struct frame *frame[];
};

struct wait_kinds {
	const struct sampler *sampler;
	const struct task_table *tasks;
	wait_kinds_sink *take;
	void *userdata;
	struct held *held, **held_end; /* in order of arrival */
	uint32_t n_held;
};

int wait_kinds_new(const struct sampler *sampler, const struct task_table *tasks,
	wait_kinds_sink *take, void *userdata, struct wait_kinds **ret_kinds)
{
	struct wait_kinds *k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	*k = (struct wait_kinds){
		.sampler = sampler, .tasks = tasks, .take = take, .userdata = userdata};
	k->held_end = &k->held;
	*ret_kinds = k;
	return 0;
}

/* Functions through which all system calls come, and all faults. Source: the entry code of arch/x86, arm64 and riscv of
 * Linux 6.12. */
static bool is_call(const char *function)
{
	return strstr(function, "syscall") || strstr(function, "el0_svc") ||
	       strstr(function, "do_trap_ecall");
}

static bool is_fault(const char *function)
{
	return strstr(function, "page_fault") || strstr(function, "do_mem_abort");
}

static const char *name_of(const struct frame *f)
{
	const char *name = f->n_places ? f->place[f->n_places - 1].function : NULL;
	return name ? name : "";
}

/* The innermost function that waits for one thing decides, unless the whole is a page fault. False: one of them
 * has no name yet. */
static bool find_kind(const struct attribution *a, enum offcpu_kind *ret_kind)
{
	enum offcpu_kind kind = OFFCPU_OTHER;
	bool fault = false, call = false;

	for (uint32_t i = 0; i < a->n_frames && file_is_kernel(a->frame[i]->file->kind); i++) {
		const char *name = name_of(a->frame[i]);
		if (frame_is_awaited(a->frame[i]))
			return false;
		if (kind == OFFCPU_OTHER)
			kind = thread_wait_kind(name);
		fault |= is_fault(name);
		call |= is_call(name);
	}
	*ret_kind = fault && !call && kind != OFFCPU_STOPPED ? OFFCPU_FAULT : kind;
	return true;
}

static void hand_out(struct wait_kinds *k, const struct attribution *a, enum offcpu_kind kind)
{
	struct attribution seen = *a;
	seen.event = k->sampler->offcpu[kind].event;
	seen.truncated |= a->n_frames == 0;
	k->take(k->userdata, &seen);
}

static bool hold(struct wait_kinds *k, const struct attribution *a)
{
	const size_t n_bytes = a->n_frames * sizeof(*a->frame);
	struct held *h = k->n_held < WAITS_HELD_MAX ? malloc(sizeof(*h) + n_bytes) : NULL;
	if (!h)
		return false;
	h->attribution = *a;
	h->cgroup = a->cgroup ? a->cgroup->id : 0;
	h->until_ns = a->time_ns + WAITS_HELD_NS;
	h->n_frames = a->n_frames;
	h->next = NULL;
	memcpy(h->frame, a->frame, n_bytes);
	*k->held_end = h;
	k->held_end = &h->next;
	k->n_held++;
	return true;
}

void wait_kinds_take(struct wait_kinds *k, const struct attribution *a)
{
	enum offcpu_kind kind = OFFCPU_OTHER;

	if (a->event == k->sampler->offcpu[OFFCPU_HART].event)
		kind = OFFCPU_HART;
	else if (!find_kind(a, &kind) && hold(k, a))
		return;
	hand_out(k, a, kind);
}

void wait_kinds_dispatch(struct wait_kinds *k, uint64_t now_ns)
{
	struct held *h = k->held;
	k->held = NULL;
	k->held_end = &k->held;
	for (struct held *next; h; h = next) {
		struct attribution *a = &h->attribution;
		enum offcpu_kind kind = OFFCPU_OTHER;
		next = h->next;
		a->frame = h->frame;
		if (!find_kind(a, &kind) && now_ns < h->until_ns) {
			h->next = NULL;
			*k->held_end = h;
			k->held_end = &h->next;
			continue;
		}
		a->cgroup = cgroup_find(k->tasks, h->cgroup);
		hand_out(k, a, kind);
		k->n_held--;
		free(h);
	}
}

bool wait_kinds_held(const struct wait_kinds *k)
{
	return k->held != NULL;
}

void wait_kinds_mark(const struct wait_kinds *k, struct sweep *s)
{
	for (const struct held *h = k->held; h; h = h->next) {
		sweep_keep_task(s, h->attribution.task);
		for (uint32_t i = 0; i < h->n_frames; i++)
			sweep_keep_frame(s, h->frame[i]);
	}
}

struct wait_kinds *wait_kinds_free(struct wait_kinds *k)
{
	if (!k)
		return NULL;
	for (struct held *h = k->held, *next; h; h = next) {
		next = h->next;
		free(h);
	}
	free(k);
	return NULL;
}
