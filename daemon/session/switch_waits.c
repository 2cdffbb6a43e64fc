/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A thread's stack is copied at each switch out, and walked only if its wait is handed out: walking costs as much as
 * the rest together. While it waits, the thread's copy is here.
 *
 * While a ring is full, a thread that waits may run and wait again: that time is left out of its wait. If it is found
 * leaving a hart next, when its wait ended is not known, and all of it is missing. Both are counted as losses.
 */
#include "daemon/session/switch_waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sampler/sampler.h"
#include "daemon/session/wait_kinds.h"
#include "proto/base/hash_table.h"

#define NS_PER_S 1000000000u
/* Two recordings of one thread have two events, whose records of a switch are so far apart. */
#define TWIN_NS 20000u
/* Threads that are looked up in /proc in one drain after a loss: some 20 us each, so 5 ms. A ring that is full again and
 * again, of a program with very many threads, must not hold up the others. */
#define DOUBTFUL_MAX 256u

struct thread {
	pid_t pid, tid;
	bool is_out, is_preempted;
	bool is_doubtful; /* records were lost since it left its hart */
	int hart;
	uint64_t out_ns;
	uint64_t given_ns; /* its wait was handed out up to then */
	/* found waiting by /proc, at seen_ns; 0: by its switch */
	uint64_t seen_ns;
	enum offcpu_kind kind;
	struct frame *function;
	/* of short waits: time up to the moment drawn, and from there to the end of its part of the grid */
	uint64_t until_ns, rest_ns;
	/* waiting for a hart, in all: by Linux's count when it was first seen; known by preemption; told of waits' ends */
	bool is_counted;
	uint64_t ready_began_ns, preempted_ns, ended_ready_ns;
	/* since the last count: waits that ended. What they did not end with yet is shared by the next ones */
	uint64_t n_ends, ready_due_ns, ready_each_ns;
	/* where it left its hart: chain, registers, stack, in `bytes` */
	bool has_callers;
	bool stack_fills;
	uint64_t regs_abi;
	uint64_t n_chain, n_stack;
	uint8_t *bytes;
	size_t size;
	UT_hash_handle hh; /* by tid */
};

/* A bucket: how often something may be done in a second, by the clock of records. */
struct bucket {
	uint64_t left, filled_ns;
};

struct switch_waits {
	struct switch_waits_options o;
	struct thread *threads;
	size_t n_bytes; /* of copies */
	struct bucket switches, found;
	struct wait_kinds *kinds;
	uint64_t random;
	uint64_t heard_ns[HARTS_MAX]; /* the last record of each hart's ring */
	struct record record;         /* the sample being walked */
};

int switch_waits_new(const struct switch_waits_options *o, struct switch_waits **ret_waits)
{
	struct switch_waits *w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->o = *o;
	w->random = o->seed | 1;
	int r = wait_kinds_new(o->sampler, o->tasks, o->take, o->userdata, &w->kinds);
	if (r < 0) {
		free(w);
		return r;
	}
	*ret_waits = w;
	return 0;
}

static bool bucket_take(struct bucket *b, uint64_t per_s, uint64_t now_ns)
{
	const uint64_t past_ns = now_ns > b->filled_ns ? now_ns - b->filled_ns : 0;
	const uint64_t came = past_ns >= NS_PER_S ? per_s : past_ns * per_s / NS_PER_S;

	if (came > 0) {
		b->left = b->left + came < per_s ? b->left + came : per_s;
		b->filled_ns = now_ns;
	}
	if (b->left == 0)
		return false;
	b->left--;
	return true;
}

/* Uniform in [0, WAITS_GRID_NS). Source: xorshift64* by S. Vigna. */
static uint64_t draw_ns(struct switch_waits *w)
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return (w->random * 0x2545f4914f6cdd1dull >> 32) * WAITS_GRID_NS >> 32;
}

static void lose(struct switch_waits *w, int hart, uint64_t n)
{
	w->o.sampler->lost[hart][LOSS_WAITS] += n;
}

/* --- threads ---------------------------------------------------------------------------------- */

static struct thread *find(const struct switch_waits *w, pid_t tid)
{
	struct thread *t = NULL;
	if (w->threads)
		HASH_FIND_INT(w->threads, &tid, t);
	return t;
}

/* A stack may have secrets: it is here only while its thread waits. */
static void drop_callers(struct thread *t)
{
	if (t->bytes)
		explicit_bzero(t->bytes, t->size);
	t->has_callers = false;
}

static void forget(struct switch_waits *w, struct thread *t)
{
	HASH_DEL(w->threads, t);
	w->n_bytes -= t->size;
	drop_callers(t);
	free(t->bytes);
	free(t);
}

/* NULL: there are too many, or no memory. */
static struct thread *find_or_add(struct switch_waits *w, pid_t pid, pid_t tid)
{
	struct thread *t = find(w, tid);
	if (t && t->pid == pid)
		return t;
	if (t) /* its end was lost */
		forget(w, t);
	t = HASH_COUNT(w->threads) < WAITS_THREADS_MAX ? calloc(1, sizeof(*t)) : NULL;
	if (!t)
		return NULL;
	t->pid = pid;
	t->tid = tid;
	t->until_ns = draw_ns(w);
	t->rest_ns = WAITS_GRID_NS - t->until_ns;
	HASH_ADD_INT(w->threads, tid, t);
	if (t->hh.tbl)
		return t;
	free(t);
	return NULL;
}

static bool make_room(struct switch_waits *w, struct thread *t, size_t n)
{
	if (n <= t->size)
		return true;
	if (w->n_bytes - t->size + n > WAITS_BYTES_MAX)
		return false;
	drop_callers(t);
	uint8_t *bytes = realloc(t->bytes, n);
	if (!bytes)
		return false;
	w->n_bytes += n - t->size;
	t->bytes = bytes;
	t->size = n;
	return true;
}

/* Keep what a walk of the stack needs. */
static void keep_callers(struct switch_waits *w, struct thread *t, const struct record *r)
{
	const struct record_sample *s = &r->sample;
	const size_t n_regs =
		s->regs_abi ? (size_t)__builtin_popcountll(r->stream->regs_user) * 8 : 0;
	const size_t n_chain = s->n_callchain * 8;

	t->has_callers = bucket_take(&w->switches, WAITS_SWITCHES_PER_S, r->time_ns) &&
			 make_room(w, t, n_chain + n_regs + s->n_stack);
	if (!t->has_callers)
		return;
	t->n_chain = s->n_callchain;
	t->n_stack = s->n_stack;
	t->regs_abi = s->regs_abi;
	t->stack_fills = s->stack_fills;
	if (n_chain)
		memcpy(t->bytes, s->callchain, n_chain);
	if (n_regs)
		memcpy(t->bytes + n_chain, s->regs, n_regs);
	if (s->n_stack)
		memcpy(t->bytes + n_chain + n_regs, s->stack, s->n_stack);
}

/* --- what a wait stands for ------------------------------------------------------------------- */

/* The time that a wait of so long stands for; 0: it was not drawn. */
static uint64_t weigh(struct switch_waits *w, struct thread *t, uint64_t ns)
{
	uint64_t weight_ns = 0;

	if (ns >= WAITS_GRID_NS)
		return ns;
	while (ns > t->until_ns) {
		ns -= t->until_ns;
		weight_ns += WAITS_GRID_NS;
		const uint64_t next_ns = draw_ns(w);
		t->until_ns = t->rest_ns + next_ns;
		t->rest_ns = WAITS_GRID_NS - next_ns;
	}
	t->until_ns -= ns;
	return weight_ns;
}

/* Hand out a wait of which /proc alone told. */
static void take_seen(
	struct switch_waits *w, const struct thread *t, uint64_t time_ns, uint64_t weight_ns)
{
	struct task *task = task_find(w->o.tasks, t->tid);
	if (!task || task->end_ns)
		return;
	struct frame *frame = t->function;
	struct attribution a =
		thread_wait_sample(w->o.tasks, task, &w->o.sampler->offcpu[t->kind], &frame);
	a.time_ns = time_ns;
	a.weight_ns = weight_ns;
	attribute_counted(w->o.attribute, task);
	w->o.take(w->o.userdata, &a);
}

static int walk_callers(
	struct switch_waits *w, const struct thread *t, uint64_t time_ns, uint64_t weight_ns)
{
	struct record *r = &w->record;
	struct record_sample *s = &r->sample;
	const bool has = t->has_callers && bucket_take(&w->found, WAITS_FOUND_PER_S, time_ns);
	const struct stream *stream =
		&w->o.sampler->offcpu[t->is_preempted ? OFFCPU_HART : OFFCPU_OTHER];
	const uint64_t n_regs = (uint64_t)__builtin_popcountll(stream->regs_user) * 8;

	memset(r, 0, offsetof(struct record, sample.read));
	r->kind = RECORD_SAMPLE;
	r->stream = stream;
	r->pid = (uint32_t)t->pid;
	r->tid = (uint32_t)t->tid;
	r->cpu = (uint32_t)t->hart;
	r->time_ns = time_ns;
	s->kernel = true;
	s->period = 1;
	if (has && t->bytes) {
		s->callchain = (const uint64_t *)(const void *)t->bytes;
		s->n_callchain = t->n_chain;
		s->regs_abi = t->regs_abi;
		s->regs = (const uint64_t *)(const void *)(t->bytes + t->n_chain * 8);
		s->stack = t->bytes + t->n_chain * 8 + (t->regs_abi ? n_regs : 0);
		s->n_stack = t->n_stack;
		s->stack_fills = t->stack_fills;
	}
	return attribute_offcpu(w->o.attribute, r, weight_ns);
}

/* Its wait lasted until then, or goes on. */
static int account(struct switch_waits *w, struct thread *t, uint64_t until_ns)
{
	const uint64_t ns = until_ns > t->given_ns ? until_ns - t->given_ns : 0;
	const uint64_t weight_ns = weigh(w, t, ns);

	t->given_ns += ns;
	if (weight_ns == 0)
		return 0;
	if (t->seen_ns) {
		take_seen(w, t, until_ns, weight_ns);
		return 0;
	}
	return walk_callers(w, t, until_ns, weight_ns);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* It was woken for some time before it ran. */
static int account_woken(struct switch_waits *w, struct thread *t, uint64_t until_ns)
{
	const uint64_t ns = until_ns > t->given_ns ? until_ns - t->given_ns : 0;
	const uint64_t ready_ns = least(least(t->ready_each_ns, t->ready_due_ns), ns);

	t->n_ends++;
	t->ready_due_ns -= ready_ns;
	t->ended_ready_ns += ready_ns;
	int r = account(w, t, until_ns - ready_ns);
	if (r == 0 && ready_ns > 0) {
		t->is_preempted = true;
		r = account(w, t, until_ns);
	}
	return r;
}

void switch_waits_ready(struct switch_waits *w, const struct task *task, uint64_t ready_ns)
{
	struct thread *t = w ? find_or_add(w, task->pid, task->tid) : NULL;
	if (!t)
		return;
	if (!t->is_counted && task->start_ns < w->o.start_ns)
		t->ready_began_ns = ready_ns;
	t->is_counted = true;
	const uint64_t known_ns = t->ready_began_ns + t->preempted_ns + t->ended_ready_ns;
	t->ready_due_ns = ready_ns > known_ns ? ready_ns - known_ns : 0;
	t->ready_each_ns = t->ready_due_ns / (t->n_ends > 0 ? t->n_ends : 1);
	t->n_ends = 0;
}

/* --- records ---------------------------------------------------------------------------------- */

/* It runs, and that it did so before was lost. */
static void find_running(struct switch_waits *w, struct thread *t, int hart)
{
	if (t->is_out && t->seen_ns == 0)
		lose(w, hart, 1);
	t->is_out = false;
	t->seen_ns = 0;
}

static void take_out(struct switch_waits *w, struct thread *t, const struct record *r, int hart)
{
	if (t->is_out && t->seen_ns == 0 && r->time_ns < t->out_ns + TWIN_NS)
		return;
	find_running(w, t, hart);
	t->is_out = true;
	t->is_preempted = r->switched.preempted;
	t->is_doubtful = false;
	t->out_ns = t->given_ns = r->time_ns;
	t->hart = hart;
}

static int take_in(struct switch_waits *w, struct thread *t, const struct record *r)
{
	int result = 0;
	if (!t->is_out)
		return 0;
	if (t->seen_ns == 0 && t->is_preempted) {
		t->preempted_ns += r->time_ns > t->out_ns ? r->time_ns - t->out_ns : 0;
		result = account(w, t, r->time_ns);
	} else if (t->seen_ns == 0) {
		result = account_woken(w, t, r->time_ns);
	} else if (r->time_ns >= t->seen_ns) { /* else what /proc said is of its next wait */
		result = account(w, t, r->time_ns);
	}
	drop_callers(t);
	t->is_out = false;
	t->seen_ns = 0;
	return result;
}

/* The sample comes before the record of the same switch. */
static void take_sample(struct switch_waits *w, struct thread *t, const struct record *r, int hart)
{
	if (t->is_out && t->seen_ns == 0 && r->time_ns < t->out_ns + TWIN_NS)
		return;
	find_running(w, t, hart);
	keep_callers(w, t, r);
}

static void take_lost(struct switch_waits *w, const struct record *r, int hart)
{
	const uint64_t since_ns = w->heard_ns[hart];
	const uint64_t deaf_ns = since_ns && r->time_ns > since_ns ? r->time_ns - since_ns : 0;

	lose(w, hart, r->lost.n);
	for (struct thread *t = w->threads; t; t = t->hh.next) {
		t->is_doubtful |= t->is_out;
		t->has_callers &= t->is_out;
		if (t->is_out)
			t->given_ns += deaf_ns; /* it may have run all that time */
	}
}

int switch_waits_record(struct switch_waits *w, const struct record *r, int hart)
{
	if (!w)
		return 0;
	if (r->kind == RECORD_LOST)
		take_lost(w, r, hart);
	w->heard_ns[hart] = r->time_ns;
	if (r->kind != RECORD_SAMPLE && r->kind != RECORD_SWITCH)
		return 0;
	if (r->tid == 0 || r->tid > INT32_MAX || r->pid == 0 || r->pid > INT32_MAX)
		return 0;
	struct thread *t = find_or_add(w, (pid_t)r->pid, (pid_t)r->tid);
	if (!t)
		lose(w, hart, 1);
	else if (r->kind == RECORD_SAMPLE)
		take_sample(w, t, r, hart);
	else if (r->switched.out)
		take_out(w, t, r, hart);
	else
		return take_in(w, t, r);
	return 0;
}

void switch_waits_seed(struct switch_waits *w, struct task *task, enum offcpu_kind kind,
	struct frame *function, uint64_t since_ns, uint64_t now_ns)
{
	if (!w || find(w, task->tid))
		return;
	struct thread *t = find_or_add(w, task->pid, task->tid);
	if (!t)
		return;
	t->is_out = true;
	t->out_ns = t->given_ns = since_ns;
	t->seen_ns = now_ns;
	t->kind = kind;
	t->function = function;
}

/* --- waits under way -------------------------------------------------------------------------- */

/* After a loss: does it still wait? */
static bool still_waits(const struct switch_waits *w, const struct thread *t)
{
	struct thread_wait wait;
	return thread_wait_read(w->o.proc, t->pid, t->tid, &wait);
}

void switch_waits_give(struct switch_waits *w, uint64_t now_ns, bool all)
{
	unsigned n_read = 0;
	for (struct thread *t = w ? w->threads : NULL; t; t = t->hh.next) {
		if (!t->is_out || now_ns <= t->given_ns ||
			(!all && now_ns - t->given_ns < WAITS_PART_NS))
			continue;
		const bool may_read = n_read < DOUBTFUL_MAX;
		if (t->is_doubtful && !may_read && !all)
			continue; /* the next time */
		n_read += t->is_doubtful;
		if (t->is_doubtful && (!may_read || !still_waits(w, t))) {
			find_running(w, t, t->hart);
			continue;
		}
		t->is_doubtful = false;
		(void)account(w, t, now_ns); /* without memory, this part is missing */
	}
}

void switch_waits_end(struct switch_waits *w, const struct task *task)
{
	struct thread *t = w ? find(w, task->tid) : NULL;
	if (t)
		forget(w, t);
}

void switch_waits_stop(struct switch_waits *w)
{
	if (!w)
		return;
	while (w->threads)
		forget(w, w->threads);
	sampler_unwatch_waits(w->o.sampler);
}

void switch_waits_mark(const struct switch_waits *w, struct sweep *s)
{
	for (const struct thread *t = w ? w->threads : NULL; t; t = t->hh.next)
		sweep_keep_frame(s, t->function);
	if (w)
		wait_kinds_mark(w->kinds, s);
}

struct switch_waits *switch_waits_free(struct switch_waits *w)
{
	if (!w)
		return NULL;
	while (w->threads)
		forget(w, w->threads);
	wait_kinds_free(w->kinds);
	free(w);
	return NULL;
}

void switch_waits_found(struct switch_waits *w, const struct attribution *a)
{
	if (w && a->count > 0)
		wait_kinds_take(w->kinds, a);
}

void switch_waits_dispatch(struct switch_waits *w, uint64_t now_ns)
{
	if (w)
		wait_kinds_dispatch(w->kinds, now_ns);
}

bool switch_waits_held(const struct switch_waits *w)
{
	return w && wait_kinds_held(w->kinds);
}
