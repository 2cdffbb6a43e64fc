/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A thread is found when it first counts, and is gone when the kernel does not know it any more, so
 * that nothing depends on destructors, which OpenMP's workers never run. Its record is one mapping
 * with room for its lists behind it. Records form a list that only grows; setting its state takes a
 * free one, as with areas.
 *
 * A round sends what a gone thread counted, and frees its record. While nobody listens there is
 * nothing to send, and rounds are rare or there are none; so a thread that needs a record then
 * looks for gone ones itself. It does so when the number in use has doubled since the last look,
 * which costs each thread a few system calls on average, however many there are. It only tries the
 * lock: no holder can be interrupted by a signal handler, so none waits for itself.
 *
 * Switching regions walks over the few objects that the thread has entered, with one store per
 * bias. During the walk the thread is busy: closing an object first marks its blocks, and then
 * waits until the thread is not busy, so a bias that went with its library is never written.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/grant.h"
#include "runtime/gs_base.h"
#include "runtime/object.h"
#include "runtime/state.h"
#include "runtime/thread.h"

struct region_instance mperf_nowhere = {
	.into = &mperf_nowhere,
	.plain = {.out = MPERF_NO_NAME},
	.segment = {.out = MPERF_NO_NAME},
	.asked = {.out = MPERF_NO_NAME},
	.address = MPERF_NOT_OPEN,
};

/* The compiler's model for position-independent code, so that no dlopened library takes static TLS for
 * its copy of the runtime; the linker turns it into the executable's model in executables. */
__thread struct region_instance *mperf_here = &mperf_nowhere;

struct thread *mperf_thread_self(void)
{
	return mperf_here->thread;
}

/* Marsaglia's xorshift with 64 bits of state. Source: Journal of Statistical Software
 * 8(14), 2003. */
uint64_t mperf_thread_chance(void)
{
	struct thread *t = mperf_thread_self();
	if (!t)
		return 0;
	uint64_t x = t->random;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	t->random = x;
	return x >> 20;
}

void *mperf_thread_memory(struct thread *t, size_t bytes)
{
	bytes = (bytes + 15) & ~(size_t)15;
	if (bytes > MPERF_THREAD_BYTES - sizeof(*t) - t->used)
		return NULL;
	void *p = t->bytes + t->used;
	t->used += bytes;
	return p;
}

bool mperf_thread_gone(const struct state *s, const struct thread *t)
{
	return syscall(SYS_tgkill, s->pid, t->tid, 0) < 0 && errno == ESRCH;
}

uint32_t mperf_threads_forget_gone(struct state *s)
{
	uint32_t n = 0;
	struct thread *t = __atomic_load_n(&s->threads, __ATOMIC_ACQUIRE);
	for (; t; t = t->next)
		if (__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) == MPERF_THREAD_LIVES &&
			mperf_thread_gone(s, t)) {
			mperf_thread_forget(t);
			n++;
		}
	return n;
}

void mperf_threads_count(struct state *s)
{
	s->n_records = s->n_records_free = s->look_at = 0;
	for (const struct thread *t = s->threads; t; t = t->next)
		*(t->state == MPERF_THREAD_FREE ? &s->n_records_free : &s->n_records) += 1;
}

/* Called before a new record is taken. */
static void look_for_gone(struct state *s)
{
	uint32_t n = __atomic_load_n(&s->n_records, __ATOMIC_RELAXED);
	if (n < MPERF_RECORDS_LOOK_MIN || n < __atomic_load_n(&s->look_at, __ATOMIC_RELAXED) ||
		pthread_mutex_trylock(&s->lock) != 0)
		return;
	if (mperf_sink_deaf(&s->sink))
		mperf_threads_forget_gone(s);
	n = __atomic_load_n(&s->n_records, __ATOMIC_RELAXED);
	__atomic_store_n(&s->look_at, 2 * n, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&s->lock);
}

/* A record that was used before; NULL: none is free. */
static struct thread *record_find(struct state *s)
{
	if (__atomic_load_n(&s->n_records_free, __ATOMIC_ACQUIRE) == 0)
		return NULL;
	struct thread *t = __atomic_load_n(&s->threads, __ATOMIC_ACQUIRE);
	for (; t; t = t->next) {
		uint32_t nobody = MPERF_THREAD_FREE;
		if (__atomic_compare_exchange_n(&t->state, &nobody, MPERF_THREAD_MADE, 0,
			    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			__atomic_sub_fetch(&s->n_records_free, 1, __ATOMIC_RELAXED);
			return t;
		}
	}
	return NULL;
}

/* A free record, all zeros except for its link in the list. */
static struct thread *record_take(struct state *s)
{
	struct thread *t = record_find(s);
	if (t)
		return t;
	t = mmap(NULL, MPERF_THREAD_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t == MAP_FAILED)
		return NULL;
	t->state = MPERF_THREAD_MADE;
	t->next = __atomic_load_n(&s->threads, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(
		&s->threads, &t->next, t, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	return t;
}

struct thread *mperf_thread_make(void)
{
	if (mperf_thread_self())
		return mperf_thread_self();
	struct state *s = &mperf_state;
	look_for_gone(s);
	struct thread *t = record_take(s);
	if (!t)
		return NULL;
	__atomic_add_fetch(&s->n_records, 1, __ATOMIC_RELAXED);

	t->id = __atomic_fetch_add(&s->n_threads, 1, __ATOMIC_RELAXED);
	t->tid = (uint32_t)syscall(SYS_gettid);
	t->begin_ns = mperf_now_ns();
	t->random = t->begin_ns | 1;
	t->root = t->instances = mperf_thread_memory(t, sizeof(struct region_instance));
	t->root->thread = t;
	t->root->address = MPERF_NOT_OPEN;
	mperf_way_close(t->root);
	__atomic_store_n(&t->state, MPERF_THREAD_LIVES, __ATOMIC_RELEASE);
	mperf_here = t->root;
	return t;
}

void mperf_way_close(struct region_instance *instance)
{
	instance->into = &mperf_nowhere;
	instance->plain.out = instance->segment.out = instance->asked.out = MPERF_NO_NAME;
}

static struct block *block_dead(struct region_instance *instance)
{
	struct block *b = instance->blocks;
	while (b && __atomic_load_n(&b->object, __ATOMIC_ACQUIRE))
		b = b->next;
	return b;
}

static struct block *block_make(
	struct thread *t, struct region_instance *instance, struct object *object, int64_t *bias)
{
	struct area_pool *areas = &mperf_state.areas;
	struct area *a = mperf_area_take(areas, object->n_counters);
	if (!a)
		return NULL;
	struct block *dead = block_dead(instance);
	struct block *b = dead ? dead : mperf_thread_memory(t, sizeof(*b));
	if (!b) {
		mperf_area_give(areas, a);
		return NULL;
	}

	b->bias = bias;
	b->distance = (int64_t)((uintptr_t)a->counters - (uintptr_t)object->counters);
	b->area = a;
	b->from_ns = mperf_now_ns();
	b->round = b->cursor = 0;
	__atomic_store_n(&b->object, object, __ATOMIC_RELEASE);
	if (!dead) {
		b->next = instance->blocks;
		__atomic_store_n(&instance->blocks, b, __ATOMIC_RELEASE);
	}
	return b;
}

static struct block *block_find(struct region_instance *instance, const struct object *object)
{
	struct block *b = instance->blocks;
	while (b && __atomic_load_n(&b->object, __ATOMIC_RELAXED) != object)
		b = b->next;
	return b;
}

static bool entered_add(struct thread *t, struct object *object, int64_t *bias)
{
	struct entered *dead = t->entered;
	while (dead && __atomic_load_n(&dead->object, __ATOMIC_ACQUIRE))
		dead = dead->next;
	struct entered *e = dead ? dead : mperf_thread_memory(t, sizeof(*e));
	if (!e)
		return false;

	e->bias = bias;
	__atomic_store_n(&e->object, object, __ATOMIC_RELEASE);
	if (!dead) {
		e->next = t->entered;
		__atomic_store_n(&t->entered, e, __ATOMIC_RELEASE);
	}
	t->n_entered++;
	return true;
}

struct block *mperf_thread_enter(struct thread *t, struct object *object)
{
	struct region_instance *instance = mperf_here;
	int64_t *bias = object->registration->bias();
	struct block *b = block_make(t, instance, object, bias);
	if (!b)
		return NULL;
	bool filled = instance->n_filled == t->n_entered;
	if (entered_add(t, object, bias) && filled)
		instance->n_filled = t->n_entered;
	for (instance = t->instances; instance; instance = instance->next)
		mperf_way_close(instance);
	return b;
}

/* Make the blocks that a region instance lacks. */
static bool instance_fill(struct thread *t, struct region_instance *instance)
{
	sigset_t all, mask;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);

	bool ok = true;
	for (struct entered *e = t->entered; e && ok; e = e->next) {
		struct object *object = __atomic_load_n(&e->object, __ATOMIC_ACQUIRE);
		if (object && !block_find(instance, object))
			ok = block_make(t, instance, object, e->bias) != NULL;
	}
	if (ok)
		instance->n_filled = t->n_entered;

	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return ok;
}

bool mperf_thread_switch(struct thread *t, struct region_instance *to)
{
	uint32_t before = mperf_thread_busy(t);
	bool ok = to->n_filled == t->n_entered || instance_fill(t, to);
	if (ok) {
		/* Switch the instance first: then a signal handler that enters and leaves a region
		 * meanwhile leaves all biases in their final state. */
		mperf_here = to;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		for (struct block *b = to->blocks; b; b = b->next) {
			const struct object *object = __atomic_load_n(&b->object, __ATOMIC_SEQ_CST);
			if (object)
				mperf_bias_set(object, b->bias, b->distance);
		}
	}
	mperf_thread_idle(t, before);
	return ok;
}

void mperf_thread_forget(struct thread *t)
{
	struct state *s = &mperf_state;
	for (struct region_instance *instance = t->instances; instance; instance = instance->next)
		for (struct block *b = instance->blocks; b; b = b->next)
			if (b->object)
				mperf_area_give(&s->areas, b->area);

	mperf_grant_retire(s, t);

	/* Clear all but its link in the list; set the state to free last. */
	size_t used = t->used;
	for (size_t i = 0; i < used; i++)
		t->bytes[i] = 0;
	for (size_t i = 0; i < MPERF_REGION_DEPTH_MAX; i++)
		t->again[i] = (struct again){0};
	t->busy = t->n_entered = t->n_again = t->too_deep = t->serial = t->round = t->n_timed = 0;
	t->root = t->instances = NULL;
	t->entered = NULL;
	t->tallies = NULL;
	t->used = 0;
	__atomic_sub_fetch(&s->n_records, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&t->state, MPERF_THREAD_FREE, __ATOMIC_RELEASE);
	__atomic_add_fetch(&s->n_records_free, 1, __ATOMIC_RELEASE);
}

void mperf_thread_forked(struct thread *t, uint64_t now_ns)
{
	t->tid = (uint32_t)syscall(SYS_gettid);
	t->begin_ns = now_ns;
	t->serial = t->round = 0;
	t->random ^= (uint64_t)t->tid << 32;
	mperf_grant_retire(&mperf_state, t);
	for (struct region_instance *instance = t->instances; instance; instance = instance->next) {
		instance->spent = (struct spent){.entries = (uint64_t)instance->passes};
		instance->sent = (struct spent){0};
		mperf_way_close(instance); /* the child has no sender yet */
		instance->spreads = (struct spreads){.grant = 0};
		instance->from_ns = now_ns;
		instance->round = 0;
		if (instance->open_ns)
			instance->open_ns = now_ns;
		instance->measured.begin_ns = now_ns;
		for (struct block *b = instance->blocks; b; b = b->next) {
			if (b->object)
				mperf_area_clear(b->area);
			b->from_ns = now_ns;
			b->round = b->cursor = 0;
		}
	}
	for (uint32_t i = 0; i < t->n_timed; i++)
		t->timed[i].inner_ns = 0;
	if (mperf_state.tallies && t->tallies)
		mperf_state.tallies->forked(t);
}
