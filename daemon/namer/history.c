/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Ranges are added one by one, and each is compared with the ranges that it covers. So we keep them in parts of
 * doubling sizes, each sorted by start, and merge parts of equal size: a range moves log n times. A
 * part is a balanced tree in an array: each entry knows how far the ranges below it reach, and the
 * newest of them. Parts are in order of age, so the first answer of the newest part is the newest.
 *
 *      part 0: ranges 1 to 4096 │ part 1: to 6144 │ … │ the last few, unsorted
 */

#include "daemon/namer/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/names.h"
#include "daemon/namer/sort.h"

#define UNSORTED_MAX 32u
#define PARTS_MAX 32u

struct history_entry {
	uint64_t start, end;
	uint64_t reach;  /* the highest end in the tree below */
	uint32_t index;  /* of the code */
	uint32_t newest; /* in the tree below */
};

struct history_part {
	struct history_entry *entry;
	uint32_t n;
};

/* A search for ranges that meet [start, end). */
struct search {
	uint64_t start, end;
	uint32_t order; /* before this index */
	uint32_t last,
		first; /* the greatest index below order, the least from it on; UINT32_MAX: none */
};

static void search_meet(struct search *s, uint64_t start, uint64_t end, uint32_t index)
{
	if (start >= s->end || end <= s->start)
		return;
	if (index >= s->order)
		s->first = index < s->first ? index : s->first;
	else if (s->last == UINT32_MAX || index > s->last)
		s->last = index;
}

/* Can the tree at that entry improve the answer? */
static bool is_worth(const struct search *s, const struct history_entry *top)
{
	if (top->reach <= s->start)
		return false;
	return s->last == UINT32_MAX || top->newest > s->last;
}

static void search_tree(
	struct search *s, const struct history_entry *entry, uint32_t low, uint32_t high)
{
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct history_entry *top = &entry[middle];
		if (!is_worth(s, top))
			return;
		search_meet(s, top->start, top->end, top->index);
		bool right = top->start < s->end && middle + 1 < high;
		/* the side with the newer ranges first: it may make the other needless */
		if (right && low < middle &&
			entry[low + (middle - low) / 2].newest <
				entry[middle + 1 + (high - middle - 1) / 2].newest) {
			search_tree(s, entry, middle + 1, high);
			high = middle;
			continue;
		}
		if (right)
			search_tree(s, entry, low, middle);
		if (right)
			low = middle + 1;
		else
			high = middle;
	}
}

static void history_search(const struct history *h, struct search *s)
{
	s->last = s->first = UINT32_MAX;
	for (uint32_t i = h->n; i > h->n_sorted && s->last == UINT32_MAX; i--)
		search_meet(s, h->code[i - 1].start, h->code[i - 1].end, i - 1);
	for (uint32_t i = h->n_parts; i > 0 && s->last == UINT32_MAX; i--)
		search_tree(s, h->part[i - 1].entry, 0, h->part[i - 1].n);
}

const struct generated *history_find(const struct history *h, uint64_t addr, uint32_t order)
{
	struct search s = {.start = addr, .end = addr + 1, .order = order};

	if (addr == UINT64_MAX)
		return NULL;
	history_search(h, &s);
	if (s.last != UINT32_MAX)
		return &h->code[s.last];
	return s.first != UINT32_MAX ? &h->code[s.first] : NULL;
}

/* --- parts ------------------------------------------------------------------------------------ */

static int entry_compare(const void *a, const void *b)
{
	const struct history_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static void weave(
	struct history_entry *entry, uint32_t low, uint32_t high, struct history_entry *ret_top)
{
	uint32_t middle = low + (high - low) / 2;
	struct history_entry *top = &entry[middle], below;

	top->reach = top->end;
	top->newest = top->index;
	for (int side = 0; side < 2; side++) {
		uint32_t from = side ? middle + 1 : low, to = side ? high : middle;
		if (from >= to)
			continue;
		weave(entry, from, to, &below);
		top->reach = below.reach > top->reach ? below.reach : top->reach;
		top->newest = below.newest > top->newest ? below.newest : top->newest;
	}
	*ret_top = *top;
}

/* Sort the ranges that are not sorted yet into a new part, together with the last parts that are not
 * larger than it. */
static int sort_last(struct history *h)
{
	uint32_t n = h->n - h->n_sorted, n_parts = h->n_parts;

	if (!h->part)
		h->part = calloc(PARTS_MAX, sizeof(*h->part));
	if (!h->part)
		return -ENOMEM;
	while (n_parts > 0 && h->part[n_parts - 1].n <= n)
		n += h->part[--n_parts].n;
	struct history_entry *entry = reallocarray(NULL, n, sizeof(*entry)), top;
	if (!entry)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t index = h->n - n + i;
		entry[i] = (struct history_entry){
			.start = h->code[index].start, .end = h->code[index].end, .index = index};
	}
	_Static_assert(sizeof(*entry) <= SORT_ITEM_BYTES_MAX, "fits");
	sort_items(entry, n, sizeof(*entry), entry_compare);
	weave(entry, 0, n, &top);
	for (uint32_t i = n_parts; i < h->n_parts; i++)
		free(h->part[i].entry);
	h->part[n_parts] = (struct history_part){entry, n};
	h->n_parts = n_parts + 1;
	h->n_sorted = h->n;
	return 0;
}

static bool is_same(const struct generated *a, const struct generated *b)
{
	return a->start == b->start && a->end == b->end && a->name && b->name &&
	       strcmp(a->name, b->name) == 0;
}

int history_add(struct history *h, struct generated code, struct names *names)
{
	struct search s = {.start = code.start, .end = code.end, .order = UINT32_MAX - 1};

	if (code.start >= code.end)
		return 0;
	if (h->n >= HISTORY_MAX)
		return HISTORY_FULL;
	/* at the beginning: the last one stays unsorted, and can be taken back */
	int r = h->n - h->n_sorted >= UNSORTED_MAX ? sort_last(h) : 0;
	if (r < 0)
		return r;
	history_search(h, &s);
	code.covers = s.last != UINT32_MAX;
	if (code.covers && is_same(&h->code[s.last], &code)) {
		h->code[s.last].tag = code.tag;
		return 0;
	}
	if (h->n == h->size) {
		uint32_t size = h->size ? h->size * 2 : 64;
		struct generated *grown = reallocarray(h->code, size, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		h->code = grown;
		h->size = size;
	}
	if (names && !(code.name = names_copy(names, code.name, strlen(code.name))))
		return HISTORY_FULL;
	h->code[h->n++] = code;
	return 0;
}

void history_drop_last(struct history *h)
{
	if (h->n > h->n_sorted)
		h->n--;
}

void history_clear(struct history *h)
{
	for (uint32_t i = 0; i < h->n_parts; i++)
		free(h->part[i].entry);
	free(h->part);
	free(h->code);
	*h = (struct history){0};
}
