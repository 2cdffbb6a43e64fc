/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A wait comes here when it has ended, and goes when it is complete:
 *
 *      ended ──▶ woken ──▶ given        ended: by the thread and the wait's number, until the next look's end
 *                                       woken: by a number of ours, until callers are there
 *
 * A look is of one moment and takes some time; records of wakes up to its end are read when all of its threads have been
 * taken. By then each wait that they may end is known, here or where waits under way are kept. A later record stays in
 * the ring.
 */

#include "daemon/session/wakers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/hash_table.h"
#include "proto/base/memory.h"

/* Waits in hand, each with some 30 frames twice: 8 MB. Others are given without their waker. */
#define WAITS_MAX 16384u

struct ended {
	struct ended_key {
		uint64_t number; /* of the wait; if it is woken, ours */
		pid_t tid;
		uint32_t is_woken;
	} key;
	struct found_wait wait;
	uint64_t since_ns; /* since it waits for callers */
	bool has_waker;    /* it is known */
	bool awaits;       /* the waker's callers may come */
	struct waker waker;
	UT_hash_handle hh;
};

struct wakers {
	struct wakers_options o;
	struct wakers_bpf *bpf;
	struct ended *ended; /* uthash by key */
	uint64_t last_number;
	uint64_t until_ns;  /* while the ring is read: later records stay in it */
	unsigned n_unfound; /* waits in hand without their callers */
	int error;          /* of reading it */
	uint64_t n_no_room;
};

int found_wait_set_callers(struct found_wait *wait, const struct attribution *a)
{
	if (a->n_frames > wait->size) {
		struct frame **frame =
			reallocarray(wait->frame, a->n_frames, sizeof(struct frame *));
		if (!frame)
			return -ENOMEM;
		wait->frame = frame;
		wait->size = a->n_frames;
	}
	wait->truncated = a->truncated;
	wait->is_deep = a->is_deep;
	wait->hart = a->hart;
	wait->task = a->task;
	wait->cgroup = a->cgroup ? a->cgroup->id : 0;
	wait->n_frames = a->n_frames;
	if (a->n_frames > 0)
		memcpy(wait->frame, a->frame, a->n_frames * sizeof(struct frame *));
	wait->is_found = true;
	return 0;
}

void found_wait_mark(const struct found_wait *wait, struct sweep *s)
{
	sweep_keep_task(s, wait->task);
	for (uint32_t i = 0; wait->is_found && i < wait->n_frames; i++)
		sweep_keep_frame(s, wait->frame[i]);
}

int wakers_new(const struct wakers_options *o, struct wakers **ret_wakers, int *ret_error)
{
	struct wakers *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->o = *o;
	int r = wakers_bpf_new(o->bpf, &w->bpf, ret_error);
	if (r != 0) {
		free(w);
		return r;
	}
	*ret_wakers = w;
	return 0;
}

/* --- waits in hand ---------------------------------------------------------------------------- */

static struct ended *find(const struct wakers *w, uint64_t number, pid_t tid, bool is_woken)
{
	const struct ended_key key = {.number = number, .tid = tid, .is_woken = is_woken};
	struct ended *e = NULL;
	if (w->ended)
		HASH_FIND(hh, w->ended, &key, sizeof(key), e);
	return e;
}

static int enter(struct wakers *w, struct ended *e)
{
	HASH_ADD(hh, w->ended, key, sizeof(e->key), e);
	return e->hh.tbl ? 0 : -ENOMEM;
}

static void ended_free(struct ended *e)
{
	free(e->wait.frame);
	free(e->waker.frame);
	free(e);
}

static void give(struct wakers *w, struct ended *e)
{
	HASH_DEL(w->ended, e);
	w->n_unfound -= !e->wait.is_found;
	w->o.give(w->o.userdata, &e->wait, e->has_waker ? &e->waker : NULL);
	ended_free(e);
}

static void give_if_complete(struct wakers *w, struct ended *e)
{
	if (e->wait.is_found && !e->awaits)
		give(w, e);
}

/* Take what the wait has to give, under that key. NULL: it was given at once. */
static struct ended *take(struct wakers *w, struct found_wait *wait, const struct ended_key *key)
{
	struct ended *e = HASH_COUNT(w->ended) < WAITS_MAX ? calloc(1, sizeof(*e)) : NULL;
	const uint32_t n = wait->is_found ? wait->n_frames : 0;
	struct frame **frame = e && n ? calloc(n, sizeof(struct frame *)) : NULL;
	if (e) {
		e->key = *key;
		e->wait = *wait;
		e->wait.frame = frame;
		e->wait.size = e->wait.n_frames = n;
		e->since_ns = wait->last_ns;
	}
	if (!e || (n && !frame) || enter(w, e) < 0) {
		if (e)
			ended_free(e);
		w->o.give(w->o.userdata, wait, NULL);
		w->n_no_room++;
		e = NULL;
	} else {
		if (n)
			memcpy(frame, wait->frame, n * sizeof(struct frame *));
		w->n_unfound += !wait->is_found;
	}
	wait->count = wait->weight_ns = 0;
	return e;
}

void wakers_take_wait(struct wakers *w, struct found_wait *wait)
{
	const struct ended_key key = {.number = wait->number, .tid = wait->tid};
	if (find(w, wait->number, wait->tid, false)) /* the counts wrapped around */
		w->o.give(w->o.userdata, wait, NULL);
	else
		(void)take(w, wait, &key);
}

/* --- wakes ------------------------------------------------------------------------------------ */

/* The wait that this record ends, under a number of its own. NULL: no look found it. */
static struct ended *find_woken(struct wakers *w, const struct offcpu_thread *t)
{
	const struct ended_key key = {.number = w->last_number + 1, .is_woken = true};
	struct ended *e = find(w, t->wait, t->wakee, false);
	if (!e) {
		struct found_wait *wait = w->o.find(w->o.userdata, t->wakee);
		e = wait && wait->number == t->wait ? take(w, wait, &key) : NULL;
		w->last_number += e != NULL;
		return e;
	}
	HASH_DEL(w->ended, e);
	e->key = key;
	if (enter(w, e) < 0) {
		w->o.give(w->o.userdata, &e->wait, NULL);
		w->n_unfound -= !e->wait.is_found;
		ended_free(e);
		return NULL;
	}
	w->last_number++;
	return e;
}

static int take_waking(struct wakers *w, struct offcpu_thread *t)
{
	struct ended *e = find_woken(w, t);
	if (!e)
		return 0;
	const uint64_t number = e->key.number;
	struct task *task = NULL;
	int r = 0;
	e->has_waker = true;
	e->since_ns = t->record.time_ns;
	e->waker.kind = t->is_interrupt      ? WAKER_INTERRUPT
			: t->record.tid == 0 ? WAKER_OUTSIDE
					     : WAKER_TASK;
	if (e->waker.kind == WAKER_TASK) {
		e->awaits = true;
		t->record.stream = w->o.stream;
		r = attribute_waker(w->o.attribute, &t->record, number, &task);
		e = find(w, number, 0, true); /* its callers may have come already */
		if (e && (r < 0 || !task))
			e->awaits = false;
		else if (e)
			e->waker.task = task;
	}
	if (e)
		give_if_complete(w, e);
	return r;
}

static bool take_bytes(void *userdata, const uint8_t *bytes, size_t n)
{
	struct wakers *w = userdata;
	struct offcpu_thread t;
	if (offcpu_decode_waking(bytes, n, &t) != 0)
		return true;
	if (t.record.time_ns > w->until_ns)
		return false;
	int r = take_waking(w, &t);
	w->error = r < 0 ? r : w->error;
	return true;
}

int wakers_end_look(struct wakers *w, uint64_t time_ns)
{
	struct ended *e, *next;
	if (!w)
		return 0;
	w->until_ns = time_ns;
	w->error = 0;
	wakers_bpf_read(w->bpf, take_bytes, w);
	/* what ended these is not known */
	HASH_ITER (hh, w->ended, e, next)
		if (!e->key.is_woken)
			give_if_complete(w, e);
	return w->error;
}

/* --- callers ---------------------------------------------------------------------------------- */

static void take_callers_of_waker(struct ended *e, const struct attribution *a)
{
	e->awaits = false;
	e->waker.task = a->task;
	e->waker.frame = a->n_frames ? calloc(a->n_frames, sizeof(struct frame *)) : NULL;
	if (!e->waker.frame)
		return;
	memcpy(e->waker.frame, a->frame, a->n_frames * sizeof(struct frame *));
	e->waker.n_frames = a->n_frames;
}

static bool take_callers(struct wakers *w, const struct attribution *a)
{
	for (struct ended *e = w->ended; e; e = e->hh.next) {
		if (e->wait.is_found || e->wait.tid != a->task->tid ||
			e->wait.told_ns != a->time_ns)
			continue;
		if (found_wait_set_callers(&e->wait, a) < 0)
			return false;
		w->n_unfound--;
		if (a->count && e->wait.count == 0)
			e->wait.first_ns = a->time_ns;
		e->wait.count += a->count;
		e->wait.weight_ns += a->weight_ns;
		if (e->key.is_woken)
			give_if_complete(w, e);
		return true;
	}
	return false;
}

bool wakers_found(struct wakers *w, const struct attribution *a)
{
	if (!w)
		return a->waker_of != 0;
	if (!a->waker_of)
		return w->n_unfound > 0 && a->task && take_callers(w, a);
	struct ended *e = find(w, a->waker_of, 0, true);
	if (e) {
		take_callers_of_waker(e, a);
		give_if_complete(w, e);
	}
	return true;
}

void wakers_expire(struct wakers *w, uint64_t now_ns)
{
	struct ended *e, *next;
	HASH_ITER (hh, w->ended, e, next)
		if (e->since_ns + WAIT_CALLERS_NS < now_ns)
			give(w, e);
}

void wakers_give_all(struct wakers *w)
{
	if (w)
		wakers_expire(w, UINT64_MAX);
}

bool wakers_await(const struct wakers *w)
{
	return w && w->ended;
}

uint64_t wakers_lost(const struct wakers *w)
{
	return w ? wakers_bpf_lost(w->bpf) + w->n_no_room : 0;
}

void wakers_mark(const struct wakers *w, struct sweep *s)
{
	for (const struct ended *e = w ? w->ended : NULL; e; e = e->hh.next) {
		found_wait_mark(&e->wait, s);
		if (e->waker.task)
			sweep_keep_task(s, e->waker.task);
		for (uint32_t i = 0; i < e->waker.n_frames; i++)
			sweep_keep_frame(s, e->waker.frame[i]);
	}
}

struct wakers *wakers_free(struct wakers *w)
{
	struct ended *e, *next;
	if (!w)
		return NULL;
	HASH_ITER (hh, w->ended, e, next) {
		HASH_DEL(w->ended, e);
		ended_free(e);
	}
	wakers_bpf_free(w->bpf);
	free(w);
	return NULL;
}
