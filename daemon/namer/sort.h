/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Sort: items that begin with an address, by address */

#include <stddef.h>

#define SORT_ITEM_BYTES_MAX 64

typedef int compare_items(const void *a, const void *b);

/* Like qsort, for items that begin with a uint64_t by which `compare` orders them first. Linear,
 * unless many have the same address; without extra memory if few are out of place, else with 32
 * bytes an item for the time of the call. */
void sort_items(void *items, size_t n, size_t item_bytes, compare_items *compare);
