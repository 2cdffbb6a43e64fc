/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Selection: which time range of which file answers a question
 *
 * A sample is in one window file, and, once that is rolled up, also in a row of each coarser tier.
 * So each moment is assigned to one tier, the coarsest first:
 *
 *      asked     since ├──────────────────────────────────────────────┤ until
 *      hours              ├───────────┼───────────┼───────────┤
 *      minutes         ├──┤                                   ├────┤
 *      windows                                                      ├─┤
 *
 * A row of a coarse tier has the windows that began within one step of the clock, so a cut between
 * tiers is moved to the border of a step, where rows end on both sides. If a window file is not a
 * source of a tier, its time is removed from that tier, since only that file has its samples. If
 * finer files are gone, the row at the edge of the question is read completely: the answer then has
 * a little too much, but misses nothing.
 *
 * Files of one tier may overlap, after the clock was set back; they hold different samples, and all
 * are read.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/store_private.h"
#include "proto/base/array.h"
#include "proto/base/memory.h"

struct span {
	int64_t from, to;
};

struct spans {
	struct span *span;
	size_t n, size;
};

struct selection {
	const struct store *store;
	struct spans open;    /* parts of the question not assigned yet; in order */
	struct spans without; /* times that the current tier does not have; in order of start */
	struct store_part *part;
	size_t n_parts, size;
};

static int64_t down(int64_t t, int64_t step)
{
	return step ? t / step * step : t;
}

static int64_t up(int64_t t, int64_t step)
{
	return step && t % step && t < INT64_MAX - step ? down(t, step) + step : t;
}

static int spans_add(struct spans *s, int64_t from, int64_t to)
{
	if (from >= to)
		return 0;
	int r = array_grow_long(&s->span, &s->size, s->n + 1, sizeof(*s->span));
	if (r < 0)
		return r;
	s->span[s->n++] = (struct span){from, to};
	return 0;
}

static int part_add(struct selection *s, const struct store_file *f, int64_t from, int64_t to)
{
	if (from >= to)
		return 0;
	int r = array_grow_long(&s->part, &s->size, s->n_parts + 1, sizeof(*s->part));
	if (r < 0)
		return r;
	s->part[s->n_parts++] = (struct store_part){f, from, to};
	return 0;
}

/* A file with rows of that tier in it. */
static bool is_of(const struct store_file *f, enum tier tier)
{
	return f->tier == tier && !f->corrupt && !f->other_version;
}

/* End of the file's rows; later rows would start here or after. The last row of a coarse tier has
 * all windows that began in its step, however short it was. The end of a file that its writer left
 * unsealed is not known, but the file does not grow. */
static int64_t reach(const struct store_file *f)
{
	if (f->left && !f->end_ns)
		return f->start_ns + 2 * (int64_t)tier_period_ns(f->tier);
	return f->end_ns ? up(f->end_ns, (int64_t)tier_step_ns(f->tier)) : INT64_MAX;
}

/* Assign the part of f's time within [from, to) that its tier may answer, without the times missing
 * from the tier. */
static int deal_file(struct selection *s, const struct store_file *f, int64_t from, int64_t to)
{
	int64_t step = (int64_t)tier_step_ns(f->tier);
	from = from > f->start_ns ? up(from, step) : f->start_ns;
	to = to < reach(f) ? down(to, step) : reach(f);
	for (size_t i = 0; i < s->without.n && from < to; i++) {
		const struct span *w = &s->without.span[i];
		/* the last row has all windows that began before the end of its step, wherever the
		 * row ends */
		if (w->to <= from || w->from >= up(to, step))
			continue;
		int r = part_add(s, f, from, down(w->from, step));
		if (r < 0)
			return r;
		from = w->to == INT64_MAX ? to : up(w->to, step);
	}
	return part_add(s, f, from, to);
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* In order, and none touching the next. */
static void merge(struct spans *s)
{
	size_t kept = 0;
	if (s->n > 0)
		qsort(s->span, s->n, sizeof(*s->span), by_start);
	for (size_t i = 0; i < s->n; i++) {
		if (kept == 0 || s->span[i].from > s->span[kept - 1].to)
			s->span[kept++] = s->span[i];
		else if (s->span[i].to > s->span[kept - 1].to)
			s->span[kept - 1].to = s->span[i].to;
	}
	s->n = kept;
}

/* Remove the time assigned since part `first` from the open time. */
static int close_spans(struct selection *s, size_t first)
{
	struct spans dealt = {0}, left = {0};
	int r = 0;
	for (size_t i = first; i < s->n_parts && r == 0; i++)
		r = spans_add(&dealt, s->part[i].since_ns, s->part[i].until_ns);
	merge(&dealt);
	size_t next = 0;
	for (size_t i = 0; i < s->open.n && r == 0; i++) {
		struct span o = s->open.span[i];
		/* the last one may also reach into this one */
		next -= next > 0;
		for (; next < dealt.n && dealt.span[next].from < o.to && r == 0; next++) {
			r = spans_add(&left, o.from, dealt.span[next].from);
			if (dealt.span[next].to > o.from)
				o.from = dealt.span[next].to;
		}
		if (r == 0)
			r = spans_add(&left, o.from, o.to);
	}
	free(dealt.span);
	if (r == 0) {
		free(s->open.span);
		s->open = left;
	} else
		free(left.span);
	return r;
}

/* Window files that are not among the sources of this tier. */
static int find_without(struct selection *s, enum tier tier)
{
	int r = 0;
	s->without.n = 0;
	for (size_t i = 0; i < s->store->n_files && tier != TIER_WINDOW && r == 0; i++) {
		const struct store_file *f = &s->store->file[i];
		if (is_of(f, TIER_WINDOW) && !(f->rolled & 1u << tier))
			r = spans_add(&s->without, f->start_ns, reach(f));
	}
	return r;
}

static int deal_tier(struct selection *s, enum tier tier)
{
	size_t first = s->n_parts;
	int r = find_without(s, tier);
	for (size_t i = 0; i < s->store->n_files && r == 0; i++) {
		const struct store_file *f = &s->store->file[i];
		for (size_t o = 0; is_of(f, tier) && o < s->open.n && r == 0; o++)
			if (s->open.span[o].from < reach(f) && s->open.span[o].to > f->start_ns)
				r = deal_file(s, f, s->open.span[o].from, s->open.span[o].to);
	}
	return r == 0 ? close_spans(s, first) : r;
}

/* Was any of that tier's time in [from, to) assigned to a part? Window files that are not its
 * sources do not matter. */
static bool is_dealt(const struct selection *s, enum tier tier, int64_t from, int64_t to)
{
	for (size_t i = 0; i < s->n_parts; i++) {
		const struct store_file *f = s->part[i].file;
		bool other = f->tier == TIER_WINDOW && !(f->rolled & 1u << tier);
		if (!other && s->part[i].since_ns < to && s->part[i].until_ns > from)
			return true;
	}
	return false;
}

/* Assign edges that no finer file covers: the whole row, unless a part of its time was assigned.
 * */
static int deal_edges(struct selection *s, enum tier tier)
{
	int64_t step = (int64_t)tier_step_ns(tier);
	size_t first = s->n_parts;
	int r = 0;
	for (size_t o = 0; o < s->open.n && r == 0; o++) {
		struct span open = s->open.span[o];
		for (size_t i = 0; i < s->store->n_files && r == 0; i++) {
			const struct store_file *f = &s->store->file[i];
			int64_t from =
				open.from > f->start_ns ? down(open.from, step) : f->start_ns;
			int64_t to = open.to < reach(f) ? open.to : reach(f);
			if (is_of(f, tier) && from < to && reach(f) > open.from &&
				!is_dealt(s, tier, down(from, step), up(to, step)))
				r = part_add(s, f, from > f->start_ns ? from : f->start_ns, to);
		}
	}
	return r == 0 ? close_spans(s, first) : r;
}

static int deal_coarsest_first(struct selection *s, enum tier coarsest)
{
	int r = 0;
	for (int tier = (int)coarsest; tier >= TIER_WINDOW && r == 0; tier--)
		r = deal_tier(s, (enum tier)tier);
	for (int tier = TIER_MINUTE; tier <= (int)coarsest && r == 0; tier++)
		r = deal_edges(s, (enum tier)tier);
	return r;
}

static int deal_finest_first(struct selection *s)
{
	int r = deal_tier(s, TIER_WINDOW);
	for (int tier = TIER_MINUTE; tier < N_TIERS && r == 0; tier++) {
		r = deal_tier(s, (enum tier)tier);
		if (r == 0)
			r = deal_edges(s, (enum tier)tier);
	}
	return r;
}

int store_select(const struct store *s, int64_t since_ns, int64_t until_ns, enum tier coarsest,
	struct store_part **ret_part, size_t *ret_n_parts)
{
	struct selection selection = {.store = s};
	int r = spans_add(
		&selection.open, since_ns > 0 ? since_ns : 0, until_ns > 0 ? until_ns : INT64_MAX);
	if (r == 0)
		r = coarsest == STORE_FINEST_FIRST ? deal_finest_first(&selection)
						   : deal_coarsest_first(&selection, coarsest);
	free(selection.open.span);
	free(selection.without.span);
	if (r < 0) {
		free(selection.part);
		return r;
	}
	*ret_part = selection.part;
	*ret_n_parts = selection.n_parts;
	return 0;
}
