/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Spans: an ordered map from address ranges to names
 *
 * Ranges are added in order of rising priority; sealing cuts them into disjoint ranges, the last
 * added on top, and packs them. Lookup is then a binary search.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Twice IMAGE_SYMBOLS_MAX: each may be cut in two by another. Also bounds the ranges of units and
 * functions of one DWARF file, of which a debug Chromium has two million. */
#define SPANS_MAX 8000000

enum {
	SPANS_FULL = 1, /* SPANS_MAX reached; this range was not added */
};

struct span {
	uint64_t start, end; /* [start, end) */
	const char *name;    /* borrowed; NULL: a hole, or nameless */
	uint32_t tag;        /* the adder's */
	uint32_t order;      /* set by spans_add */
};

struct spans {
	struct span *span; /* NULL: packed */
	size_t n, size;
	/* Packed, of n each: start and end from `first`, then what the adder gave. */
	uint64_t first;
	struct span_bounds *bounds;
	const char **name; /* NULL: none has a name */
	uint32_t *tag;     /* NULL: all are 0 */
};

/* Add one range; an empty one is ignored. Only before spans_seal. 0, SPANS_FULL, -ENOMEM */
int spans_add(struct spans *s, struct span span);

/* Sort, cut and pack: 16 bytes for a range with a name, 12 for one with a tag. Ranges that are more
 * than 4 GB apart keep their 32 bytes. O(n log n). 0 or -ENOMEM; then only the order of s has
 * changed. */
int spans_seal(struct spans *s);

/* Only after spans_seal. False: no range contains addr; then *ret_span is the hole between ranges that does, without a
 * name. O(log n). */
bool spans_find(const struct spans *s, uint64_t addr, struct span *ret_span);

/* Free the memory; empty and usable afterwards. */
void spans_clear(struct spans *s);
