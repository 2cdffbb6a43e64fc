/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* An open hash table of numbers into an array, at most half full. */

#include "client/export/pair.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base/hash.h"

#define PAIRS_FIRST 512

static uint32_t *slot_of(const struct pair_table *t, uint32_t a, uint32_t b)
{
	uint64_t at = hash_words(a, b);
	for (;; at++) {
		uint32_t *slot = &t->slot[at & (t->n_slots - 1)];
		if (*slot == 0 || (t->pair[*slot - 1].a == a && t->pair[*slot - 1].b == b))
			return slot;
	}
}

/* Double the room for pairs, and number them again; the slots stay at most half full. */
static int grow(struct pair_table *t)
{
	const uint32_t size = t->size ? 2 * t->size : PAIRS_FIRST;
	if (t->n >= PAIRS_MAX)
		return PAIR_FULL;
	struct pair *pair = reallocarray(t->pair, size, sizeof(*pair));
	if (!pair)
		return -ENOMEM;
	t->pair = pair;
	uint32_t *slot = calloc(2 * (size_t)size, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	free(t->slot);
	t->slot = slot;
	t->n_slots = 2 * size;
	t->size = size;
	for (uint32_t i = 0; i < t->n; i++)
		*slot_of(t, pair[i].a, pair[i].b) = i + 1;
	return 0;
}

int pair_get(struct pair_table *t, uint32_t a, uint32_t b, uint32_t *ret_number)
{
	int r = t->n == t->size ? grow(t) : 0;
	if (r != 0)
		return r;
	uint32_t *slot = slot_of(t, a, b);
	if (*slot == 0) {
		t->pair[t->n++] = (struct pair){a, b};
		*slot = t->n;
	}
	*ret_number = *slot - 1;
	return 0;
}

void pair_clear(struct pair_table *t)
{
	free(t->pair);
	free(t->slot);
	*t = (struct pair_table){0};
}
