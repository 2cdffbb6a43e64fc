/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/session/offcpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/decode/offcpu.h"
#include "daemon/sampler/sampler.h"
#include "proto/base/clock.h"
#include "proto/base/hash_table.h"
#include "proto/base/memory.h"

/* Threads that are kept, with some 30 frames each: 20 MB. Others have samples when they have a full record. */
#define KEPT_MAX 65536u
/* Part of rest_ns after which a thread rests. */
#define RESTS_PART 6u
/* Between two readings of an owner. */
#define OWNED_NS 10000000000u
/* A thread that no look found for so long is forgotten; its next telling is a new one. */
#define UNSEEN_NS (2ull * OFFCPU_MOST_NS)
/* Between two looks at the clock. */
#define CLOCK_THREADS 32u

struct kept {
	pid_t tid;
	uint64_t since_ns; /* it has waited since then, or longer */
	uint64_t seen_ns;  /* the last look that found it */
	uint64_t owned_ns; /* when its owner was last told that it is sampled */
	struct found_wait wait;
	UT_hash_handle hh;
};

struct offcpu {
	struct offcpu_options o;
	struct offcpu_looks *looks;
	struct offcpu_look *look; /* that is taken, up to `at`; NULL: none */
	size_t at;
	struct kept *kept;     /* by tid */
	uint64_t start_ns;     /* of the session; UINT64_MAX: not yet */
	struct wakers *wakers; /* NULL: nobody asks for them */
	bool has_stopped;
};

static int begin_wakers(struct offcpu *c, int *ret_error);

int offcpu_new(const struct offcpu_options *o, struct offcpu **ret_offcpu, int *ret_error)
{
	struct offcpu *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->o = *o;
	c->start_ns = UINT64_MAX;
	int r = OFFCPU_LOOKS_REFUSED;
	if (o->sampler->options.events) /* sampler_add_offcpu would refuse */
		*ret_error = EINVAL;
	else
		r = offcpu_looks_new(o->part_ppm, &c->looks, ret_error);
	if (r == 0 && o->wakers)
		r = begin_wakers(c, ret_error);
	if (r == 0)
		(void)sampler_add_offcpu(o->sampler, false);
	if (r != 0) {
		offcpu_free(c);
		return r < 0 ? r : OFFCPU_REFUSED;
	}
	*ret_offcpu = c;
	return 0;
}

void offcpu_begin(struct offcpu *c, uint64_t now_ns)
{
	if (c)
		c->start_ns = now_ns;
}

uint64_t offcpu_next_ns(const struct offcpu *c)
{
	if (!c)
		return UINT64_MAX;
	return c->look ? c->look->time_ns : offcpu_looks_next_ns(c->looks);
}

/* --- kept threads ----------------------------------------------------------------------------- */

static struct kept *find(const struct offcpu *c, pid_t tid)
{
	struct kept *k = NULL;
	if (c->kept)
		HASH_FIND_INT(c->kept, &tid, k);
	return k;
}

/* Its owner is read again for it now and then: a thread that changed hands has run, mostly. */
static void note_owner(struct offcpu *c, struct kept *k)
{
	if (k->wait.last_ns < k->owned_ns + OWNED_NS)
		return;
	k->owned_ns = k->wait.last_ns;
	attribute_counted(c->o.attribute, k->wait.task);
}

static void give_wait(void *userdata, const struct found_wait *wait, const struct waker *waker)
{
	struct offcpu *c = userdata;
	const struct stream *s = &c->o.sampler->offcpu[wait->kind];
	if (wait->count == 0)
		return;
	const struct attribution a = {
		.task = wait->task,
		.cgroup = cgroup_find(c->o.tasks, wait->cgroup),
		.time_ns = wait->last_ns,
		.first_ns = wait->first_ns,
		.hart = wait->hart,
		.event = s->event,
		.rung = s->rung,
		.count = wait->count,
		.weight_ns = wait->weight_ns,
		.period = wait->count,
		.frame = wait->frame,
		.n_frames = wait->is_found ? wait->n_frames : 0,
		.truncated = !wait->is_found || wait->truncated,
		.is_deep = wait->is_found && wait->is_deep,
		.is_offcpu = true,
		.waker = waker,
	};
	c->o.take(c->o.userdata, &a);
}

/* Callers that are on their way are awaited for a while, unless this is the last chance. */
static void give(struct offcpu *c, struct kept *k, bool is_last)
{
	struct found_wait *wait = &k->wait;
	if (wait->count == 0 ||
		(!wait->is_found && !is_last && wait->last_ns < wait->told_ns + WAIT_CALLERS_NS))
		return;
	note_owner(c, k);
	give_wait(c, wait, NULL);
	wait->count = wait->weight_ns = 0;
}

/* Is it handed out only when it has ended? Nobody ends the wait for a hart. */
static bool holds(const struct offcpu *c, const struct kept *k)
{
	return c->wakers && !c->has_stopped && k->wait.kind != OFFCPU_HART && k->wait.number != 0;
}

/* Has the wait samples that were not handed out, or may their callers come? */
static bool has_more(const struct found_wait *wait)
{
	return wait->count > 0 || !wait->is_found;
}

static void end_wait(struct offcpu *c, struct kept *k)
{
	if (!holds(c, k)) {
		give(c, k, true);
	} else if (has_more(&k->wait)) {
		note_owner(c, k);
		wakers_take_wait(c->wakers, &k->wait);
	}
}

static struct found_wait *find_wait(void *userdata, pid_t tid)
{
	struct offcpu *c = userdata;
	struct kept *k = find(c, tid);
	if (!k || !holds(c, k) || !has_more(&k->wait))
		return NULL;
	note_owner(c, k);
	return &k->wait;
}

static int begin_wakers(struct offcpu *c, int *ret_error)
{
	const struct wakers_options o = {
		.bpf = offcpu_looks_bpf(c->looks),
		.attribute = c->o.attribute,
		.stream = &c->o.sampler->offcpu[OFFCPU_OTHER],
		.find = find_wait,
		.give = give_wait,
		.userdata = c,
	};
	return wakers_new(&o, &c->wakers, ret_error);
}

static void forget(struct offcpu *c, struct kept *k)
{
	HASH_DEL(c->kept, k);
	free(k->wait.frame);
	free(k);
}

/* The entry of a thread with a full record; NULL: it is no task of the session, or there is no room. */
static struct kept *keep(struct offcpu *c, const struct offcpu_thread *t, uint64_t time_ns)
{
	const pid_t tid = (pid_t)t->record.tid;
	struct kept *k = find(c, tid);
	struct task *task = task_find(c->o.tasks, tid);
	if (!task || task->end_ns || !(c->o.all || task->wanted))
		return NULL;
	if (!k) {
		k = HASH_COUNT(c->kept) < KEPT_MAX ? calloc(1, sizeof(*k)) : NULL;
		if (!k)
			return NULL;
		k->tid = k->wait.tid = tid;
		HASH_ADD_INT(c->kept, tid, k);
		if (!k->hh.tbl) {
			free(k);
			return NULL;
		}
		k->since_ns = time_ns;
	} else if (!t->again) {
		end_wait(c, k);
		k->wait.is_found = false;
		k->since_ns = time_ns;
	}
	struct found_wait *wait = &k->wait;
	if (!t->again || !wait->is_found) {
		wait->kind = t->kind;
		wait->task = task;
		wait->cgroup = task->cgroup;
		wait->hart = (int)t->record.cpu;
	}
	wait->number = t->wait;
	wait->told_ns = k->seen_ns = time_ns; /* it may be found better this time */
	return k;
}

static void add_sample(struct found_wait *wait, uint64_t time_ns, uint64_t weight_ns)
{
	if (wait->count++ == 0)
		wait->first_ns = time_ns;
	wait->weight_ns += weight_ns;
	wait->last_ns = time_ns;
}

bool offcpu_found(struct offcpu *c, const struct attribution *a)
{
	if (c ? wakers_found(c->wakers, a) : a->waker_of != 0)
		return true;
	struct kept *k = c && a->task ? find(c, a->task->tid) : NULL;
	if (!k || k->wait.told_ns != a->time_ns || found_wait_set_callers(&k->wait, a) < 0)
		return false;
	k->owned_ns = a->time_ns;
	if (!holds(c, k) || a->count == 0)
		return false;
	/* others may have come while these callers were on their way */
	if (k->wait.count > 0) {
		k->wait.count += a->count;
		k->wait.weight_ns += a->weight_ns;
	} else {
		add_sample(&k->wait, a->time_ns, a->weight_ns);
	}
	return true;
}

/* Has it waited for so long that a row of it now and then will do? */
static bool rests(const struct offcpu *c, const struct kept *k)
{
	return k->wait.last_ns - k->since_ns > c->o.rest_ns / RESTS_PART &&
	       k->wait.last_ns - k->wait.first_ns < c->o.rest_ns;
}

void offcpu_give(struct offcpu *c, bool all)
{
	for (struct kept *k = c ? c->kept : NULL; k; k = k->hh.next)
		if (!holds(c, k) && (all || !c->o.rest_ns || !rests(c, k)))
			give(c, k, false);
}

void offcpu_end(struct offcpu *c, const struct task *task)
{
	struct kept *k = c ? find(c, task->tid) : NULL;
	if (!k)
		return;
	end_wait(c, k);
	forget(c, k);
}

void offcpu_mark(const struct offcpu *c, struct sweep *s)
{
	for (const struct kept *k = c ? c->kept : NULL; k; k = k->hh.next)
		found_wait_mark(&k->wait, s);
	if (c)
		wakers_mark(c->wakers, s);
}

/* --- looks ------------------------------------------------------------------------------------ */

static int take_thread(struct offcpu *c, struct offcpu_thread *t)
{
	/* a look before the session only tells who waits where */
	const uint64_t time_ns = c->look->time_ns,
		       weight_ns = time_ns < c->start_ns ? 0 : c->look->weight_ns;
	struct kept *k = find(c, (pid_t)t->record.tid);
	if (t->restarts && k)
		t->kind = k->wait.kind;
	if (!t->same) {
		t->record.stream = &c->o.sampler->offcpu[t->kind];
		t->record.time_ns = time_ns;
		(void)keep(c, t, time_ns); /* without it, later looks have no callers for it */
		return attribute_offcpu(c->o.attribute, &t->record, weight_ns);
	}
	if (!k || !weight_ns)
		return 0;
	if (k->wait.task->end_ns) { /* it has another name, job or owner */
		struct task *now = task_find(c->o.tasks, k->tid);
		end_wait(c, k);
		k->wait.task = now ? now : k->wait.task;
	}
	/* Another wait, from which it runs by now: where that was is assumed, and a waker would say more than is known. */
	const bool is_assumed = k->wait.number != t->wait && holds(c, k);
	if (is_assumed)
		end_wait(c, k);
	add_sample(&k->wait, time_ns, weight_ns);
	k->seen_ns = time_ns;
	if (is_assumed)
		give(c, k, true);
	return 0;
}

/* Threads that the look did not find run, or are gone without a word. */
static void forget_unseen(struct offcpu *c, uint64_t time_ns)
{
	for (struct kept *k = c->kept, *next; k; k = next) {
		next = k->hh.next;
		if (k->seen_ns == time_ns)
			continue;
		give(c, k, false);
		if (k->seen_ns + UNSEEN_NS < time_ns)
			forget(c, k);
	}
}

static int end_look(struct offcpu *c)
{
	int r = wakers_end_look(c->wakers, c->look->time_ns);
	forget_unseen(c, c->look->time_ns);
	offcpu_look_free(c->look);
	c->look = NULL;
	c->at = 0;
	return r;
}

int offcpu_feed(struct offcpu *c, uint64_t until_cpu_ns)
{
	if (!c->look)
		c->look = offcpu_looks_take(c->looks);
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t now_ns = began_ns;
	int r = 0;
	for (unsigned n = 1; c->look && r == 0; n++) {
		struct offcpu_thread thread;
		size_t used;
		if (offcpu_decode(c->look->bytes + c->at, c->look->n_bytes - c->at, &thread,
			    &used) != 0) {
			r = end_look(c);
			break;
		}
		c->at += used;
		r = take_thread(c, &thread);
		if (n % CLOCK_THREADS == 0 &&
			(now_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID)) >= until_cpu_ns)
			break;
	}
	now_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	offcpu_looks_cost(c->looks, now_ns - began_ns);
	return r < 0 ? r : c->look ? OFFCPU_MORE : 0;
}

void offcpu_dispatch(struct offcpu *c, uint64_t now_ns)
{
	if (!c)
		return;
	offcpu_looks_dispatch(c->looks, now_ns);
	if (c->wakers)
		wakers_expire(c->wakers, now_ns);
}

void offcpu_stop(struct offcpu *c)
{
	if (!c || !c->wakers || c->has_stopped)
		return;
	/* without memory, waits have no waker */
	(void)wakers_end_look(c->wakers, UINT64_MAX);
	c->has_stopped = true;
	for (struct kept *k = c->kept; k; k = k->hh.next)
		give(c, k, true);
}

bool offcpu_awaits_callers(const struct offcpu *c)
{
	return c && wakers_await(c->wakers);
}

void offcpu_give_up_callers(struct offcpu *c)
{
	if (c)
		wakers_give_all(c->wakers);
}

uint64_t offcpu_wakes_lost(const struct offcpu *c)
{
	return c ? wakers_lost(c->wakers) : 0;
}

void offcpu_watched(struct offcpu *c, bool is_watched)
{
	if (c && is_watched)
		offcpu_looks_pace(c->looks, OFFCPU_EVERY_NS, OFFCPU_PPM);
	else if (c)
		offcpu_looks_pace(c->looks, OFFCPU_ALWAYS_NS, OFFCPU_ALWAYS_PPM);
}

void offcpu_put_off(struct offcpu *c, bool put_off)
{
	if (c)
		offcpu_looks_put_off(c->looks, put_off);
}

struct offcpu_looks_state offcpu_state(const struct offcpu *c)
{
	return c ? offcpu_looks_state(c->looks) : (struct offcpu_looks_state){.n_looks = 0};
}

struct offcpu *offcpu_free(struct offcpu *c)
{
	if (!c)
		return NULL;
	while (c->kept)
		forget(c, c->kept);
	offcpu_look_free(c->look);
	wakers_free(c->wakers);
	offcpu_looks_free(c->looks);
	free(c);
	return NULL;
}
