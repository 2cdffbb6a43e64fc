/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Most tables are sorted except for a few neighbours, which an insertion sort corrects. Tables of
 * dynamic symbols are in the order of a hash, and a compiler has tens of thousands of such symbols:
 * comparing items pair by pair took a third of all naming. So we distribute them by the bytes of their
 * addresses, the lowest first (a radix sort), as pairs of address and index, and then move each item
 * once.
 */

#include "daemon/namer/sort.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"

#define MOVES_PER_ITEM 4
#define DIGIT_BITS 8
#define DIGITS (1u << DIGIT_BITS)

struct key {
	uint64_t address;
	size_t index;
};

static bool sort_in_place(char *items, size_t n, size_t item_bytes, compare_items *compare)
{
	char item[SORT_ITEM_BYTES_MAX];
	size_t moves_left = n * MOVES_PER_ITEM;

	for (size_t i = 1; i < n; i++) {
		size_t at = i;
		while (at > 0 && compare(items + (at - 1) * item_bytes, items + i * item_bytes) > 0)
			if (at--, moves_left-- == 0)
				return false;
		if (at == i)
			continue;
		memcpy(item, items + i * item_bytes, item_bytes);
		memmove(items + (at + 1) * item_bytes, items + at * item_bytes,
			(i - at) * item_bytes);
		memcpy(items + at * item_bytes, item, item_bytes);
	}
	return true;
}

/* Sort the keys by one digit; equal ones keep their order. */
static void distribute(const struct key *from, struct key *to, size_t n, unsigned shift)
{
	size_t at[DIGITS] = {0}, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[from[i].address >> shift & (DIGITS - 1)]++;
	for (size_t digit = 0; digit < DIGITS; digit++) {
		size_t count = at[digit];
		at[digit] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[from[i].address >> shift & (DIGITS - 1)]++] = from[i];
}

static uint64_t address_of(const char *item)
{
	uint64_t address;

	memcpy(&address, item, sizeof(address));
	return address;
}

/* The keys of the items in order, in one half of `keys`, which has room for 2n. */
static struct key *sorted_keys(const char *items, size_t n, size_t item_bytes, struct key *keys)
{
	struct key *from = keys, *to = keys + n;
	uint64_t first = address_of(items), differ = 0;

	for (size_t i = 0; i < n; i++) {
		from[i] = (struct key){address_of(items + i * item_bytes), i};
		differ |= from[i].address ^ first;
	}
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		if (!(differ >> shift & (DIGITS - 1)))
			continue;
		distribute(from, to, n, shift);
		struct key *done = to;
		to = from;
		from = done;
	}
	return from;
}

/* Move the item at key[i].index to i, for each i, along the cycles of the permutation. */
static void move_items(char *items, size_t n, size_t item_bytes, struct key *key)
{
	char item[SORT_ITEM_BYTES_MAX];

	for (size_t start = 0; start < n; start++) {
		size_t at = start;
		if (key[at].index == at)
			continue;
		memcpy(item, items + at * item_bytes, item_bytes);
		while (key[at].index != start) {
			size_t from = key[at].index;
			memcpy(items + at * item_bytes, items + from * item_bytes, item_bytes);
			key[at].index = at;
			at = from;
		}
		memcpy(items + at * item_bytes, item, item_bytes);
		key[at].index = at;
	}
}

static bool sort_by_address(char *items, size_t n, size_t item_bytes)
{
	_cleanup_(freep) struct key *keys = reallocarray(NULL, n, 2 * sizeof(*keys));
	if (!keys)
		return false;

	move_items(items, n, item_bytes, sorted_keys(items, n, item_bytes, keys));
	return true;
}

/* Sort each run of items with the same address. */
static void sort_runs(char *items, size_t n, size_t item_bytes, compare_items *compare)
{
	for (size_t i = 0, end; i < n; i = end) {
		char *first = items + i * item_bytes;
		for (end = i + 1; end < n; end++)
			if (address_of(items + end * item_bytes) != address_of(first))
				break;
		if (end - i > 1 && !sort_in_place(first, end - i, item_bytes, compare))
			qsort(first, end - i, item_bytes, compare);
	}
}

void sort_items(void *items, size_t n, size_t item_bytes, compare_items *compare)
{
	if (n < 2 || sort_in_place(items, n, item_bytes, compare))
		return;
	if (sort_by_address(items, n, item_bytes))
		sort_runs(items, n, item_bytes, compare);
	else
		qsort(items, n, item_bytes, compare);
}
