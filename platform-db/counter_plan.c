/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Planning is bin packing in which items may share parts, and whether a bin holds them is a matching
 * of events to counters. First fit, largest wishes first, gives a plan at once; then a search with
 * bounds looks for one with fewer passes, until it has tried everything or enough.
 *
 *     wishes  {a b c} {b d} {e}      counters 0 1 2       passes  {a→0 b→1 c→2} {b→0 d→1 e→2}
 *
 * A wish that is contained in another one is planned with it. A wish that no pass can hold is split:
 * its events fill up passes one by one, after the whole wishes.
 */
#include "platform-db/counter_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRIES_MAX 20000 /* placements that the search tries; each is a matching of some µs */
#define NOWHERE (-1)

/* Events of a pass, and the index of each counter's event. */
struct bin {
	uint16_t event[PLAN_COUNTERS_MAX]; /* n of them hold a counter */
	int8_t counter[PLAN_COUNTERS_MAX]; /* of each */
	size_t n;
	uint64_t taken; /* counters */
};

struct planning {
	const struct plan_event *event;
	size_t n_events;
	const struct plan_wish *wish;
	size_t n_wishes;
	uint64_t free_counters;
	struct counter_plan *plan;
	/* Whole wishes that no other contains, largest first. */
	uint16_t *order;
	size_t n_order;
	struct bin *bin; /* n_order at most */
	size_t *chosen;  /* the bin of each in the order */
	size_t *best;    /* the same, of the best plan so far, with n_best bins */
	size_t n_best, n_least;
	unsigned n_tries;
};

/* --- does it fit? ----------------------------------------------------------------------------- */

static int position(const struct bin *b, uint16_t event)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->event[i] == event)
			return (int)i;
	return NOWHERE;
}

static size_t holder(const struct bin *b, int counter)
{
	size_t i = 0;
	while (b->counter[i] != counter)
		i++;
	return i;
}

/* Find a counter for the event in position i, moving others if needed: an augmenting path. Counters
 * in *seen were tried. */
static bool seat(const struct planning *p, struct bin *b, size_t i, uint64_t *seen)
{
	uint64_t can = p->event[b->event[i]].counters & p->free_counters;
	for (uint64_t left = can & ~b->taken; left;) {
		int counter = __builtin_ctzll(left);
		b->counter[i] = (int8_t)counter;
		b->taken |= UINT64_C(1) << counter;
		return true;
	}
	for (uint64_t left = can & ~*seen; left; left = can & ~*seen) {
		int counter = __builtin_ctzll(left);
		*seen |= UINT64_C(1) << counter;
		size_t other = holder(b, counter);
		if (seat(p, b, other, seen)) {
			b->counter[i] = (int8_t)counter;
			return true;
		}
	}
	return false;
}

static bool bin_add(const struct planning *p, struct bin *b, uint16_t event)
{
	uint64_t seen = 0;
	if (p->event[event].needs_none || position(b, event) != NOWHERE)
		return true;
	if (b->n == PLAN_COUNTERS_MAX)
		return false;
	b->event[b->n] = event;
	b->counter[b->n] = NOWHERE;
	if (!seat(p, b, b->n, &seen))
		return false;
	b->n++;
	return true;
}

/* Add all events of the wish, or none. */
static bool bin_add_wish(const struct planning *p, struct bin *b, const struct plan_wish *w)
{
	struct bin tried = *b;
	for (size_t i = 0; i < w->n_events; i++)
		if (!bin_add(p, &tried, w->event[i]))
			return false;
	*b = tried;
	return true;
}

/* --- which wishes are packed ------------------------------------------------------------------ */

static bool wish_has(const struct plan_wish *w, uint16_t event)
{
	for (size_t i = 0; i < w->n_events; i++)
		if (w->event[i] == event)
			return true;
	return false;
}

static bool contains(const struct plan_wish *w, const struct plan_wish *other)
{
	for (size_t i = 0; i < other->n_events; i++)
		if (!wish_has(w, other->event[i]))
			return false;
	return true;
}

static bool is_possible(const struct planning *p, size_t wish)
{
	const struct plan_wish *w = &p->wish[wish];
	for (size_t i = 0; i < w->n_events; i++) {
		const struct plan_event *e = &p->event[w->event[i]];
		if (!e->needs_none && !(e->counters & p->free_counters)) {
			p->plan->because[wish] = w->event[i];
			return false;
		}
	}
	return true;
}

/* Does another whole wish contain all of its events? Of equal wishes the first stays. */
static bool is_contained(const struct planning *p, size_t wish)
{
	for (size_t i = 0; i < p->n_wishes; i++)
		if (i != wish && p->plan->fate[i] == PLAN_WHOLE &&
			contains(&p->wish[i], &p->wish[wish]) &&
			(i < wish || !contains(&p->wish[wish], &p->wish[i])))
			return true;
	return false;
}

static int by_size(const void *a, const void *b, void *userdata)
{
	const struct planning *p = userdata;
	const uint16_t *x = a, *y = b;
	size_t n = p->wish[*x].n_events, m = p->wish[*y].n_events;
	return n != m ? (n < m ? 1 : -1) : (*x > *y) - (*x < *y);
}

static void choose(struct planning *p)
{
	for (size_t i = 0; i < p->n_wishes; i++) {
		struct bin alone = {.n = 0};
		p->plan->fate[i] = !is_possible(p, i)                     ? PLAN_IMPOSSIBLE
				   : bin_add_wish(p, &alone, &p->wish[i]) ? PLAN_WHOLE
									  : PLAN_SPLIT;
	}
	for (size_t i = 0; i < p->n_wishes; i++)
		if (p->plan->fate[i] == PLAN_WHOLE && !is_contained(p, i))
			p->order[p->n_order++] = (uint16_t)i;
	qsort_r(p->order, p->n_order, sizeof(p->order[0]), by_size, p);
}

/* --- packing ---------------------------------------------------------------------------------- */

static void first_fit(struct planning *p)
{
	p->n_best = 0;
	for (size_t i = 0; i < p->n_order; i++) {
		size_t b = 0;
		while (b < p->n_best && !bin_add_wish(p, &p->bin[b], &p->wish[p->order[i]]))
			b++;
		if (b == p->n_best) {
			p->bin[b] = (struct bin){.n = 0};
			bin_add_wish(p, &p->bin[b], &p->wish[p->order[i]]);
			p->n_best++;
		}
		p->best[i] = b;
	}
}

/* A lower bound of passes: those that the events need for their counters. */
static size_t least_passes(const struct planning *p)
{
	bool counted[PLAN_EVENTS_MAX] = {false};
	size_t n = 0, n_counters = (size_t)__builtin_popcountll(p->free_counters);
	for (size_t i = 0; i < p->n_order; i++) {
		const struct plan_wish *w = &p->wish[p->order[i]];
		for (size_t j = 0; j < w->n_events; j++) {
			n += !counted[w->event[j]] && !p->event[w->event[j]].needs_none;
			counted[w->event[j]] = true;
		}
	}
	size_t least = n_counters ? (n + n_counters - 1) / n_counters : 0;
	return least ? least : p->n_order > 0;
}

/* Place the wishes from i on; n_bins are in use. False: stop the search, since enough was tried or
 * no better plan is possible. */
static bool search(struct planning *p, size_t i, size_t n_bins)
{
	if (n_bins >= p->n_best)
		return true;
	if (i == p->n_order) {
		memcpy(p->best, p->chosen, p->n_order * sizeof(p->best[0]));
		p->n_best = n_bins;
		return p->n_best > p->n_least;
	}
	/* Try all open bins, and only one new bin, since new bins are alike. */
	for (size_t b = 0; b <= n_bins && b + 1 < p->n_best; b++) {
		if (p->n_tries++ == TRIES_MAX)
			return false;
		struct bin before = b < n_bins ? p->bin[b] : (struct bin){.n = 0};
		p->bin[b] = before;
		if (!bin_add_wish(p, &p->bin[b], &p->wish[p->order[i]]))
			continue;
		p->chosen[i] = b;
		bool more = search(p, i + 1, b == n_bins ? n_bins + 1 : n_bins);
		p->bin[b] = before;
		if (!more)
			return false;
	}
	return true;
}

/* Take the bins of the best plan, then put the events of split wishes into any free place. */
static void fill(struct planning *p, size_t *ret_n_bins)
{
	size_t n = p->n_best;
	for (size_t b = 0; b < n; b++)
		p->bin[b] = (struct bin){.n = 0};
	for (size_t i = 0; i < p->n_order; i++)
		bin_add_wish(p, &p->bin[p->best[i]], &p->wish[p->order[i]]);
	for (size_t i = 0; i < p->n_wishes; i++)
		for (size_t j = 0; p->plan->fate[i] == PLAN_SPLIT && j < p->wish[i].n_events; j++) {
			size_t b = 0;
			const struct plan_wish one = {&p->wish[i].event[j], 1};
			while (b < n && !bin_add_wish(p, &p->bin[b], &one))
				b++;
			if (b < n)
				continue;
			p->bin[n] = (struct bin){.n = 0};
			bin_add_wish(p, &p->bin[n++], &one);
		}
	*ret_n_bins = n;
}

/* --- the result ------------------------------------------------------------------------------- */

static int by_event(const void *a, const void *b)
{
	const struct plan_place *x = a, *y = b;
	return (x->event > y->event) - (x->event < y->event);
}

static int take_bin(struct plan_pass *pass, const struct bin *b, size_t n_more)
{
	pass->place = calloc(b->n + n_more, sizeof(*pass->place));
	if (!pass->place && b->n + n_more > 0)
		return -ENOMEM;
	for (size_t i = 0; i < b->n; i++)
		pass->place[i] = (struct plan_place){b->event[i], b->counter[i]};
	pass->n_places = b->n;
	qsort(pass->place, pass->n_places, sizeof(*pass->place), by_event);
	return 0;
}

static bool pass_has(const struct plan_pass *pass, uint16_t event)
{
	for (size_t i = 0; i < pass->n_places; i++)
		if (pass->place[i].event == event)
			return true;
	return false;
}

static bool pass_holds(const struct planning *p, const struct plan_pass *pass, size_t wish)
{
	const struct plan_wish *w = &p->wish[wish];
	for (size_t i = 0; i < w->n_events; i++)
		if (!p->event[w->event[i]].needs_none && !pass_has(pass, w->event[i]))
			return false;
	return true;
}

/* Put events that need no counter into the pass of their wish. */
static void add_free_events(const struct planning *p, struct plan_pass *pass, size_t wish)
{
	const struct plan_wish *w = &p->wish[wish];
	for (size_t i = 0; i < w->n_events; i++)
		if (p->event[w->event[i]].needs_none && !pass_has(pass, w->event[i]))
			pass->place[pass->n_places++] = (struct plan_place){w->event[i], NOWHERE};
	qsort(pass->place, pass->n_places, sizeof(*pass->place), by_event);
}

static size_t n_free_events(const struct planning *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n_events; i++)
		n += p->event[i].needs_none;
	return n;
}

static int write_plan(struct planning *p)
{
	size_t n_bins;
	fill(p, &n_bins);
	p->plan->pass = calloc(n_bins ? n_bins : 1, sizeof(*p->plan->pass));
	if (!p->plan->pass)
		return -ENOMEM;
	for (size_t b = 0; b < n_bins; b++) {
		int error = take_bin(&p->plan->pass[b], &p->bin[b], n_free_events(p));
		if (error)
			return error;
		p->plan->n_passes++;
	}
	for (size_t i = 0; i < p->n_wishes; i++) {
		size_t b = 0;
		if (p->plan->fate[i] == PLAN_IMPOSSIBLE || n_bins == 0)
			continue;
		while (p->plan->fate[i] == PLAN_WHOLE && !pass_holds(p, &p->plan->pass[b], i))
			b++;
		p->plan->pass_of[i] = b;
		add_free_events(p, &p->plan->pass[b], i);
	}
	return 0;
}

static int planning_new(struct planning *p)
{
	size_t n = p->n_wishes ? p->n_wishes : 1, n_bins = n;
	p->plan = calloc(1, sizeof(*p->plan));
	if (!p->plan)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_wishes; i++)
		n_bins += p->wish[i].n_events; /* split ones may need a bin for each event */
	p->plan->fate = calloc(n, sizeof(*p->plan->fate));
	p->plan->pass_of = calloc(n, sizeof(*p->plan->pass_of));
	p->plan->because = calloc(n, sizeof(*p->plan->because));
	p->order = calloc(n, sizeof(*p->order));
	p->chosen = calloc(n, sizeof(*p->chosen));
	p->best = calloc(n, sizeof(*p->best));
	p->bin = calloc(n_bins, sizeof(*p->bin));
	return p->plan->fate && p->plan->pass_of && p->plan->because && p->order && p->chosen &&
			       p->best && p->bin
		       ? 0
		       : -ENOMEM;
}

static bool is_within_limits(const struct planning *p)
{
	for (size_t i = 0; i < p->n_wishes && i < PLAN_WISHES_MAX; i++)
		if (p->wish[i].n_events > PLAN_EVENTS_MAX)
			return false;
	return p->n_events <= PLAN_EVENTS_MAX && p->n_wishes <= PLAN_WISHES_MAX;
}

int counter_plan_make(const struct plan_event *event, size_t n_events, const struct plan_wish *wish,
	size_t n_wishes, uint64_t free_counters, struct counter_plan **ret_plan)
{
	struct planning p = {.event = event,
		.n_events = n_events,
		.wish = wish,
		.n_wishes = n_wishes,
		.free_counters = free_counters};
	if (!is_within_limits(&p))
		return PLAN_TOO_LARGE;
	int error = planning_new(&p);
	if (!error) {
		choose(&p);
		first_fit(&p);
		p.n_least = least_passes(&p);
		if (p.n_best > p.n_least)
			search(&p, 0, 0);
		p.plan->is_minimal = p.n_best <= p.n_least || p.n_tries <= TRIES_MAX;
		error = write_plan(&p);
	}
	free(p.order);
	free(p.chosen);
	free(p.best);
	free(p.bin);
	if (error)
		counter_plan_free(p.plan);
	else
		*ret_plan = p.plan;
	return error;
}

struct counter_plan *counter_plan_free(struct counter_plan *plan)
{
	if (!plan)
		return NULL;
	for (size_t i = 0; plan->pass && i < plan->n_passes; i++)
		free(plan->pass[i].place);
	free(plan->pass);
	free(plan->fate);
	free(plan->pass_of);
	free(plan->because);
	free(plan);
	return NULL;
}
