/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Short loops are timed by sampling. Entries are divided into windows of 1, 2, 4, … 1,024; one
 * random entry of each window is timed, and its time is multiplied by the window's size. So each
 * entry has a chance of one in a window and the inverse weight, and the sum has no bias; adapting
 * the window size adds none, since a size is fixed before its entries are seen. It doubles while
 * timing costs more than its share, and halves, or quarters, when entries have become longer.
 *
 * A timed loop may be entered again while it runs, by recursion through other functions; the pass leaves
 * out loops that call their own function. The time of an inner entry is part of the outer one's, so
 * only the outermost is timed. Each thread keeps a stack of its timed entries to see that. An entry
 * inside an untimed one could not be told from an outermost one, so once a loop has been recursive, bursts
 * of outermost entries are timed, one after the other, and between two bursts a random number of entries
 * passes that is on average as large, for each of the window less one, as the burst with the entries
 * inside, give or take a quarter: bursts then stand for all entries. An entry that was left by longjmp or
 * by an exception is dropped from the stack by an entry from a frame further up, or from its own.
 *
 * A timed loop may also run while another one does, in a function that this one calls. Its time is its
 * own: when it ends, its time, weighted as above, is subtracted from the timed entry around it. So
 * no time of a thread is counted twice, and the times of its loops add up to no more than it ran.
 * One short entry may have more subtracted than it took, since the weight of an inner one stands
 * for others; only the sum over entries means something, as with all sampling.
 *
 * Readers see the time of an entry that still runs as the time since it began. So that they see
 * only its own, they do not see it while an inner loop runs, and afterwards its start has moved on
 * by the inner one's time.
 *
 * The cost of a clock read is subtracted. Time is CLOCK_MONOTONIC's: a cycle counter may be
 * unavailable or differ between harts.
 */
#include "runtime/timed_loop.h"
#include "runtime/copies.h"
#include "runtime/process.h"

#define COST_LOOKS 8

struct window {
	unsigned log2;
	bool recursive;
	uint64_t after; /* entries of it after the timed one */
	/* of a burst, if recursive; includes the entries inside timed ones */
	uint64_t n_timed, n_entries, ns;
};

#define BURST_ENTRIES_MAX ((UINT64_C(1) << 20) - 1)
#define BURST_TIME_MAX ((UINT64_C(1) << 28) - 1)
#define BURST_TIME_UNIT_NS 64

static struct window unpack(uint64_t word)
{
	if (!(word & MPERF_TIMED_CLOSED))
		return (struct window){0};
	if (!(word & MPERF_TIMED_RECURSIVE))
		return (struct window){.log2 = word & 15, .after = (word >> 4) & 1023};
	return (struct window){.log2 = word & 15,
		.recursive = true,
		.n_timed = (word >> 4) & 63,
		.n_entries = (word >> 15) & BURST_ENTRIES_MAX,
		.ns = ((word >> 35) & BURST_TIME_MAX) * BURST_TIME_UNIT_NS};
}

static uint64_t at_most(uint64_t value, uint64_t max)
{
	return value < max ? value : max;
}

static uint64_t pack(struct window w)
{
	if (!w.recursive)
		return MPERF_TIMED_CLOSED | w.after << 4 | w.log2;
	return MPERF_TIMED_CLOSED | MPERF_TIMED_RECURSIVE |
	       at_most(w.ns / BURST_TIME_UNIT_NS, BURST_TIME_MAX) << 35 |
	       at_most(w.n_entries, BURST_ENTRIES_MAX) << 15 | w.n_timed << 4 | w.log2;
}

/* The running entry of these words that encloses an entry beginning at that address; NULL: none. */
static struct timed_entry *entry_around(struct thread *t, const uint64_t *words, uintptr_t address)
{
	uint32_t n = t->n_timed;
	while (n > 0 &&
		(t->timed[n - 1].address < address ||
			(t->timed[n - 1].address == address && t->timed[n - 1].words == words)))
		n--;
	t->n_timed = n;
	while (n > 0 && t->timed[n - 1].words != words)
		n--;
	return n > 0 ? &t->timed[n - 1] : NULL;
}

/* Push an entry; there must be room. Write it twice: a signal handler that interrupts us here may
 * use the same slot, but leaves the number of entries unchanged. */
static void entry_push(struct thread *t, struct timed_entry entry)
{
	uint32_t n = t->n_timed;
	t->timed[n] = entry;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->n_timed = n + 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->timed[n] = entry;
}

/* End an entry, and entries inside it that were left open. Returns it; all 0 if it is not on the
 * stack. */
static struct timed_entry entry_pop(struct thread *t, const uint64_t *words, uint64_t begin_ns)
{
	for (uint32_t i = t ? t->n_timed : 0; i > 0; i--) {
		const struct timed_entry *entry = &t->timed[i - 1];
		if (entry->words != words || entry->begin_ns != begin_ns)
			continue;
		t->n_timed = i - 1;
		return *entry;
	}
	return (struct timed_entry){0};
}

/* A start in the future hides the running entry from readers. */
#define PAUSED (MPERF_TIMED_CLOSED - 1)

/* Set the start of an entry for readers. If the entry was left, its words may belong to another
 * object by now, so write them only if they are unchanged. */
static void entry_show(const struct timed_entry *entry, uint64_t expected, uint64_t open_ns)
{
	uint64_t *word = &entry->words[MPERF_TIMED_OPEN_NS];
	if (entry->open_ns != 0 && __atomic_load_n(word, __ATOMIC_RELAXED) == expected)
		__atomic_store_n(word, open_ns, __ATOMIC_RELEASE);
}

/* An inner timed loop begins. */
static void entry_pause(const struct thread *t)
{
	if (t->n_timed > 0)
		entry_show(&t->timed[t->n_timed - 1], t->timed[t->n_timed - 1].open_ns, PAUSED);
}

/* An inner timed loop ended: its time is not that of the entry around it. */
static void entry_resume(struct thread *t, uint64_t inner_ns)
{
	if (t->n_timed == 0)
		return;
	struct timed_entry *entry = &t->timed[t->n_timed - 1];
	entry->inner_ns += inner_ns;
	entry->open_ns += entry->open_ns ? inner_ns : 0;
	entry_show(entry, PAUSED, entry->open_ns);
}

/* Choose the entry to time in the next window, which begins after `before` entries. */
static struct window draw(uint64_t *words, uint64_t before, unsigned log2)
{
	uint64_t last = (UINT64_C(1) << log2) - 1;
	uint64_t phase = log2 ? mperf_thread_chance() & last : 0;
	__atomic_store_n(&words[MPERF_TIMED_COUNTDOWN], before + phase + 1, __ATOMIC_RELAXED);
	return (struct window){.log2 = log2, .after = last - phase};
}

/* The first entry inside a timed entry shows that the loop is recursive. */
static struct window watch(uint64_t *words, struct window now)
{
	__atomic_store_n(&words[MPERF_TIMED_COUNTDOWN], 1, __ATOMIC_RELAXED);
	return now;
}

/* Entries of the loop inside this timed entry: those noticed, and those since. */
static uint64_t entries_inside(const uint64_t *words, const struct timed_entry *entry)
{
	const int64_t left = (int64_t)words[MPERF_TIMED_COUNTDOWN];
	if (!entry->recursive)
		return 0;
	return entry->inside + (left > 0 && left <= (int64_t)MPERF_RECURSION_ENTRIES
					       ? MPERF_RECURSION_ENTRIES - (uint64_t)left
					       : 0);
}

/* An outermost entry of a recursive loop took ns. At the end of a burst, choose how many entries pass
 * until the next one. */
static struct window burst(
	uint64_t *words, struct window w, uint64_t n_inside, uint64_t ns, uint64_t cost_ns)
{
	uint64_t pass = 0;
	w.n_timed++;
	w.n_entries += 1 + n_inside;
	w.ns += ns;
	if (w.n_timed >= MPERF_RECURSION_BURST) {
		const unsigned log2 = mperf_timed_window(w.log2, w.ns / w.n_timed, cost_ns);
		const uint64_t mean = w.n_entries * ((UINT64_C(1) << log2) - 1);
		/* Random enough that bursts do not run in step with the program, but close enough
		 * to the mean that their number, and with it the sum, varies little. */
		pass = mean - mean / 4 + mperf_thread_chance() % (mean / 2 + 1);
		w = (struct window){.log2 = log2, .recursive = true};
	}
	__atomic_store_n(&words[MPERF_TIMED_COUNTDOWN], pass + 1, __ATOMIC_RELAXED);
	return w;
}

unsigned mperf_timed_window(unsigned log2, uint64_t ns, uint64_t cost_ns)
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

__attribute__((visibility("default"))) uint64_t __mperf_loop_begin(
	uint64_t *words, uint32_t published)
{
	if (__builtin_expect(mperf_elsewhere != NULL, 0))
		return mperf_elsewhere->loop_begin(words, published);
	if (__builtin_expect(mperf_state.silent, 0)) {
		__atomic_store_n(&words[MPERF_TIMED_COUNTDOWN], INT64_MAX, __ATOMIC_RELAXED);
		return 0;
	}
	mperf_process_look(&mperf_state);
	struct thread *t = mperf_thread_self();
	uintptr_t address = (uintptr_t)__builtin_frame_address(0);
	struct timed_entry *around = t ? entry_around(t, words, address) : NULL;
	if (around) {
		around->inside += around->recursive ? MPERF_RECURSION_ENTRIES : 1;
		around->recursive = true;
		__atomic_store_n(
			&words[MPERF_TIMED_COUNTDOWN], MPERF_RECURSION_ENTRIES, __ATOMIC_RELAXED);
		return 0;
	}
	/* An open word here means an entry that never ended: a signal handler jumped out. */
	struct window now = unpack(__atomic_load_n(&words[MPERF_TIMED_OPEN_NS], __ATOMIC_RELAXED));
	struct window next = now.recursive ? watch(words, now) : draw(words, now.after, now.log2);
	uint64_t word = pack(next);
	uint64_t begin_ns = mperf_now_ns();
	if (published && now.log2 == 0)
		word = begin_ns;
	__atomic_store_n(&words[MPERF_TIMED_OPEN_NS], word, __ATOMIC_RELEASE);
	/* Without room on the stack, the enclosing entry would not be resumed when this one ends.
	 * */
	if (t && t->n_timed < MPERF_TIMED_MAX) {
		entry_pause(t);
		entry_push(t, (struct timed_entry){.words = words,
				      .begin_ns = begin_ns,
				      .open_ns = word == begin_ns ? begin_ns : 0,
				      .address = address,
				      .window = pack(now)});
	}
	return begin_ns;
}

uint32_t mperf_timed_cost_ns(uint32_t clock_ns)
{
	uint64_t words[MPERF_TIMED_WORDS] = {0}, least = UINT32_MAX;
	for (unsigned i = 0; i < COST_LOOKS; i++) {
		const uint64_t before = mperf_now_ns();
		const uint64_t begin = __mperf_loop_begin(words, 0);
		__mperf_loop_end(words, begin);
		const uint64_t took = mperf_now_ns() - before;
		if (took < least)
			least = took;
	}
	return (uint32_t)(least > clock_ns ? least - clock_ns : 0);
}

/* Give the next window another size, and choose its entry again. */
static struct window resize(uint64_t *words, struct window next, unsigned log2)
{
	uint64_t phase = (UINT64_C(1) << next.log2) - 1 - next.after;
	int64_t before = (int64_t)words[MPERF_TIMED_COUNTDOWN] - 1 - (int64_t)phase;
	return draw(words, before > 0 ? (uint64_t)before : 0, log2);
}

__attribute__((visibility("default"))) void __mperf_loop_end(uint64_t *words, uint64_t begin_ns)
{
	if (__builtin_expect(mperf_elsewhere != NULL, 0)) {
		mperf_elsewhere->loop_end(words, begin_ns);
		return;
	}
	const struct state *s = &mperf_state;
	uint64_t now_ns = mperf_now_ns();
	struct thread *t = mperf_thread_self();
	const struct timed_entry ended = entry_pop(t, words, begin_ns);
	if (begin_ns < s->begin_ns)
		begin_ns = s->begin_ns; /* in a fork's child: earlier time is its parent's */
	uint64_t ns = now_ns > begin_ns + s->clock_ns ? now_ns - begin_ns - s->clock_ns : 0;

	struct window w = unpack(__atomic_load_n(&words[MPERF_TIMED_OPEN_NS], __ATOMIC_RELAXED));
	unsigned weight = w.log2;
	unsigned log2 = mperf_timed_window(w.log2, ns, s->timing_ns);
	if (ended.window & MPERF_TIMED_RECURSIVE)
		w = unpack(ended.window); /* readers may have seen its start instead */
	if (w.recursive)
		w = burst(words, w, entries_inside(words, &ended), ns, s->timing_ns);
	else if (ended.recursive)
		w = watch(words, (struct window){.recursive = true});
	else if (log2 != w.log2)
		w = resize(words, w, log2);

	/* Closed before it is added: a concurrent reader sees less, never more. */
	__atomic_store_n(&words[MPERF_TIMED_OPEN_NS], pack(w), __ATOMIC_RELEASE);
	uint64_t *entries = &words[MPERF_TIMED_ENTRIES];
	uint64_t *time_ns = &words[MPERF_TIMED_NS];
	__atomic_store_n(entries, *entries + 1, __ATOMIC_RELAXED);
	__atomic_store_n(time_ns, *time_ns + ((ns - ended.inner_ns) << weight), __ATOMIC_RELEASE);
	if (ended.words) /* else it is unknown what runs around it */
		entry_resume(t, ns << weight);
}
