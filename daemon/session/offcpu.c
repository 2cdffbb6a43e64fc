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

/* Threads that are kept, with some 30 frames each: 20 MB. Others have samples when they are told in full. */
#define KEPT_MAX 65536u
/* Of rest_ns: after so long a thread rests. */
#define RESTS_PART 6u
/* Between two looks at the clock. */
#define CLOCK_THREADS 32u

struct kept {
	pid_t tid;
	uint64_t told_ns;  /* when it was told in full */
	uint64_t since_ns; /* it has waited since then, or longer */
	bool is_found;     /* with what follows */
	bool truncated, is_deep;
	enum rung rung;
	int hart, event;
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
};

int offcpu_new(const struct offcpu_options *o, struct offcpu **ret_offcpu, int *ret_error)
{
	struct offcpu *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->o = *o;
	int r = offcpu_looks_new(o->part_ppm, &c->looks, ret_error);
	if (r == 0 && !sampler_add_offcpu(o->sampler)) {
		*ret_error = E2BIG;
		r = OFFCPU_LOOKS_REFUSED;
	}
	if (r != 0) {
		offcpu_free(c);
		return r == OFFCPU_LOOKS_REFUSED ? OFFCPU_REFUSED : r;
	}
	*ret_offcpu = c;
	return 0;
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

static void give(struct offcpu *c, struct kept *k)
{
	if (!k->is_found || k->count == 0)
		return;
	const struct attribution a = {
		.task = k->task,
		.cgroup = cgroup_find(c->o.tasks, k->cgroup),
		.time_ns = k->last_ns,
		.first_ns = k->first_ns,
		.hart = k->hart,
		.event = k->event,
		.rung = k->rung,
		.count = k->count,
		.weight_ns = k->weight_ns,
		.period = k->count,
		.frame = k->frame,
		.n_frames = k->n_frames,
		.truncated = k->truncated,
		.is_deep = k->is_deep,
		.is_offcpu = true,
	};
	attribute_counted(c->o.attribute, k->task);
	c->o.take(c->o.userdata, &a);
	k->count = k->weight_ns = 0;
}

static void forget(struct offcpu *c, struct kept *k)
{
	HASH_DEL(c->kept, k);
	free(k->frame);
	free(k);
}

/* The entry of a thread that was told in full; NULL: there is no room. */
static struct kept *keep(struct offcpu *c, pid_t tid, bool again, uint64_t time_ns)
{
	struct kept *k = find(c, tid);
	if (k && again) {
		k->told_ns = time_ns; /* it may be found better this time */
		return k;
	}
	if (k) {
		give(c, k);
		k->is_found = false;
		k->count = k->weight_ns = 0;
		k->since_ns = time_ns;
		k->told_ns = time_ns;
		return k;
	}
	k = HASH_COUNT(c->kept) < KEPT_MAX ? calloc(1, sizeof(*k)) : NULL;
	if (!k)
		return NULL;
	k->tid = tid;
	k->told_ns = k->since_ns = time_ns;
	HASH_ADD_INT(c->kept, tid, k);
	if (k->hh.tbl)
		return k;
	free(k);
	return NULL;
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
	/* what was summed up while callers were to come stays */
	k->truncated = a->truncated;
	k->is_deep = a->is_deep;
	k->rung = a->rung;
	k->hart = a->hart;
	k->event = a->event;
	k->task = a->task;
	k->cgroup = a->cgroup ? a->cgroup->id : 0;
	k->n_frames = a->n_frames;
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
			give(c, k);
}

void offcpu_end(struct offcpu *c, const struct task *task)
{
	struct kept *k = c ? find(c, task->tid) : NULL;
	if (!k)
		return;
	give(c, k);
	forget(c, k);
}

void offcpu_mark(const struct offcpu *c, struct sweep *s)
{
	for (const struct kept *k = c ? c->kept : NULL; k; k = k->hh.next) {
		if (!k->is_found)
			continue;
		sweep_keep_task(s, k->task);
		for (uint32_t i = 0; i < k->n_frames; i++)
			sweep_keep_frame(s, k->frame[i]);
	}
}

/* --- looks ------------------------------------------------------------------------------------ */

static int take_thread(struct offcpu *c, struct offcpu_thread *t)
{
	const pid_t tid = (pid_t)t->record.tid;
	if (!t->same) {
		(void)keep(
			c, tid, t->again, c->look->time_ns); /* without it, only "same" is lost */
		t->record.stream = &c->o.sampler->offcpu[t->kind];
		t->record.time_ns = c->look->time_ns;
		return attribute_offcpu(c->o.attribute, &t->record, c->look->weight_ns);
	}
	struct kept *k = find(c, tid);
	if (!k)
		return 0;
	if (k->count++ == 0)
		k->first_ns = c->look->time_ns;
	k->weight_ns += c->look->weight_ns;
	k->last_ns = c->look->time_ns;
	return 0;
}

static void end_look(struct offcpu *c)
{
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
