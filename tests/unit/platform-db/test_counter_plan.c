/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>
#include <string.h>

#include "platform-db/counter_plan.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))
#define EVENTS_MAX 8
#define WISHES_MAX 8

/* A set of wishes, as bits of events. */
struct wanted {
	struct plan_event event[EVENTS_MAX];
	uint16_t list[WISHES_MAX][EVENTS_MAX];
	struct plan_wish wish[WISHES_MAX];
	size_t n_events, n_wishes;
	uint64_t counters;
};

static void want(struct wanted *w, unsigned events)
{
	uint16_t *list = w->list[w->n_wishes];
	size_t n = 0;
	for (uint16_t e = 0; e < w->n_events; e++)
		if (events >> e & 1)
			list[n++] = e;
	w->wish[w->n_wishes++] = (struct plan_wish){list, n};
}

static unsigned events_of(const struct plan_wish *w)
{
	unsigned events = 0;
	for (size_t i = 0; i < w->n_events; i++)
		events |= 1u << w->event[i];
	return events;
}

static struct counter_plan *make(const struct wanted *w)
{
	struct counter_plan *p;
	ck_assert_int_eq(
		counter_plan_make(w->event, w->n_events, w->wish, w->n_wishes, w->counters, &p), 0);
	return p;
}

/* No two events of a pass on one counter, each on one that it may have, and whole wishes whole. */
static void must_be_sound(const struct wanted *w, const struct counter_plan *p)
{
	for (size_t i = 0; i < p->n_passes; i++) {
		uint64_t taken = 0;
		unsigned seen = 0;
		for (size_t j = 0; j < p->pass[i].n_places; j++) {
			const struct plan_place *at = &p->pass[i].place[j];
			ck_assert_uint_eq(seen >> at->event & 1, 0);
			seen |= 1u << at->event;
			if (w->event[at->event].needs_none) {
				ck_assert_int_eq(at->counter, -1);
				continue;
			}
			uint64_t bit = UINT64_C(1) << at->counter;
			ck_assert(bit & w->event[at->event].counters & w->counters & ~taken);
			taken |= bit;
		}
		for (size_t j = 0; j < w->n_wishes; j++)
			if (p->fate[j] == PLAN_WHOLE && p->pass_of[j] == i)
				ck_assert_uint_eq(events_of(&w->wish[j]) & ~seen, 0);
	}
}

/* --- trying everything ------------------------------------------------------------------------ */

/* Can each of these events have a counter of its own? */
static bool fits(const struct wanted *w, unsigned events, uint64_t counters)
{
	if (!events)
		return true;
	unsigned e = (unsigned)__builtin_ctz(events);
	if (w->event[e].needs_none)
		return fits(w, events & (events - 1), counters);
	for (uint64_t can = w->event[e].counters & counters; can; can &= can - 1)
		if (fits(w, events & (events - 1), counters & ~(can & -can)))
			return true;
	return false;
}

/* The fewest passes over all partitions of wishes i … into those that are open. */
static size_t fewest(const struct wanted *w, size_t i, unsigned *open, size_t n_open)
{
	size_t best = SIZE_MAX;
	while (i < w->n_wishes && !fits(w, events_of(&w->wish[i]), w->counters))
		i++;
	if (i == w->n_wishes)
		return n_open;
	for (size_t b = 0; b <= n_open; b++) {
		unsigned before = b < n_open ? open[b] : 0, with = before | events_of(&w->wish[i]);
		if (!fits(w, with, w->counters))
			continue;
		open[b] = with;
		size_t n = fewest(w, i + 1, open, n_open + (b == n_open));
		open[b] = before;
		best = n < best ? n : best;
	}
	return best;
}

static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* Odd masks, where little fits. */
static void random_masks(uint32_t *state, struct wanted *w)
{
	*w = (struct wanted){
		.n_events = 1 + next(state) % EVENTS_MAX, .counters = next(state) % 32};
	for (size_t e = 0; e < w->n_events; e++)
		w->event[e] = (struct plan_event){next(state) % 64, next(state) % 8 == 0};
	for (size_t n = next(state) % 7; n > 0; n--)
		want(w, 1 + next(state) % ((1u << w->n_events) - 1));
}

/* Equal counters, and pairs that share events: whom a pair is put with decides. */
static void random_pairs(uint32_t *state, struct wanted *w)
{
	*w = (struct wanted){.n_events = EVENTS_MAX, .counters = next(state) % 2 ? 0x7 : 0xf};
	for (size_t e = 0; e < w->n_events; e++)
		w->event[e].counters = UINT64_MAX;
	for (size_t n = 4 + next(state) % (WISHES_MAX - 3); n > 0; n--)
		want(w, 1u << next(state) % EVENTS_MAX | 1u << next(state) % EVENTS_MAX);
}

TEST(small_plans_have_the_fewest_passes)
{
	uint32_t state = 12;
	size_t n_split = 0;
	for (int i = 0; i < 2000; i++) {
		struct wanted w;
		(i % 2 ? random_pairs : random_masks)(&state, &w);
		unsigned open[WISHES_MAX] = {0};
		_cleanup_(counter_plan_freep) struct counter_plan *p = make(&w);
		must_be_sound(&w, p);
		ck_assert(p->is_minimal);
		bool has_split = false;
		for (size_t j = 0; j < w.n_wishes; j++) {
			has_split |= p->fate[j] == PLAN_SPLIT;
			ck_assert_int_eq(p->fate[j] == PLAN_WHOLE,
				fits(&w, events_of(&w.wish[j]), w.counters));
		}
		n_split += has_split;
		if (!has_split)
			ck_assert_uint_eq(p->n_passes, fewest(&w, 0, open, 0));
	}
	ck_assert_uint_gt(n_split, 100);
}

/* --- cores ------------------------------------------------------------------------------------ */

/* XiangShan Kunminghu: four banks of eight counters. */
TEST(banks_are_filled_side_by_side)
{
	struct wanted w = {.n_events = 8, .counters = 0x1ffffff8};
	for (unsigned e = 0; e < 8; e++)
		w.event[e].counters = UINT64_C(0xff) << (3 + 8 * (e % 4 > 2 ? 2 : e % 4));
	want(&w, 0xff);
	_cleanup_(counter_plan_freep) struct counter_plan *p = make(&w);
	must_be_sound(&w, p);
	ck_assert_uint_eq(p->n_passes, 1);
	ck_assert_uint_eq(p->pass[0].n_places, 8);
}

/* T-Head C906: event N on counter N + 2 alone, so all of them fit at once. */
TEST(one_counter_for_each_event)
{
	struct wanted w = {.n_events = 6, .counters = 0x3fff8};
	for (unsigned e = 0; e < 6; e++)
		w.event[e].counters = UINT64_C(1) << (e + 3);
	for (unsigned e = 0; e < 6; e++)
		want(&w, 1u << e);
	_cleanup_(counter_plan_freep) struct counter_plan *p = make(&w);
	must_be_sound(&w, p);
	ck_assert_uint_eq(p->n_passes, 1);
}

/* Two programmable counters and two fixed ones: cycles ride along in each pass. */
TEST(fixed_counters_are_in_each_pass)
{
	struct wanted w = {.n_events = 6, .counters = 0x1d};
	w.event[0].counters = 1;
	w.event[1].counters = 4;
	for (unsigned e = 2; e < 6; e++)
		w.event[e].counters = 0x18;
	want(&w, 1 << 0 | 1 << 1);
	want(&w, 1 << 0 | 1 << 2 | 1 << 3);
	want(&w, 1 << 1 | 1 << 4 | 1 << 5);
	_cleanup_(counter_plan_freep) struct counter_plan *p = make(&w);
	must_be_sound(&w, p);
	ck_assert_uint_eq(p->n_passes, 2);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(p->fate[i], PLAN_WHOLE);
}

TEST(what_no_pass_can_hold_is_split_and_what_no_counter_can_count_is_named)
{
	struct wanted w = {.n_events = 4, .counters = 0x18};
	for (unsigned e = 0; e < 3; e++)
		w.event[e].counters = 0x18;
	w.event[3].counters = 0x20;
	want(&w, 7);
	want(&w, 3);
	want(&w, 9);
	_cleanup_(counter_plan_freep) struct counter_plan *p = make(&w);
	must_be_sound(&w, p);
	ck_assert_int_eq(p->fate[0], PLAN_SPLIT);
	ck_assert_int_eq(p->fate[1], PLAN_WHOLE);
	ck_assert_int_eq(p->fate[2], PLAN_IMPOSSIBLE);
	ck_assert_uint_eq(p->because[2], 3);
	ck_assert_uint_eq(p->n_passes, 2);
}

TEST(events_of_the_kernel_need_no_counter)
{
	struct wanted w = {.n_events = 2, .counters = 0};
	w.event[0].needs_none = w.event[1].needs_none = true;
	want(&w, 3);
	_cleanup_(counter_plan_freep) struct counter_plan *p = make(&w);
	must_be_sound(&w, p);
	ck_assert_uint_eq(p->n_passes, 1);
	ck_assert_uint_eq(p->pass[0].n_places, 2);
}

TEST(no_wish_is_no_pass)
{
	struct wanted w = {.counters = 7};
	_cleanup_(counter_plan_freep) struct counter_plan *p = make(&w);
	ck_assert_uint_eq(p->n_passes, 0);
	ck_assert(p->is_minimal);
}

TEST(limits_are_kept)
{
	static struct plan_event event[PLAN_EVENTS_MAX + 1];
	static struct plan_wish wish[PLAN_WISHES_MAX + 1];
	struct counter_plan *p = NULL;
	ck_assert_int_eq(counter_plan_make(event, N(event), wish, 1, 1, &p), PLAN_TOO_LARGE);
	ck_assert_int_eq(counter_plan_make(event, 1, wish, N(wish), 1, &p), PLAN_TOO_LARGE);
	ck_assert_ptr_null(p);
}

/* Hundreds of wishes: the search stops, and what it has is sound. */
TEST(a_large_plan_is_made_at_once)
{
	static struct plan_event event[200];
	static uint16_t list[300][6];
	static struct plan_wish wish[300];
	uint32_t state = 3;
	struct counter_plan *made;
	for (size_t e = 0; e < N(event); e++)
		event[e].counters = 0xff >> next(&state) % 6;
	for (size_t i = 0; i < N(wish); i++) {
		uint16_t first = (uint16_t)(next(&state) % (N(event) - 40));
		for (uint16_t j = 0; j < N(list[i]); j++)
			list[i][j] = (uint16_t)(first + j * 7);
		wish[i] = (struct plan_wish){list[i], 1 + next(&state) % N(list[i])};
	}
	ck_assert_int_eq(counter_plan_make(event, N(event), wish, N(wish), 0xff, &made), 0);
	_cleanup_(counter_plan_freep) struct counter_plan *p = made;
	ck_assert_uint_ge(p->n_passes, N(event) / 8 / 2);
	ck_assert_uint_lt(p->n_passes, N(wish));
}
