/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Symbols nest (an assembly label with a size inside a function), JIT code is loaded over older
 * code, compilation units claim the same address. A lookup needs one answer, so all overlaps are
 * resolved once, at sealing: a sweep over the starts, with a heap of the ranges that cover the
 * current address, the one with the highest priority (last added) at its top. Each step passes a
 * start or ends a range, hence at most 2n results.
 *
 * A large library has 100,000 symbols, and they stay as long as its image. So the results are packed
 * into arrays, and fields that no result has are left out.
 */

#include "daemon/namer/spans.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "daemon/namer/sort.h"
#include "proto/base/memory.h"

struct span_bounds {
	uint32_t start, end;
};

static int span_append(struct spans *s, const struct span *span)
{
	if (s->n == s->size) {
		size_t size = s->size ? s->size * 2 : 64;
		struct span *grown = reallocarray(s->span, size, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		s->span = grown;
		s->size = size;
	}

	s->span[s->n++] = *span;
	return 0;
}

int spans_add(struct spans *s, struct span span)
{
	if (span.start >= span.end)
		return 0;
	if (s->n >= SPANS_MAX)
		return SPANS_FULL;

	span.order = (uint32_t)s->n;
	return span_append(s, &span);
}

static int span_compare(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* A heap of indices into the sorted ranges; the greatest order is at [0]. */
struct heap {
	const struct span *span;
	uint32_t *index;
	size_t n;
};

static bool heap_above(const struct heap *h, uint32_t a, uint32_t b)
{
	return h->span[a].order > h->span[b].order;
}

static void heap_push(struct heap *h, uint32_t index)
{
	size_t i = h->n++;

	while (i > 0 && heap_above(h, index, h->index[(i - 1) / 2])) {
		h->index[i] = h->index[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h->index[i] = index;
}

static void heap_pop(struct heap *h)
{
	uint32_t last = h->index[--h->n];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= h->n)
			break;
		if (child + 1 < h->n && heap_above(h, h->index[child + 1], h->index[child]))
			child++;
		if (!heap_above(h, h->index[child], last))
			break;
		h->index[i] = h->index[child];
		i = child;
	}
	h->index[i] = last;
}

/* Append [start, end) of `from`, or extend the last result if it is the same range continued. */
static int span_emit(struct spans *to, const struct span *from, uint64_t start, uint64_t end)
{
	struct span *last = to->n ? &to->span[to->n - 1] : NULL;
	if (last && last->order == from->order && last->end == start) {
		last->end = end;
		return 0;
	}

	struct span cut = *from;
	cut.start = start;
	cut.end = end;
	return span_append(to, &cut);
}

static int spans_sweep(const struct spans *s, struct heap *h, struct spans *to)
{
	uint64_t at = 0;
	size_t next = 0;

	while (next < s->n || h->n) {
		if (!h->n)
			at = s->span[next].start;
		while (next < s->n && s->span[next].start <= at)
			heap_push(h, (uint32_t)next++);
		while (h->n && s->span[h->index[0]].end <= at)
			heap_pop(h);
		if (!h->n)
			continue;

		const struct span *top = &s->span[h->index[0]];
		uint64_t end = top->end;
		if (next < s->n && s->span[next].start < end)
			end = s->span[next].start;

		int r = span_emit(to, top, at, end);
		if (r)
			return r;
		at = end;
	}
	return 0;
}

static bool spans_overlap(const struct spans *s)
{
	for (size_t i = 1; i < s->n; i++)
		if (s->span[i].start < s->span[i - 1].end)
			return true;
	return false;
}

/* Shrink what was not packed: the array grew by doubling, and is kept as long as its file. */
static void spans_fit(struct spans *s)
{
	struct span *fit = s->span && s->n && s->n < s->size
				   ? reallocarray(s->span, s->n, sizeof(*fit))
				   : NULL;
	if (!fit)
		return;
	s->span = fit;
	s->size = s->n;
}

static bool spans_have_names(const struct spans *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->span[i].name)
			return true;
	return false;
}

static bool spans_have_tags(const struct spans *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->span[i].tag)
			return true;
	return false;
}

/* Without memory for it, or with ranges too far apart, they stay as they are. */
static void spans_pack(struct spans *s)
{
	if (s->n == 0 || s->span[s->n - 1].end - s->span[0].start > UINT32_MAX)
		return;

	struct spans to = {.n = s->n, .first = s->span[0].start};
	bool names = spans_have_names(s), tags = spans_have_tags(s);
	to.bounds = reallocarray(NULL, s->n, sizeof(*to.bounds));
	to.name = names ? reallocarray(NULL, s->n, sizeof(*to.name)) : NULL;
	to.tag = tags ? reallocarray(NULL, s->n, sizeof(*to.tag)) : NULL;
	if (!to.bounds || (names && !to.name) || (tags && !to.tag)) {
		spans_clear(&to);
		return;
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct span *from = &s->span[i];
		to.bounds[i] = (struct span_bounds){
			(uint32_t)(from->start - to.first), (uint32_t)(from->end - to.first)};
		if (names)
			to.name[i] = from->name;
		if (tags)
			to.tag[i] = from->tag;
	}
	spans_clear(s);
	*s = to;
}

static int spans_cut(struct spans *s)
{
	_cleanup_(freep) uint32_t *index = calloc(s->n, sizeof(*index));
	if (!index)
		return -ENOMEM;

	struct heap heap = {.span = s->span, .index = index};
	struct spans cut = {0};
	int r = spans_sweep(s, &heap, &cut);
	if (r) {
		spans_clear(&cut);
		return r;
	}

	spans_clear(s);
	*s = cut;
	return 0;
}

int spans_seal(struct spans *s)
{
	_Static_assert(sizeof(*s->span) <= SORT_ITEM_BYTES_MAX, "fits");
	if (s->n > 1)
		sort_items(s->span, s->n, sizeof(*s->span), span_compare);
	int r = spans_overlap(s) ? spans_cut(s) : 0;
	if (r == 0)
		spans_pack(s);
	if (r == 0)
		spans_fit(s);
	return r;
}

static uint64_t start_at(const struct spans *s, size_t i)
{
	return s->bounds ? s->first + s->bounds[i].start : s->span[i].start;
}

static struct span span_at(const struct spans *s, size_t i)
{
	if (!s->bounds)
		return s->span[i];
	return (struct span){
		.start = s->first + s->bounds[i].start,
		.end = s->first + s->bounds[i].end,
		.name = s->name ? s->name[i] : NULL,
		.tag = s->tag ? s->tag[i] : 0,
	};
}

bool spans_find(const struct spans *s, uint64_t addr, struct span *ret_span)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (start_at(s, middle) <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	const struct span before = low > 0 ? span_at(s, low - 1) : (struct span){0};
	if (addr < before.end) {
		*ret_span = before;
		return true;
	}
	*ret_span = (struct span){
		.start = before.end, .end = low < s->n ? start_at(s, low) : UINT64_MAX};
	return false;
}

void spans_clear(struct spans *s)
{
	free(s->span);
	free(s->bounds);
	free(s->name);
	free(s->tag);
	*s = (struct spans){0};
}
