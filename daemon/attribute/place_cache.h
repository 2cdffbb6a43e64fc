/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The place cache: frames of addresses that were seen before
 *
 * Callers repeat from sample to sample, and most return addresses of a drain are found here. An entry is
 * valid for one generation of an address space. A space gets a new, unique generation with each change
 * (naming/space.h), so entries never have to be removed when mappings change. The kernel's addresses have
 * a generation of their own, above those of spaces.
 */

#include <stdint.h>
#include <string.h>

struct frame;

/* 24 bytes each, 192 KB, about a core's private cache. */
#define PLACES_CACHED 8192u

struct cached_place {
	uint64_t generation; /* of the space, or the kernel's */
	uint64_t addr;       /* 0: empty */
	struct frame *frame;
};

struct place_cache {
	uint64_t kernel_generation;
	struct cached_place place[PLACES_CACHED];
};

/* Drop all entries, since some of their frames were freed. */
static inline void place_cache_clear(struct place_cache *c)
{
	memset(c->place, 0, sizeof(c->place));
}

/* Prepare a cache that is all zeros. */
static inline void place_cache_begin(struct place_cache *c)
{
	c->kernel_generation = UINT64_C(1) << 63; /* generations of spaces count up from 1 */
}

static inline uint64_t place_cache_kernel(const struct place_cache *c)
{
	return c->kernel_generation;
}

/* The kernel's code changed: its entries are no longer found. */
static inline void place_cache_change_kernel(struct place_cache *c)
{
	c->kernel_generation++;
}

/* The slot of an address. O(1). */
static inline struct cached_place *place_cache_slot(
	struct place_cache *c, uint64_t generation, uint64_t addr)
{
	/* Source of the constant: 2^64 divided by the golden ratio, odd. */
	uint64_t x = (addr ^ generation << 40) * 0x9e3779b97f4a7c15u;

	return &c->place[(x >> 32) % PLACES_CACHED];
}

/* The frame in a slot; NULL: the slot has another address. */
static inline struct frame *place_cache_frame(
	const struct cached_place *p, uint64_t generation, uint64_t addr)
{
	return p->addr == addr && p->generation == generation ? p->frame : NULL;
}

static inline void place_cache_put(
	struct cached_place *p, uint64_t generation, uint64_t addr, struct frame *frame)
{
	*p = (struct cached_place){generation, addr, frame};
}
