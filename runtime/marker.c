/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Markers keep a small stack per thread, whose top is mperf_here. An open region is where its instance is,
 * and the region around it is that of the instance's parent; only entries into a region that is open
 * already are in a list (struct again). Each records the machine's stack address at which it was made: one
 * below the address of a beginning marker belongs to a function that was left, by longjmp or by an
 * exception, and ends there. The same marker again at the same address is a loop that iterated without an
 * end.
 *
 * A signal handler may run markers of its own between any two steps. It leaves the stack as it was
 * and the biases as the stack says, so here we change the stack first and the biases after it.
 *
 * Clock and granted counters are read at measured entries only (draw.h), and count for the entries
 * that these stand for. Where a region is inside itself, the outermost entry has the time.
 */
#define MPERF_REGION_RUNTIME_
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "runtime/copies.h"
#include "runtime/executable.h"
#include "runtime/grant.h"
#include "runtime/gs_base.h"
#include "runtime/object.h"
#include "runtime/process.h"
#include "runtime/region.h"

/* Use the precise clock only if a daemon or file takes the times: the coarse clock is off by a tick
 * of the kernel, but cheap. */
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

/* The region instance for a marker inside the current one: find it in the thread's list, or make
 * it. */
static struct region_instance *instance_get(
	struct state *s, struct thread *t, const struct mperf_region *site)
{
	sigset_t all, mask;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);

	struct region_instance *parent = mperf_here;
	struct region_instance *instance = t->instances;
	while (instance && !(instance->parent == parent && same_marker(instance, site)))
		instance = instance->next;
	struct region *region =
		instance ? instance->region : mperf_region_get(s, parent->region, site);
	if (!instance && region)
		instance = mperf_thread_memory(t, sizeof(*instance));
	if (instance && !instance->region) {
		instance->thread = t;
		instance->parent = parent;
		instance->depth = parent->depth + 1;
		instance->address = MPERF_NOT_OPEN;
		mperf_way_close(instance);
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

/* Find the instance that a marker leads to: usually the same as the last time in the current
 * instance. */
static struct region_instance *instance_find(
	struct state *s, struct thread *t, const struct mperf_region *site, bool *ret_again)
{
	struct region_instance *found = mperf_here->entered_last;
	if (!found || !same_marker(found, site)) {
		for (found = mperf_here; found->parent && !same_marker(found, site);)
			found = found->parent;
		if (!found->parent)
			found = instance_get(s, t, site);
		else
			*ret_again = true;
	}
	/* It may be open but not around the current one: in a region nested in itself. */
	if (found && found->address != MPERF_NOT_OPEN)
		*ret_again = true;
	return found;
}

/* An open entry, in the order in which they end. */
struct frame {
	struct region_instance *instance;
	struct region_instance *around;
	uintptr_t address;
	bool again; /* the region is also open further down the stack, where it is measured */
};

/* The topmost frame of an instance, if that many are in the list. */
static struct frame frame_on_top(
	const struct thread *t, struct region_instance *here, uint32_t n_again)
{
	const struct again *a = n_again > 0 ? &t->again[n_again - 1] : NULL;
	if (a && a->instance == here)
		return (struct frame){here, a->around, a->address, true};
	return (struct frame){here, here->parent, here->address, false};
}

/* The frame below. */
static struct frame frame_below(const struct thread *t, const struct frame *f, uint32_t *n_again)
{
	*n_again -= f->again;
	return frame_on_top(t, f->around, *n_again);
}

static uint32_t depth_of(const struct thread *t)
{
	if (t->n_again == 0)
		return mperf_here->depth;
	const struct again *last = &t->again[t->n_again - 1];
	return last->depth + mperf_here->depth - last->instance->depth;
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

static void granted_end(struct region_instance *instance, const struct measured *m,
	const struct end *end, uint64_t ns)
{
	struct spent *spent = &instance->spent;
	struct spreads *spreads = &instance->spreads;
	uint64_t counts[MPERF_GRANTS_MAX];
	if (!end->grant || end->grant != m->grant ||
		!mperf_grant_counts(m->granted, end->granted, counts))
		return;
	for (unsigned i = 0; i < MPERF_GRANTS_MAX; i++) {
		if (spreads->grant != m->grant)
			spreads->granted[i].any = false; /* of another event */
		add(&spent->granted[i], counts[i] * m->stands_for);
		spread(&spent->granted_variance[i], &spreads->granted[i], counts[i], m->stands_for);
	}
	spreads->grant = m->grant;
	add(&spent->granted_ns, ns * m->stands_for);
}

static void measured_end(
	struct region_instance *instance, const struct measured *m, const struct end *end)
{
	struct spent *spent = &instance->spent;
	uint64_t ns = end->now_ns > m->begin_ns ? end->now_ns - m->begin_ns : 0;
	/* Closed before it is added: a concurrent reader sees less, never more. */
	__atomic_store_n(&instance->open_ns, 0, __ATOMIC_RELEASE);
	add(&spent->time_ns, ns * m->stands_for);
	add(&spent->measured, 1);
	add(&spent->represented, m->stands_for);
	spread(&spent->time_variance, &instance->spreads.time, ns, m->stands_for);
	granted_end(instance, m, end, ns);
}

/* Read clock and counters, as far as the n topmost frames need them. The clock first: reading
 * counters is not part of the time. */
static struct end end_read(const struct state *s, struct thread *t, uint32_t n)
{
	struct end end = {.now_ns = 0};
	bool measured = false, granted = false;
	uint32_t n_again = t->n_again;
	struct frame f = frame_on_top(t, mperf_here, n_again);
	for (; n > 0; n--, f = frame_below(t, &f, &n_again)) {
		const struct measured *m = &f.instance->measured;
		measured |= !f.again && m->stands_for > 0;
		granted |= !f.again && m->stands_for > 0 && m->grant != 0;
	}
	if (measured)
		end.now_ns = region_now_ns(s);
	if (granted)
		end.grant = mperf_grant_read(t, end.granted);
	return end;
}

/* May markers switch to that instance by the fast path? Then note its biases. */
static bool way_is_open(const struct state *s, struct thread *t, struct region_instance *at)
{
	if (t->n_again || t->too_deep || at->n_filled != t->n_entered ||
		__atomic_load_n(&s->sender_due, __ATOMIC_RELAXED))
		return false;
	const struct block *b = at->blocks;
	const struct object *object = b ? __atomic_load_n(&b->object, __ATOMIC_SEQ_CST) : NULL;
	at->bias = b ? b->bias : &t->no_bias;
	at->distance = b ? b->distance : 0;
	at->has_gs_base = object && object->has_gs_base;
	at->asks = at->has_gs_base && !s->may_write_gs_base;
	return !b || (object && !b->next && object->stays);
}

static struct way *way_of(struct region_instance *instance)
{
	struct way *segment = instance->asks ? &instance->asked : &instance->segment;
	return instance->has_gs_base ? segment : &instance->plain;
}

/* Call after a region began, unless it was open already: the next entry then takes the fast path
 * in, and this one, if it is not measured, the fast path out. */
static void way_open(const struct state *s, struct thread *t, struct region_instance *around,
	struct region_instance *inside, const struct mperf_region *site)
{
	mperf_way_close(inside);
	inside->plain.in = inside->segment.in = inside->asked.in = NULL;
	if (!way_is_open(s, t, around) || !way_is_open(s, t, inside))
		return;
	/* For memory that never changes, compare addresses. */
	if (mperf_executable_constant(site, sizeof(*site)))
		way_of(inside)->in = site;
	if (inside->measured.stands_for == 0)
		way_of(inside)->out = site->name;
	around->into = inside;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (way_is_open(s, t, inside))
		return;
	mperf_way_close(around); /* a signal handler entered an object meanwhile */
	mperf_way_close(inside);
}

/* End so many frames from the top down, all with the same time. */
static void frames_end(const struct state *s, struct thread *t, uint32_t n)
{
	const struct end end = end_read(s, t, n);
	for (; n > 0; n--) {
		const struct frame f = frame_on_top(t, mperf_here, t->n_again);
		const struct measured m = f.instance->measured;
		mperf_here = f.around;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (f.again) {
			t->n_again--;
			continue;
		}
		f.instance->measured.stands_for = 0;
		f.instance->address = MPERF_NOT_OPEN;
		if (m.stands_for == 0)
			continue;
		measured_end(f.instance, &m, &end);
		if (f.around->into == f.instance)
			way_of(f.instance)->out = f.instance->site.name;
	}
	t->too_deep = 0;
	mperf_thread_switch(t, mperf_here);
	if (!way_is_open(s, t, mperf_here))
		mperf_way_close(mperf_here);
}

/* End the frames that were left without an end before a marker at that address. */
static void end_left(
	struct state *s, struct thread *t, const struct mperf_region *site, uintptr_t address)
{
	uint32_t n = 0, n_again = t->n_again;
	struct frame f = frame_on_top(t, mperf_here, n_again);
	for (; f.instance != t->root; f = frame_below(t, &f, &n_again)) {
		if (f.address > address || (f.address == address && !same_marker(f.instance, site)))
			break;
		n++;
		if (f.address == address)
			break;
	}
	if (n > 0)
		frames_end(s, t, n);
}

/* Read counters and clock for an entry. Mark it as measured last, since a signal handler may jump
 * out of here. */
static void begin_measured(const struct state *s, struct thread *t,
	struct region_instance *instance, uint32_t stands_for)
{
	struct measured *m = &instance->measured;
	m->grant = mperf_grant_read(t, m->granted);
	m->begin_ns = region_now_ns(s);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	m->stands_for = stands_for;
	__atomic_store_n(&instance->open_for, stands_for, __ATOMIC_RELAXED);
	__atomic_store_n(&instance->open_ns, m->begin_ns, __ATOMIC_RELEASE);
}

/* A region that is open already: its outermost entry has the time. */
static void begin_again(struct thread *t, struct region_instance *instance, uintptr_t address)
{
	const struct again entry = {instance, mperf_here, address, depth_of(t) + 1};
	t->again[t->n_again] = entry;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->n_again++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->again[t->n_again - 1] = entry; /* a signal handler's entry may have been there */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!mperf_thread_switch(t, instance)) {
		t->n_again--;
		return;
	}
	mperf_way_close(instance);
	add(&instance->spent.entries, 1);
	add(&instance->spent.inner, 1);
}

static void begin_first(struct state *s, struct thread *t, struct region_instance *instance,
	const struct mperf_region *site, uintptr_t address)
{
	struct region_instance *around = mperf_here;
	instance->measured.stands_for = 0;
	if (!mperf_thread_switch(t, instance))
		return;
	instance->address = address;
	if (instance->passes > 0) {
		__atomic_store_n(&instance->passes, instance->passes - 1, __ATOMIC_RELAXED);
	} else {
		uint64_t passes;
		const uint32_t stands_for = mperf_draw(&instance->draw, s->regions_one_in, &passes);
		__atomic_store_n(
			&instance->passes, instance->passes + (int64_t)passes, __ATOMIC_RELAXED);
		__atomic_store_n(&instance->spent.entries, instance->spent.entries + 1 + passes,
			__ATOMIC_RELEASE);
		if (stands_for > 0)
			begin_measured(s, t, instance, stands_for);
	}
	if (s->regions_one_in != 1) /* otherwise each entry is measured */
		way_open(s, t, around, instance, site);
}

static void begin(
	struct state *s, struct thread *t, const struct mperf_region *site, uintptr_t address)
{
	end_left(s, t, site, address);
	if (depth_of(t) == MPERF_REGION_DEPTH_MAX) {
		t->too_deep++;
		mperf_way_close(mperf_here);
		return;
	}
	bool again = false;
	struct region_instance *instance = instance_find(s, t, site, &again);
	if (instance && again)
		begin_again(t, instance, address);
	else if (instance)
		begin_first(s, t, instance, site, address);
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

static __attribute__((noinline)) void begin_any(const struct mperf_region *site, uintptr_t address)
{
	struct state *s = &mperf_state;
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

static __attribute__((noinline)) void end_any(const char *name)
{
	if (mperf_elsewhere) {
		mperf_elsewhere->region_end(name);
		return;
	}
	struct thread *t = mperf_thread_self();
	if (!t || mperf_here == t->root)
		return;
	if (t->too_deep) {
		t->too_deep--;
		return;
	}
	int error = errno;
	uint32_t n = 1, n_again = t->n_again;
	struct frame f = frame_on_top(t, mperf_here, n_again);
	for (; f.instance != t->root; n++, f = frame_below(t, &f, &n_again))
		if (named(f.instance, name)) {
			frames_end(&mperf_state, t, n);
			break;
		}
	errno = error;
}

/* --- the short way -----------------------------------------------------------------------------
 *
 * The fast path is for an entry that is not measured and leads to the same instance as the last
 * one, in a thread that counts for no object but the executable. The memory that it writes is never
 * freed, so it needs no busy word, and it calls nothing. The last entry on the slow path found
 * whether the fast path is open, and for which markers. The clock is not read, and the number of
 * entries is that of the last draw, less the entries that are yet to pass. So a pair takes 27
 * instructions, and 6 more if %gs is switched too, without those of the caller.
 *
 * Position-independent code finds its own thread-local words by a call, or takes static TLS, which a library
 * that is opened later may not. In the executable they are at the same distance from the thread pointer in
 * all threads. In libraries the distance is 0, where x86-64 has the thread pointer itself: read as an
 * instance, the thread's control block leads into itself by its first word, and no marker is at the
 * addresses that are next in it, so all markers go the long way. Source: System V ABI, AMD64 supplement,
 * 3.4.2 and the TLS supplement, "variant II": %fs:0 is the thread pointer.
 */

#if defined(__x86_64__)

_Static_assert(offsetof(struct region_instance, into) == 0, "as the thread pointer");
static uintptr_t mperf_here_at;

void mperf_marker_start(void)
{
	uintptr_t pointer;
	__asm__("movq %%fs:0, %0" : "=r"(pointer));
	if (mperf_copy_stays && mperf_here_at == 0)
		mperf_here_at = (uintptr_t)&mperf_here - pointer;
}

static inline struct region_instance *here_get(uintptr_t at)
{
	struct region_instance *here;
	__asm__ volatile("movq %%fs:(%1), %0" : "=r"(here) : "r"(at) : "memory");
	return here;
}

static inline void here_set(uintptr_t at, struct region_instance *here)
{
	__asm__ volatile("movq %1, %%fs:(%0)" : : "r"(at), "r"(here) : "memory");
}

/* Decrement in one instruction, which compilers do not make of atomic operations; a signal handler
 * cannot come in between. */
static inline bool pass_takes(int64_t *passes)
{
	bool none;
	__asm__ volatile("subq $1, %1" : "=@ccs"(none), "+m"(*passes));
	if (none)
		__asm__ volatile("addq $1, %0" : "+m"(*passes) : : "cc");
	return !none;
}

/* End of the caller's frame; the same at each of its markers. */
static inline uintptr_t frame_address(void)
{
	uintptr_t address;
	__asm__("movq %%rsp, %0" : "=r"(address));
	return address;
}

#else

#define mperf_here_at 0

void mperf_marker_start(void)
{
}

static inline struct region_instance *here_get(uintptr_t at)
{
	(void)at;
	return mperf_here;
}

static inline void here_set(uintptr_t at, struct region_instance *here)
{
	(void)at;
	mperf_here = here;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline bool pass_takes(int64_t *passes)
{
	if (__atomic_fetch_sub(passes, 1, __ATOMIC_RELAXED) > 0)
		return true;
	__atomic_fetch_add(passes, 1, __ATOMIC_RELAXED);
	return false;
}

static inline __attribute__((always_inline)) uintptr_t frame_address(void)
{
	return (uintptr_t)__builtin_frame_address(0);
}

#endif

/* False: this entry is measured, or the regions around it were left. */
static inline bool pass_in(uintptr_t at, struct region_instance *around,
	struct region_instance *inside, uintptr_t address)
{
	if (around->address < address || !pass_takes(&inside->passes))
		return false;
	here_set(at, inside);
	inside->address = address;
	*inside->bias = inside->distance;
	return true;
}

static inline int64_t pass_out(uintptr_t at, struct region_instance *here)
{
	struct region_instance *around = here->parent;
	here_set(at, around);
	here->address = MPERF_NOT_OPEN;
	*around->bias = around->distance;
	return around->distance;
}

void __mperf_region_begin(const struct mperf_region *site)
{
	const uintptr_t address = frame_address(), at = mperf_here_at;
	struct region_instance *around = here_get(at), *inside = around->into;
	if (inside->plain.in == site) {
		if (pass_in(at, around, inside, address))
			return;
	} else if (inside->segment.in == site) {
		if (pass_in(at, around, inside, address)) {
			mperf_gs_base_write(inside->distance);
			return;
		}
	} else if ((inside->asked.in == site || same_marker(inside, site)) &&
		   pass_in(at, around, inside, address)) {
		if (inside->asks)
			mperf_gs_base_ask(inside->distance);
		else if (inside->has_gs_base)
			mperf_gs_base_write(inside->distance);
		return;
	}
	begin_any(site, address);
}

void __mperf_region_end(const char *name)
{
	const uintptr_t at = mperf_here_at;
	struct region_instance *here = here_get(at);
	if (here->plain.out == name)
		pass_out(at, here);
	else if (here->segment.out == name)
		mperf_gs_base_write(pass_out(at, here));
	else if (here->asked.out == name)
		mperf_gs_base_ask(pass_out(at, here));
	else
		end_any(name);
}
