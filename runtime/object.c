/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Objects come and go with dlopen and dlclose. One that goes sends what it counted while its tables
 * are still mapped, and waits a moment for a daemon that is behind. Its areas are not unmapped: a
 * destructor that runs late still counts somewhere. An object of another ABI is left alone: its
 * biases stay 0, and it counts into its own words, which nobody reads.
 */
#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#include "runtime/copies.h"
#include "runtime/grant.h"
#include "runtime/image.h"
#include "runtime/round.h"
#include "runtime/segment.h"
#include "runtime/state.h"
#include "runtime/table.h"

#define BUSY_WAIT_NS 50000 /* a thread is busy for some stores, or the time of a page fault */
#define BUSY_WAITS_MAX                                                                             \
	20000u /* a second, by when a thread that was killed in there is given up                  \
		*/

static bool module_ours(const struct mperf_module *m, const struct mperf_object *o)
{
	return m->abi == MPERF_ABI_VERSION && m->counters >= o->counters &&
	       m->counters <= o->counters_end &&
	       m->n_counters <= (uint64_t)(o->counters_end - m->counters);
}

const struct mperf_module *mperf_image_module(const struct image *image, uint32_t n)
{
	const struct mperf_module *m = image->object->modules;
	for (; m != image->object->modules_end; m++)
		if (module_ours(m, image->object) && n-- == 0)
			break;
	return m;
}

const uint8_t *mperf_image_uses(struct image *image)
{
	if (image->uses)
		return image->uses;
	uint8_t *uses = mmap(NULL, image->n_counters, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (uses == MAP_FAILED)
		return NULL;

	const struct mperf_object *o = image->object;
	for (const struct mperf_module *m = o->modules; m != o->modules_end; m++)
		if (module_ours(m, o)) /* a broken one is not sent: nobody could read it */
			mperf_table_uses(m->table, m->table_bytes,
				uses + (m->counters - o->counters), m->n_counters);
	image->uses = uses;
	return uses;
}

/* A record that no object has. */
static struct image *image_take(struct state *s)
{
	for (struct image *i = s->images; i; i = i->next)
		if (!i->open)
			return i;
	struct image *i =
		mmap(NULL, sizeof(*i), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (i == MAP_FAILED)
		return NULL;
	i->next = s->images;
	s->images = i;
	return i;
}

static void image_open(struct state *s, struct mperf_object *o)
{
	size_t n = (size_t)(o->counters_end - o->counters);
	struct area *lost = mperf_area_take(&s->areas, n);
	struct image *i = lost ? image_take(s) : NULL;
	if (!i) {
		if (lost)
			mperf_area_give(&s->areas, lost);
		return;
	}
	*i = (struct image){.next = i->next,
		.open = true,
		.id = s->n_images++,
		.object = o,
		.counters = o->counters,
		.n_counters = (uint32_t)n,
		.lost = lost};
	for (const struct mperf_module *m = o->modules; m != o->modules_end; m++)
		if (module_ours(m, o)) {
			i->n_modules++;
			i->has_segment |= (m->flags & MPERF_MODULE_SEGMENT) != 0;
		}
	o->id = i->id;
	__atomic_store_n(&o->runtime, i, __ATOMIC_RELEASE);
}

__attribute__((visibility("default"))) void __mperf_object_register(struct mperf_object *o)
{
	struct state *s = &mperf_state;
	int error = errno;
	__mperf_start();
	if (mperf_elsewhere) {
		mperf_elsewhere->object_register(o);
		return;
	}
	sigset_t mask;
	mperf_lock(s, &mask);
	if (o->abi == MPERF_ABI_VERSION && !o->runtime && o->counters < o->counters_end)
		image_open(s, o);
	mperf_unlock(s, &mask);
	errno = error;
}

/* Take the object's blocks out of a thread's sight, and their areas. */
static void blocks_part(struct state *s, struct thread *t, const struct image *image)
{
	for (struct entered *e = __atomic_load_n(&t->entered, __ATOMIC_ACQUIRE); e; e = e->next)
		if (__atomic_load_n(&e->image, __ATOMIC_RELAXED) == image)
			__atomic_store_n(&e->image, NULL, __ATOMIC_SEQ_CST);

	for (struct stay *stay = __atomic_load_n(&t->stays, __ATOMIC_ACQUIRE); stay;
		stay = stay->next)
		for (struct block *b = __atomic_load_n(&stay->blocks, __ATOMIC_ACQUIRE); b;
			b = b->next)
			if (__atomic_load_n(&b->image, __ATOMIC_ACQUIRE) == image) {
				struct area *a = b->area;
				__atomic_store_n(&b->image, NULL, __ATOMIC_SEQ_CST);
				mperf_area_give(&s->areas, a);
			}
}

static void busy_wait(const struct thread *t)
{
	struct timespec pause = {.tv_nsec = BUSY_WAIT_NS};
	for (unsigned i = 0; i < BUSY_WAITS_MAX; i++) {
		if (!__atomic_load_n(&t->busy, __ATOMIC_SEQ_CST))
			break;
		nanosleep(&pause, NULL);
	}
}

/* Twice: a thread that enters a region in between may still make blocks for it. */
static void thread_part(struct state *s, struct thread *t, const struct image *image)
{
	blocks_part(s, t, image);
	busy_wait(t);
	blocks_part(s, t, image);
}

static void image_close(struct state *s, struct image *image, struct mperf_object *o)
{
	__atomic_store_n(&o->runtime, NULL, __ATOMIC_SEQ_CST);
	for (struct thread *t = __atomic_load_n(&s->threads, __ATOMIC_ACQUIRE); t; t = t->next)
		if (__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) == MPERF_THREAD_LIVES)
			thread_part(s, t, image);
	if (image->uses)
		munmap(image->uses, image->n_counters);
	image->uses = NULL;
	mperf_area_give(&s->areas, image->lost);
	image->open = false;
}

__attribute__((visibility("default"))) void __mperf_object_unregister(struct mperf_object *o)
{
	if (mperf_elsewhere) {
		mperf_elsewhere->object_unregister(o);
		return;
	}
	struct state *s = &mperf_state;
	int error = errno;
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	sigset_t mask;
	mperf_lock(s, &mask);
	struct image *image = o->runtime;
	if (image && s->pid == getpid()) {
		bool exits = __atomic_load_n(&s->exiting, __ATOMIC_ACQUIRE);
		mperf_round_through(s, exits);
		/* At the end of the program others may still run in it. */
		if (!exits) {
			if (image->serial == s->sink.serial)
				mperf_round_gone(s, MPERF_GONE_OBJECT, image->id);
			image_close(s, image, o);
		}
	}
	mperf_unlock(s, &mask);
	pthread_setcancelstate(cancel, NULL);
	errno = error;
}

__attribute__((visibility("default"), noinline)) int64_t __mperf_thread_enter(
	struct mperf_object *o)
{
	if (mperf_elsewhere)
		return mperf_elsewhere->thread_enter(o);
	struct state *s = &mperf_state;
	struct image *image = __atomic_load_n(&o->runtime, __ATOMIC_ACQUIRE);
	if (!image)
		return 0;

	int error = errno;
	sigset_t all, mask;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	int64_t *bias = o->bias();
	if (*bias == 0) {
		struct thread *t = mperf_thread_make();
		struct block *b = t ? mperf_thread_enter(t, image) : NULL;
		int64_t lost =
			(int64_t)((uintptr_t)image->lost->counters - (uintptr_t)image->counters);
		if (!mperf_bias_set(image, bias, b ? b->distance : lost) || !b)
			__atomic_add_fetch(&s->threads_lost, 1, __ATOMIC_RELAXED);
	}
	int64_t value = *bias;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	errno = error;
	return value;
}
