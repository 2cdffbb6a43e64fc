/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Markers keep a small stack per thread. Its frames record the machine's stack address at which
 * they were made: a frame below the address of a beginning marker belongs to a function that was
 * left, by longjmp or by an exception, and ends there. The same marker again at the same address is
 * a loop that iterated without an end.
 *
 * A signal handler may run markers of its own between any two steps. It leaves the stack as it was
 * and the biases as the stack says, so here we change the stack first and the biases after it.
 *
 * Clock and granted counters are read at measured entries only (draw.h), and count for the entries
 * that these stand for. Where a region is inside itself, the outermost entry has the time.
 */
#define MPERF_REGION_RUNTIME_
#include <errno.h>
#include <string.h>
#include <time.h>

#include "runtime/copies.h"
#include "runtime/grant.h"
#include "runtime/object.h"
#include "runtime/process.h"
#include "runtime/region.h"
#include "runtime/segment.h"

/* Precise only if somebody listens: the coarse clock is off by a tick of the kernel, but cheap. */
static uint64_t region_now_ns(const struct state *s)
{
	struct timespec now;
	clock_gettime(__atomic_load_n(&s->sink.listens, __ATOMIC_RELAXED) ? CLOCK_MONOTONIC
									  : CLOCK_MONOTONIC_COARSE,
		&now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Only the thread writes members of spent; the round reads them. */
static void add(uint64_t *to, uint64_t more)
{
	__atomic_store_n(to, *to + more, __ATOMIC_RELAXED);
}

static bool same_marker(const struct region_instance *instance, const struct mperf_region *site)
{
	return instance->site.name == site->name && instance->site.line == site->line &&
	       instance->site.source == site->source;
}

/* The region instance at a marker inside the current one, found among all of the thread's or made. */
static struct region_instance *instance_get(
	struct state *s, struct thread *t, const struct mperf_region *site)
{
	sigset_t all, mask;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);

	struct region_instance *parent = t->instance;
	struct region_instance *instance = t->instances;
	while (instance && !(instance->parent == parent && same_marker(instance, site)))
		instance = instance->next;
	struct region *region =
		instance ? instance->region : mperf_region_get(s, parent->region, site);
	if (!instance && region)
		instance = mperf_thread_memory(t, sizeof(*instance));
	if (instance && !instance->region) {
		instance->parent = parent;
		instance->region = region;
		instance->site = *site;
		instance->from_ns = mperf_now_ns();
		instance->next = t->instances;
		__atomic_store_n(&t->instances, instance, __ATOMIC_RELEASE);
	}
	if (instance)
		parent->entered_last = instance;

	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return instance;
}

/* Where a marker leads: usually the same instance as last time in the current one. */
static struct region_instance *instance_find(
	struct state *s, struct thread *t, const struct mperf_region *site, bool *ret_again)
{
	struct region_instance *last = t->instance->entered_last;
	if (last && same_marker(last, site))
		return last;
	for (struct region_instance *around = t->instance; around->parent; around = around->parent)
		if (same_marker(around, site)) {
			*ret_again = true;
			return around;
		}
	return instance_get(s, t, site);
}

/* Counters and clock when frames end. */
struct end {
	uint64_t now_ns;
	uint32_t grant;
	struct grant_reading granted[MPERF_GRANTS_MAX];
};

static void spread(uint64_t *ret_units, struct spread *s, uint64_t value, uint32_t stands_for)
{
	mperf_spread_add(s, value, stands_for);
	__atomic_store_n(ret_units, mperf_spread_units(s), __ATOMIC_RELAXED);
}

static void granted_end(const struct frame *f, const struct end *end, uint64_t ns)
{
	struct spent *spent = &f->instance->spent;
	struct spreads *spreads = &f->instance->spreads;
	uint64_t counts[MPERF_GRANTS_MAX];
	if (!end->grant || end->grant != f->grant ||
		!mperf_grant_counts(f->granted, end->granted, counts))
		return;
	for (unsigned i = 0; i < MPERF_GRANTS_MAX; i++) {
		if (spreads->grant != f->grant)
			spreads->granted[i].any = false; /* of another event */
		add(&spent->granted[i], counts[i] * f->stands_for);
		spread(&spent->granted_variance[i], &spreads->granted[i], counts[i], f->stands_for);
	}
	spreads->grant = f->grant;
	add(&spent->granted_ns, ns * f->stands_for);
}

static void frame_end(const struct frame *f, const struct end *end)
{
	struct spent *spent = &f->instance->spent;
	uint64_t ns = end->now_ns > f->begin_ns ? end->now_ns - f->begin_ns : 0;
	/* Closed before it is added: a concurrent reader sees less, never more. */
	__atomic_store_n(&f->instance->open_ns, 0, __ATOMIC_RELEASE);
	add(&spent->time_ns, ns * f->stands_for);
	add(&spent->measured, 1);
	add(&spent->represented, f->stands_for);
	spread(&spent->time_variance, &f->instance->spreads.time, ns, f->stands_for);
	granted_end(f, end, ns);
}

/* Clock and counters, as far as these frames need them. The clock first: reading counters is not
 * part of the time. */
static struct end end_read(const struct state *s, struct thread *t, uint32_t down_to)
{
	struct end end = {.now_ns = 0};
	bool measured = false, granted = false;
	for (uint32_t i = down_to; i < t->depth; i++) {
		measured |= t->frames[i].stands_for > 0;
		granted |= t->frames[i].stands_for > 0 && t->frames[i].grant != 0;
	}
	if (measured)
		end.now_ns = region_now_ns(s);
	if (granted)
		end.grant = mperf_grant_read(t, end.granted);
	return end;
}

/* End the frames from the top down to that number, all with the same time. */
static void frames_end(const struct state *s, struct thread *t, uint32_t down_to)
{
	const struct end end = end_read(s, t, down_to);
	while (t->depth > down_to) {
		struct frame f = t->frames[t->depth - 1];
		t->depth--;
		if (f.stands_for > 0)
			frame_end(&f, &end);
	}
	t->too_deep = 0;
	mperf_thread_switch(t, t->depth ? t->frames[t->depth - 1].instance : t->root);
}

/* End the frames that were left without an end before a marker at that address. */
static void end_left(
	struct state *s, struct thread *t, const struct mperf_region *site, uintptr_t address)
{
	uint32_t keep = t->depth;
	while (keep > 0 && t->frames[keep - 1].address < address)
		keep--;
	if (keep > 0 && t->frames[keep - 1].address == address &&
		same_marker(t->frames[keep - 1].instance, site))
		keep--;
	if (keep < t->depth)
		frames_end(s, t, keep);
}

/* Read counters and clock for a frame. It counts as measured last, since a signal handler may jump
 * out of here. */
static void begin_measured(
	const struct state *s, struct thread *t, struct frame *f, uint32_t stands_for)
{
	f->grant = mperf_grant_read(t, f->granted);
	f->begin_ns = region_now_ns(s);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	f->stands_for = stands_for;
	__atomic_store_n(&f->instance->open_for, stands_for, __ATOMIC_RELAXED);
	__atomic_store_n(&f->instance->open_ns, f->begin_ns, __ATOMIC_RELEASE);
}

static void begin(
	struct state *s, struct thread *t, const struct mperf_region *site, uintptr_t address)
{
	if (t->depth)
		end_left(s, t, site, address);
	if (t->depth == MPERF_REGION_DEPTH_MAX) {
		t->too_deep++;
		return;
	}
	bool again = false;
	struct region_instance *instance = instance_find(s, t, site, &again);
	if (!instance)
		return;

	/* The address before the frame is taken: a handler's markers may use the same frame. */
	struct frame *f = &t->frames[t->depth];
	f->address = address;
	f->instance = instance;
	f->stands_for = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->depth++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	f->address = address;
	f->instance = instance;
	f->stands_for = 0;
	if (!mperf_thread_switch(t, instance)) {
		t->depth--;
		return;
	}
	add(&instance->spent.entries, 1);
	if (again)
		add(&instance->spent.inner, 1);
	const uint32_t stands_for = again ? 0 : mperf_draw(&instance->draw, s->regions_one_in);
	if (stands_for > 0)
		begin_measured(s, t, f, stands_for);
}

static struct thread *thread_first(void)
{
	sigset_t all, mask;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	struct thread *t = mperf_thread_make();
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return t;
}

static __attribute__((noinline)) void begin_any(
	struct state *s, const struct mperf_region *site, uintptr_t address)
{
	if (mperf_elsewhere) {
		mperf_elsewhere->region_begin(site);
		return;
	}
	if (!__atomic_load_n(&s->started, __ATOMIC_ACQUIRE) || s->silent)
		return;
	int error = errno;
	mperf_process_look(s);
	struct thread *t = mperf_thread_self();
	if (!t)
		t = thread_first();
	if (t)
		begin(s, t, site, address);
	errno = error;
}

static bool named(const struct region_instance *instance, const char *name)
{
	return instance->site.name == name ||
	       strncmp(instance->region->text, name, MPERF_REGION_TEXT_MAX - 1) == 0;
}

static __attribute__((noinline)) void end_any(struct thread *t, const char *name)
{
	if (mperf_elsewhere) {
		mperf_elsewhere->region_end(name);
		return;
	}
	if (!t || t->depth == 0)
		return;
	if (t->too_deep) {
		t->too_deep--;
		return;
	}
	int error = errno;
	for (uint32_t i = t->depth; i > 0; i--)
		if (named(t->frames[i - 1].instance, name)) {
			frames_end(&mperf_state, t, i - 1);
			break;
		}
	errno = error;
}

/* --- the short way -----------------------------------------------------------------------------
 *
 * An entry that is not measured, into where the last one led, of a thread that counts for one object:
 * it calls nothing, so no register is saved for it. Only a copy that serves has threads.
 */

/* As mperf_thread_switch; t->busy is set. False: that is needed, and nothing was done. */
static inline bool switch_short(const struct state *s, struct thread *t, struct region_instance *to)
{
	const struct block *b = to->blocks;
	const struct object *object = b ? __atomic_load_n(&b->object, __ATOMIC_SEQ_CST) : NULL;
	if (!object || b->next || to->n_filled != t->n_entered ||
		(object->has_segment && !s->may_write_segment))
		return false;
	t->instance = to;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*b->bias = b->distance;
	if (object->has_segment)
		mperf_segment_write(b->distance);
	return true;
}

static inline bool begin_short(
	const struct state *s, struct thread *t, const struct mperf_region *site, uintptr_t address)
{
	const uint32_t depth = t->depth;
	struct region_instance *instance = t->instance->entered_last;
	struct frame *f = &t->frames[depth];
	if (__atomic_load_n(&s->sender_due, __ATOMIC_RELAXED) || depth == MPERF_REGION_DEPTH_MAX ||
		(depth > 0 && f[-1].address <= address) || !instance ||
		!same_marker(instance, site) ||
		!mperf_draw_passes(&instance->draw, s->regions_one_in))
		return false;
	const uint32_t before = mperf_thread_busy(t);
	/* twice, as begin() does */
	f->address = address;
	f->instance = instance;
	f->stands_for = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->depth = depth + 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	f->address = address;
	f->instance = instance;
	f->stands_for = 0;
	const bool done = switch_short(s, t, instance);
	if (done) {
		add(&instance->spent.entries, 1);
		instance->draw.seen++;
	} else {
		t->depth = depth;
	}
	mperf_thread_idle(t, before);
	return done;
}

void __mperf_region_begin(const struct mperf_region *site)
{
	struct state *s = &mperf_state;
	struct thread *t = mperf_self;
	const uintptr_t address = (uintptr_t)__builtin_frame_address(0);
	if (!t || !begin_short(s, t, site, address))
		begin_any(s, site, address);
}

void __mperf_region_end(const char *name)
{
	struct thread *t = mperf_self;
	if (!t || t->depth == 0 || t->too_deep)
		return end_any(t, name);
	const uint32_t depth = t->depth - 1;
	const struct frame *f = &t->frames[depth];
	if (f->stands_for > 0 || f->instance->site.name != name)
		return end_any(t, name);
	const uint32_t before = mperf_thread_busy(t);
	t->depth = depth;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	const bool done = switch_short(&mperf_state, t, depth > 0 ? f[-1].instance : t->root);
	if (!done)
		t->depth = depth + 1;
	mperf_thread_idle(t, before);
	if (!done)
		end_any(t, name);
}
