/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Short nests are timed by sample. Entries are divided into windows of 1, 2, 4, … 1,024; of each
 * window one entry is timed, at a place that chance chooses, and its time counts as many times as
 * the window has entries. Each entry's chance is then exactly one in a window and its weight the
 * inverse, so the sum has no bias; since a window's size is fixed before its entries are seen,
 * adapting it brings none in. It doubles while timing costs more than its share, and halves, or
 * quarters, where entries have become longer.
 *
 * What a look at the clock takes by itself is taken off. Time is CLOCK_MONOTONIC's: a cycle counter
 * may be out of reach or differ between harts.
 */
#include "runtime/nest.h"
#include "runtime/copies.h"
#include "runtime/process.h"

struct window {
	unsigned log2;
	uint64_t after; /* entries of it that come after the timed one */
};

static struct window unpack(uint64_t word)
{
	if (!(word & MPERF_NEST_CLOSED))
		return (struct window){0};
	return (struct window){.log2 = word & 15, .after = (word >> 4) & 1023};
}

static uint64_t pack(struct window w)
{
	return MPERF_NEST_CLOSED | w.after << 4 | w.log2;
}

/* Choose the entry to be timed of the next window, which begins after `before` entries. */
static struct window draw(uint64_t *words, uint64_t before, unsigned log2)
{
	uint64_t last = (UINT64_C(1) << log2) - 1;
	uint64_t phase = log2 ? mperf_thread_chance() & last : 0;
	__atomic_store_n(&words[MPERF_NEST_COUNTDOWN], before + phase + 1, __ATOMIC_RELAXED);
	return (struct window){.log2 = log2, .after = last - phase};
}

unsigned mperf_nest_window(unsigned log2, uint64_t ns, uint64_t cost_ns)
{
	uint64_t wanted = 0;
	while (wanted < MPERF_WINDOW_LOG2_MAX && (ns << wanted) < cost_ns * MPERF_TIMING_SHARE)
		wanted++;
	if (wanted > log2)
		return log2 + 1;
	if (wanted + 2 < log2)
		return log2 - 2;
	return (unsigned)wanted;
}

__attribute__((visibility("default"))) uint64_t __mperf_nest_begin(
	uint64_t *words, uint32_t published)
{
	if (__builtin_expect(mperf_elsewhere != NULL, 0))
		return mperf_elsewhere->nest_begin(words, published);
	mperf_process_look(&mperf_state);
	/* An open word here is one whose end never came: a signal handler jumped out. */
	struct window now = unpack(__atomic_load_n(&words[MPERF_NEST_OPEN_NS], __ATOMIC_RELAXED));
	struct window next = draw(words, now.after, now.log2);
	uint64_t word = pack(next);
	uint64_t begin_ns = mperf_now_ns();
	if (published && now.log2 == 0)
		word = begin_ns;
	__atomic_store_n(&words[MPERF_NEST_OPEN_NS], word, __ATOMIC_RELEASE);
	return begin_ns;
}

/* Give the next window another size: the entry that was chosen of it is chosen anew. */
static struct window resize(uint64_t *words, struct window next, unsigned log2)
{
	uint64_t phase = (UINT64_C(1) << next.log2) - 1 - next.after;
	int64_t before = (int64_t)words[MPERF_NEST_COUNTDOWN] - 1 - (int64_t)phase;
	return draw(words, before > 0 ? (uint64_t)before : 0, log2);
}

__attribute__((visibility("default"))) void __mperf_nest_end(uint64_t *words, uint64_t begin_ns)
{
	if (__builtin_expect(mperf_elsewhere != NULL, 0)) {
		mperf_elsewhere->nest_end(words, begin_ns);
		return;
	}
	const struct state *s = &mperf_state;
	uint64_t now_ns = mperf_now_ns();
	if (begin_ns < s->begin_ns)
		begin_ns = s->begin_ns; /* in a fork's child: the rest is its parent's */
	uint64_t ns = now_ns > begin_ns + s->clock_ns ? now_ns - begin_ns - s->clock_ns : 0;

	struct window w = unpack(__atomic_load_n(&words[MPERF_NEST_OPEN_NS], __ATOMIC_RELAXED));
	unsigned weight = w.log2;
	unsigned log2 = mperf_nest_window(w.log2, ns, 2 * (uint64_t)s->clock_ns);
	if (log2 != w.log2)
		w = resize(words, w, log2);

	/* Closed before it is added: who reads in between sees less, never more. */
	__atomic_store_n(&words[MPERF_NEST_OPEN_NS], pack(w), __ATOMIC_RELEASE);
	uint64_t *entries = &words[MPERF_NEST_TIMED_ENTRIES];
	uint64_t *time_ns = &words[MPERF_NEST_TIME_NS];
	__atomic_store_n(entries, *entries + 1, __ATOMIC_RELAXED);
	__atomic_store_n(time_ns, *time_ns + (ns << weight), __ATOMIC_RELEASE);
}
