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
/* The longest wait for callers of threads that are still waiting. */
#define CALLERS_NS 3000000000u
/* Between two readings of an owner. */
#define OWNED_NS 10000000000u
/* A thread that no look found for so long is forgotten; its next telling is a new one. */
#define UNSEEN_NS (2ull * OFFCPU_MOST_NS)
/* Between two looks at the clock. */
#define CLOCK_THREADS 32u

struct kept {
	pid_t tid;
	uint64_t told_ns;  /* when it had a full record */
	uint64_t since_ns; /* it has waited since then, or longer */
	uint64_t seen_ns;  /* the last look that found it */
	uint64_t owned_ns; /* when its owner was last told that it is sampled */
	enum offcpu_kind kind;
	bool is_found; /* with its callers; else there is only the task */
	bool truncated, is_deep;
	int hart;
	struct task *task;
	uint64_t cgroup; /* id */
	/* looks that found it there and were not given yet */
	uint64_t count, weight_ns, first_ns, last_ns;
	uint32_t n_frames, size;
	struct frame **frame;
	UT_hash_handle hh;
};

struct offcpu {
	struct offcpu_options o;
	struct offcpu_looks *looks;
	struct offcpu_look *look; /* that is taken, up to `at`; NULL: none */
	size_t at;
	struct kept *kept; /* by tid */
	uint64_t start_ns; /* of the session; UINT64_MAX: not yet */
};

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
	if (r == 0)
		(void)sampler_add_offcpu(o->sampler, false);
	if (r != 0) {
		offcpu_free(c);
		return r == OFFCPU_LOOKS_REFUSED ? OFFCPU_REFUSED : r;
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
	if (k->last_ns < k->owned_ns + OWNED_NS)
		return;
	k->owned_ns = k->last_ns;
	attribute_counted(c->o.attribute, k->task);
}

/* Callers that are on their way are awaited for a while, unless this is the last chance. */
static void give(struct offcpu *c, struct kept *k, bool is_last)
{
	const struct stream *s = &c->o.sampler->offcpu[k->kind];
	if (k->count == 0 || (!k->is_found && !is_last && k->last_ns < k->told_ns + CALLERS_NS))
		return;
	const struct attribution a = {
		.task = k->task,
		.cgroup = cgroup_find(c->o.tasks, k->cgroup),
		.time_ns = k->last_ns,
		.first_ns = k->first_ns,
		.hart = k->hart,
		.event = s->event,
		.rung = s->rung,
		.count = k->count,
		.weight_ns = k->weight_ns,
		.period = k->count,
		.frame = k->frame,
		.n_frames = k->is_found ? k->n_frames : 0,
		.truncated = !k->is_found || k->truncated,
		.is_deep = k->is_found && k->is_deep,
		.is_offcpu = true,
	};
	note_owner(c, k);
	c->o.take(c->o.userdata, &a);
	k->count = k->weight_ns = 0;
}

static void forget(struct offcpu *c, struct kept *k)
{
	HASH_DEL(c->kept, k);
	free(k->frame);
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
		k->tid = tid;
		HASH_ADD_INT(c->kept, tid, k);
		if (!k->hh.tbl) {
			free(k);
			return NULL;
		}
		k->since_ns = time_ns;
	} else if (!t->again) {
		give(c, k, true);
		k->is_found = false;
		k->since_ns = time_ns;
	}
	if (!t->again || !k->is_found) {
		k->kind = t->kind;
		k->task = task;
		k->cgroup = task->cgroup;
		k->hart = (int)t->record.cpu;
	}
	k->told_ns = k->seen_ns = time_ns; /* it may be found better this time */
	return k;
}

void offcpu_found(struct offcpu *c, const struct attribution *a)
{
	struct kept *k = c && a->task ? find(c, a->task->tid) : NULL;
	if (!k || k->told_ns != a->time_ns)
		return;
	if (a->n_frames > k->size) {
		struct frame **frame = reallocarray(k->frame, a->n_frames, sizeof(*frame));
		if (!frame)
			return;
		k->frame = frame;
		k->size = a->n_frames;
	}
	k->truncated = a->truncated;
	k->is_deep = a->is_deep;
	k->hart = a->hart;
	k->task = a->task;
	k->cgroup = a->cgroup ? a->cgroup->id : 0;
	k->n_frames = a->n_frames;
	k->owned_ns = a->time_ns;
	if (a->n_frames > 0)
		memcpy(k->frame, a->frame, a->n_frames * sizeof(*a->frame));
	k->is_found = true;
}

/* Has it waited for so long that a row of it now and then will do? */
static bool rests(const struct offcpu *c, const struct kept *k)
{
	return k->last_ns - k->since_ns > c->o.rest_ns / RESTS_PART &&
	       k->last_ns - k->first_ns < c->o.rest_ns;
}

void offcpu_give(struct offcpu *c, bool all)
{
	for (struct kept *k = c ? c->kept : NULL; k; k = k->hh.next)
		if (all || !c->o.rest_ns || !rests(c, k))
			give(c, k, false);
}

void offcpu_end(struct offcpu *c, const struct task *task)
{
	struct kept *k = c ? find(c, task->tid) : NULL;
	if (!k)
		return;
	give(c, k, true);
	forget(c, k);
}

void offcpu_mark(const struct offcpu *c, struct sweep *s)
{
	for (const struct kept *k = c ? c->kept : NULL; k; k = k->hh.next) {
		sweep_keep_task(s, k->task);
		for (uint32_t i = 0; k->is_found && i < k->n_frames; i++)
			sweep_keep_frame(s, k->frame[i]);
	}
}

/* --- looks ------------------------------------------------------------------------------------ */

static int take_thread(struct offcpu *c, struct offcpu_thread *t)
{
	/* a look before the session only tells who waits where */
	const uint64_t time_ns = c->look->time_ns,
		       weight_ns = time_ns < c->start_ns ? 0 : c->look->weight_ns;
	struct kept *k = find(c, (pid_t)t->record.tid);
	if (t->restarts && k)
		t->kind = k->kind;
	if (!t->same) {
		t->record.stream = &c->o.sampler->offcpu[t->kind];
		t->record.time_ns = time_ns;
		(void)keep(c, t, time_ns); /* without it, later looks have no callers for it */
		return attribute_offcpu(c->o.attribute, &t->record, weight_ns);
	}
	if (!k || !weight_ns)
		return 0;
	if (k->task->end_ns) { /* it has another name, job or owner */
		struct task *now = task_find(c->o.tasks, k->tid);
		give(c, k, true);
		k->task = now ? now : k->task;
	}
	if (k->count++ == 0)
		k->first_ns = time_ns;
	k->weight_ns += weight_ns;
	k->last_ns = k->seen_ns = time_ns;
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

static void end_look(struct offcpu *c)
{
	forget_unseen(c, c->look->time_ns);
	offcpu_look_free(c->look);
	c->look = NULL;
	c->at = 0;
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
			end_look(c);
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
	if (c)
		offcpu_looks_dispatch(c->looks, now_ns);
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
	offcpu_looks_free(c->looks);
	free(c);
	return NULL;
}
