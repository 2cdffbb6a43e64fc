/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/namer/sort.c, beside qsort. */

#include <stdlib.h>

#include "daemon/namer/sort.h"
#include "tests/unit/test.h"

#define ITEMS 3000u

struct item {
	uint64_t address;
	uint32_t rank;
	char filler[28]; /* no power of two in all */
};
_Static_assert(sizeof(struct item) <= SORT_ITEM_BYTES_MAX, "fits");

static uint64_t state = 1;

static uint64_t any(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 11;
}

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Each rank is used once, so there is one right order. */
static void expect_sorted(struct item *items, size_t n)
{
	static struct item expected[ITEMS];

	for (size_t i = 0; i < n; i++) {
		items[i].rank = (uint32_t)(n - i);
		memset(items[i].filler, (int)i, sizeof(items[i].filler));
	}
	memcpy(expected, items, n * sizeof(*items));
	qsort(expected, n, sizeof(*expected), compare);
	sort_items(items, n, sizeof(*items), compare);
	ck_assert_mem_eq(items, expected, n * sizeof(*items));
}

static struct item items[ITEMS];

TEST(any_order_and_any_bits_are_sorted)
{
	static const unsigned shifts[] = {0, 8, 21, 32, 45, 52};

	for (size_t s = 0; s < sizeof(shifts) / sizeof(*shifts); s++)
		for (size_t n = 0; n <= ITEMS; n = n * 3 + 1) {
			for (size_t i = 0; i < n; i++)
				items[i].address = any() >> shifts[s];
			expect_sorted(items, n);
		}
}

TEST(both_ends_of_the_address_space_are_sorted)
{
	for (size_t i = 0; i < ITEMS; i++)
		items[i].address = i % 3 == 0 ? UINT64_MAX - any() % 5 : any() % 5;
	expect_sorted(items, ITEMS);
}

TEST(equal_addresses_are_sorted_by_the_rest)
{
	for (size_t i = 0; i < ITEMS; i++)
		items[i].address = 0x401000;
	expect_sorted(items, ITEMS);
	for (size_t i = 0; i < ITEMS; i++)
		items[i].address = 0x401000 + any() % 7;
	expect_sorted(items, ITEMS);
}

TEST(sorted_and_reversed_items_are_sorted)
{
	for (size_t i = 0; i < ITEMS; i++)
		items[i].address = i * 16;
	expect_sorted(items, ITEMS);
	for (size_t i = 0; i < ITEMS; i++)
		items[i].address = (ITEMS - i) * 16;
	expect_sorted(items, ITEMS);
	for (size_t i = 0; i < ITEMS; i++)
		items[i].address = i * 16;
	items[1].address = ITEMS * 32; /* one is out of place */
	expect_sorted(items, ITEMS);
}
