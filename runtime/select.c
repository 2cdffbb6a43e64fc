/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A choice is one word that compiled code reads at each entry, so selecting means writing words. To
 * count 1 in N, entries are divided into windows of N, and one random entry of each window counts,
 * so that no periodicity of the program interferes with ours. Each thread has its own windows.
 * After a change of N, the current window is completed first.
 *
 * A function entered fewer than N times may not count at all, or count once and stand for the rest:
 * a reader knows entries and counted entries, and reports it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/abi.h"
#include "runtime/copies.h"
#include "runtime/select.h"
#include "runtime/state.h"

bool mperf_glob_fits(const char *glob, const char *name)
{
	const char *star = NULL, *again = NULL; /* the last star, and where its match ends so far */
	for (unsigned n = 0; *name && n < MPERF_NAME_BYTES_MAX;) {
		if (*glob == '*') {
			star = ++glob;
			again = name;
		} else if (*glob == '?' || *glob == *name) {
			glob++;
			name++;
			n++;
		} else if (star) {
			glob = star;
			n -= (unsigned)(name - again);
			name = ++again;
			n++;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return *glob == '\0';
}

uint32_t mperf_select_one_in(const char *variable)
{
	const char *text = secure_getenv(variable);
	char *end;
	if (!text || *text < '0' || *text > '9')
		return 1;
	unsigned long n = strtoul(text, &end, 10);
	if (*end != '\0')
		return 1;
	return n > MPERF_ONE_IN_MAX ? MPERF_ONE_IN_MAX : (uint32_t)n;
}

void mperf_select_init(struct selection *s)
{
	s->one_in = mperf_select_one_in("MPERF_SAMPLE");
	s->globs_bytes = 0;
	const char *glob = secure_getenv("MPERF_LOOPS");
	while (glob && *glob) {
		size_t n = strcspn(glob, ",");
		if (n > 0 && n < MPERF_GLOBS_BYTES_MAX - s->globs_bytes) {
			memcpy(s->globs + s->globs_bytes, glob, n);
			s->globs[s->globs_bytes + n] = '\0';
			s->globs_bytes += (uint32_t)n + 1;
		}
		glob += n + (glob[n] == ',');
	}
}

int mperf_select_set(struct selection *s, uint32_t one_in, const char *globs, uint32_t globs_bytes)
{
	if (one_in > MPERF_ONE_IN_MAX || globs_bytes > MPERF_GLOBS_BYTES_MAX)
		return -EBADMSG;
	if (globs_bytes > 0 && globs[globs_bytes - 1] != '\0')
		return -EBADMSG;
	s->one_in = one_in;
	s->globs_bytes = globs_bytes;
	if (globs_bytes > 0)
		memcpy(s->globs, globs, globs_bytes);
	return 0;
}

static bool name_fits(const struct selection *s, const char *name)
{
	for (uint32_t at = 0; at < s->globs_bytes; at += (uint32_t)strlen(s->globs + at) + 1)
		if (mperf_glob_fits(s->globs + at, name))
			return true;
	return false;
}

bool mperf_select_has(const struct selection *s, const char *names)
{
	if (s->globs_bytes == 0)
		return true;
	for (; *names; names += strlen(names) + 1)
		if (name_fits(s, names))
			return true;
	return false;
}

static void apply(const struct selection *s, const struct choices *c)
{
	for (struct mperf_choice *choice = c->first; choice != c->end; choice++) {
		int32_t one_in = s->one_in == 1 ? -1 : (int32_t)s->one_in;
		if (!mperf_select_has(s, choice->names))
			one_in = 0;
		__atomic_store_n(&choice->one_in, one_in, __ATOMIC_RELAXED);
	}
}

void mperf_select_apply(struct state *s)
{
	for (const struct choices *c = s->choices; c; c = c->next)
		if (c->first)
			apply(&s->selection, c);
}

static struct choices *choices_find(struct state *s, const struct mperf_choice *first)
{
	struct choices *c = s->choices;
	while (c && c->first != first)
		c = c->next;
	return c;
}

/* A free record. */
static struct choices *choices_take(struct state *s)
{
	struct choices *c = choices_find(s, NULL);
	if (c)
		return c;
	c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c == MAP_FAILED)
		return NULL;
	c->next = s->choices;
	s->choices = c;
	return c;
}

void mperf_select_add(struct state *s, struct mperf_choice *first, struct mperf_choice *end)
{
	struct choices *c = first < end && !choices_find(s, first) ? choices_take(s) : NULL;
	if (!c)
		return;
	c->first = first;
	c->end = end;
	apply(&s->selection, c);
}

void mperf_select_remove(struct state *s, const struct mperf_choice *first)
{
	struct choices *c = first ? choices_find(s, first) : NULL;
	if (c)
		c->first = c->end = NULL;
}

void mperf_select_release(struct state *s)
{
	while (s->choices) {
		struct choices *c = s->choices;
		s->choices = c->next;
		munmap(c, sizeof(*c));
	}
}

/* --- whose turn it is ------------------------------------------------------------------------- */

/* MPERF_TURN_WINDOW: N in the high half; in the low half the entries of the window after the
 * counted one. 0: no window yet. */
static uint64_t window_pack(uint32_t one_in, uint32_t after)
{
	return (uint64_t)one_in << 32 | after;
}

/* Choose the entry to count in the next window, which begins after `before` entries. */
static void window_draw(uint64_t *words, uint64_t before, uint32_t one_in)
{
	uint32_t phase = (uint32_t)(mperf_thread_chance() % one_in);
	words[MPERF_TURN_COUNTDOWN] = before + phase + 1;
	words[MPERF_TURN_WINDOW] = window_pack(one_in, one_in - 1 - phase);
}

__attribute__((visibility("default"))) uint32_t __mperf_turn_draw(uint64_t *words, int32_t one_in)
{
	if (one_in < 2)
		return one_in != 0;
	if (__builtin_expect(mperf_choices_elsewhere(), 0))
		return mperf_elsewhere->turn_draw(words, one_in);
	uint32_t n = (uint32_t)one_in;
	uint64_t window = words[MPERF_TURN_WINDOW];
	if (window >> 32 == n) {
		window_draw(words, (uint32_t)window, n);
		return 1;
	}
	/* A window that begins with this entry, that is after 0 entries. */
	window_draw(words, 0, n);
	if (--words[MPERF_TURN_COUNTDOWN] > 0)
		return 0;
	window_draw(words, n - 1, n);
	return 1;
}
