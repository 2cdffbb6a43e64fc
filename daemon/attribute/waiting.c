/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Samples that wait for their stack
 *
 * Most copied stacks are walked at once. Others wait for the parser, another process, which makes a missing table or
 * walks the stack itself. That takes milliseconds, and it may never answer. The attribution waits here under a number,
 * with the frames that are known: those of the kernel, and the innermost user frame. The request has the number, not an
 * address, so an answer for a sample that was given up finds nothing.
 */

#include <errno.h>
#include <string.h>

#include "daemon/attribute/attribute_private.h"
#include "proto/base/memory.h"

struct waiting {
	uint64_t ticket;
	struct attribution attribution;
	struct frame *leaf; /* innermost user frame; NULL: none */
	bool truncated;
	UT_hash_handle hh;
	uint32_t n_frames;
	struct frame *frame[];
};

struct waits {
	struct waiting *waiting; /* uthash by ticket */
	uint64_t last_ticket;
	struct copy_depths depths;
	struct unwind_result unwound; /* of the last stack that did not wait */
};

struct waits *waiting_new(void)
{
	return calloc(1, sizeof(struct waits));
}

struct waits *waiting_free(struct waits *w)
{
	struct waiting *wait, *next;

	if (!w)
		return NULL;
	HASH_ITER (hh, w->waiting, wait, next) {
		HASH_DEL(w->waiting, wait);
		free(wait);
	}
	free(w);
	return NULL;
}

/* Index of the instruction pointer in perf's user registers; -1: unknown machine. Source:
 * arch/ARCH/include/uapi/asm/perf_regs.h of Linux 6.12. */
#if defined(__x86_64__) || defined(__i386__)
#define REGISTER_IP 8
#elif defined(__aarch64__)
#define REGISTER_IP 32
#elif defined(__riscv)
#define REGISTER_IP 0
#else
#define REGISTER_IP -1
#endif

static uint64_t sample_user_ip(const struct record *r)
{
	const struct record_sample *s = &r->sample;
	uint64_t mask = r->stream->regs_user, ip;

	if (REGISTER_IP < 0 || !s->regs || !(mask >> REGISTER_IP & 1))
		return s->kernel ? 0 : s->ip;

	uint64_t below = mask & ((UINT64_C(1) << REGISTER_IP) - 1);
	memcpy(&ip, (const uint8_t *)s->regs + 8 * __builtin_popcountll(below), sizeof(ip));
	return ip;
}

static int waiting_put(struct stack_walk *w, const struct attribution *attribution,
	struct frame *leaf, struct waiting **ret_waiting)
{
	struct waits *all = w->a->waits;
	_cleanup_(freep) struct waiting *wait =
		calloc(1, sizeof(*wait) + w->n_frames * sizeof(*wait->frame));
	if (!wait)
		return -ENOMEM;

	wait->ticket = ++all->last_ticket;
	wait->attribution = *attribution;
	wait->leaf = leaf;
	wait->truncated = w->truncated;
	wait->n_frames = w->n_frames;
	memcpy(wait->frame, w->frame, w->n_frames * sizeof(*wait->frame));
	HASH_ADD(hh, all->waiting, ticket, sizeof(wait->ticket), wait);
	if (!wait->hh.tbl)
		return -ENOMEM;

	*ret_waiting = TAKE_PTR(wait);
	return 0;
}

/* The frame of the innermost user address, resolved with the mappings at the time of the sample. */
static int leaf_frame(struct stack_walk *w, uint64_t ip, struct frame **ret_leaf)
{
	uint32_t n_frames = w->n_frames;

	*ret_leaf = NULL;
	int r = ip ? stack_walk_user(w, ip) : 0;
	if (r < 0)
		return r;
	if (w->n_frames > n_frames)
		*ret_leaf = w->frame[--w->n_frames];
	return 0;
}

static void sink_leaf(struct stack_walk *w, struct frame *leaf, struct attribution *attribution)
{
	if (leaf)
		w->frame[w->n_frames++] = leaf;
	w->truncated = true;
	attribution->is_deep = false;
	stack_walk_lose(w, LOSS_UNWIND);
	stack_walk_sink(w, attribution);
}

static void note_depth(
	struct waits *w, const struct unwind_result *r, const struct attribution *attribution)
{
	struct copy_depths *d = &w->depths;

	/* elfutils does not say how deep it went; raised samples have copies of their own */
	if (r->depth == 0 || attribution->raise || attribution->is_offcpu)
		return;
	d->n++;
	if (r->deep && attribution->is_deep)
		d->n_deep++;
	else if (r->depth > d->deepest)
		d->deepest = r->depth;
}

struct copy_depths attribute_take_depths(struct attribute *a)
{
	struct copy_depths depths = a->waits->depths;

	a->waits->depths = (struct copy_depths){0};
	return depths;
}

/* Push a frame that was found. While the mappings are those by which it was found, most are in the place cache. */
static int push_found(struct stack_walk *w, const struct unwind_result *r, size_t i, bool is_now)
{
	return is_now && r->frame[i].file
		       ? stack_walk_user(w, r->frame[i].address)
		       : stack_walk_push(w, r->frame[i].file, r->frame[i].offset);
}

/* Does the walk end before the start of the stack, though its chain may go on? */
static bool ends_early(
	struct stack_walk *w, const struct unwind_result *r, const struct record_sample *s)
{
	if (!r->truncated || w->truncated || stack_walk_has_start(w))
		return false;
	if (s && stack_walk_go_on(w, s, r->frame[r->n_frames - 1].address) < 0)
		return true;
	return !stack_walk_has_start(w);
}

/* The walk has the kernel's frames, and goes on with those that were found. s: of the sample, while it is there. */
static void sink_unwound(struct stack_walk *w, struct frame *leaf, const struct unwind_result *r,
	const struct record_sample *s, struct attribution *attribution)
{
	if (r->failed || !r->n_frames) {
		sink_leaf(w, leaf, attribution);
		return;
	}
	note_depth(w->a->waits, r, attribution);
	/* without memory for a frame the stack ends there, and the sample still counts */
	for (size_t i = 0; i < r->n_frames; i++)
		if (push_found(w, r, i, s != NULL) < 0)
			break;
	if (ends_early(w, r, s)) {
		w->truncated = true;
		stack_walk_lose(w, LOSS_STACK_TRUNCATED);
		attribution->is_deep = r->deep && attribution->is_deep;
		if (attribution->is_deep)
			stack_walk_lose(w, LOSS_DEEP);
	}
	stack_walk_sink(w, attribution);
}

int waiting_add(struct stack_walk *w, const struct record *r, struct attribution *attribution)
{
	struct attribute *a = w->a;
	const struct record_sample *s = &r->sample;
	uint64_t ip = sample_user_ip(r);
	struct waiting *wait;
	struct frame *leaf;

	int result = leaf_frame(w, ip ? ip : w->user_ip, &leaf);
	if (result < 0)
		return result;
	attribution->is_deep = s->stack_fills;
	struct unwind_job job = {
		.space = task_space(w->task),
		.pid = w->task->pid,
		.uid = task_account(w->task),
		.regs_abi = s->regs_abi,
		.regs_mask = r->stream->regs_user,
		.regs = s->regs,
		.stack = s->stack,
		.n_stack = s->n_stack,
	};
	if (a->o.namer && namer_unwind_now(a->o.namer, &job, &a->waits->unwound)) {
		sink_unwound(w, leaf, &a->waits->unwound, s, attribution);
		return 0;
	}
	if (!a->o.namer || HASH_COUNT(a->waits->waiting) >= WAITING_MAX) {
		sink_leaf(w, leaf, attribution);
		return 0;
	}
	result = waiting_put(w, attribution, leaf, &wait);
	if (result < 0)
		return result;
	job.ticket = (void *)(uintptr_t)wait->ticket;
	result = namer_unwind(a->o.namer, &job);
	if (!result)
		return 0;

	HASH_DEL(a->waits->waiting, wait);
	free(wait);
	if (result > 0)
		sink_leaf(w, leaf, attribution);
	return result < 0 ? result : 0;
}

/* Restore the walk to its state when the sample was queued. */
static void waiting_walk(struct attribute *a, const struct waiting *wait, struct stack_walk *w)
{
	w->a = a;
	w->task = wait->attribution.task;
	w->hart = wait->attribution.hart;
	w->time_ns = wait->attribution.time_ns;
	w->user_ip = 0;
	w->truncated = wait->truncated;
	w->kernel_only = false;
	w->is_offcpu = wait->attribution.is_offcpu;
	w->has_user = w->ended = false;
	w->n_frames = wait->n_frames;
	memcpy(w->frame, wait->frame, wait->n_frames * sizeof(*wait->frame));
}

void attribute_unwound(struct attribute *a, const struct unwind_result *r)
{
	uint64_t ticket = (uintptr_t)r->ticket;
	struct waiting *wait;
	struct stack_walk w;

	HASH_FIND(hh, a->waits->waiting, &ticket, sizeof(ticket), wait);
	if (!wait)
		return;

	HASH_DEL(a->waits->waiting, wait);
	waiting_walk(a, wait, &w);
	sink_unwound(&w, wait->leaf, r, NULL, &wait->attribution);
	free(wait);
}

bool attribute_each_waiting(struct attribute *a, uint64_t before_ns,
	bool (*see)(void *userdata, const struct attribution *a), void *userdata)
{
	struct stack_walk w;

	for (const struct waiting *wait = a->waits->waiting; wait; wait = wait->hh.next) {
		struct attribution seen = wait->attribution;
		if (seen.time_ns >= before_ns || seen.waker_of)
			continue;
		waiting_walk(a, wait, &w);
		if (wait->leaf)
			w.frame[w.n_frames++] = wait->leaf;
		seen.frame = w.frame;
		seen.n_frames = w.n_frames;
		seen.truncated = true;
		seen.is_deep = false;
		if (!see(userdata, &seen))
			return false;
	}
	return true;
}

size_t attribute_waiting(const struct attribute *a)
{
	return HASH_COUNT(a->waits->waiting);
}

void waiting_mark(const struct waits *w, struct sweep *s)
{
	for (const struct waiting *wait = w->waiting; wait; wait = wait->hh.next) {
		sweep_keep_task(s, wait->attribution.task);
		sweep_keep_frame(s, wait->leaf);
		for (uint32_t i = 0; i < wait->n_frames; i++)
			sweep_keep_frame(s, wait->frame[i]);
	}
}

void waiting_each_cgroup(
	const struct waits *w, void (*each)(void *userdata, uint64_t id), void *userdata)
{
	for (const struct waiting *wait = w->waiting; wait; wait = wait->hh.next)
		if (wait->attribution.cgroup)
			each(userdata, wait->attribution.cgroup->id);
}
