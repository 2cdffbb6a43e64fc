/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Levels of memory, found from rates at growing sizes */

#include <stddef.h>
#include <stdint.h>

#include "proto/roofs.h"

#define SWEEP_POINTS_MAX 128
#define SWEEP_LEVELS_MAX 6

struct sweep_point {
	uint64_t bytes; /* working set; ascending */
	double rate;    /* bytes per second, the best of a few tries */
};

struct level {
	char name[ROOF_WORD_BYTES]; /* L1, L2 …; DRAM */
	uint64_t knee;              /* the largest size that still has its rate; 0 for DRAM */
	uint64_t bytes;             /* the working set to measure it with */
	double rate;
};

/* What the kernel says of caches; zeros: nothing. It may be wrong, in virtual machines above all, so
 * it finds no level; it only keeps a cache from being taken for memory. */
struct sweep_hint {
	uint64_t cache_bytes; /* all that a hart reaches, or its share */
	size_t n_caches;      /* levels */
};

/* Find the levels: stretches of at least an octave where the rate stays within an eighth. The last
 * is DRAM, if it reaches the last octave of the sweep, to at least four times the knee before, and
 * twice what the hint says, unless as many levels come before. A level without such a stretch is
 * left out: what falls all the way has no roof of its own. Returns how many, up to
 * SWEEP_LEVELS_MAX. O(n^2). */
size_t sweep_levels(const struct sweep_point *point, size_t n, struct sweep_hint hint,
	struct level ret_level[static SWEEP_LEVELS_MAX]);

/* Sizes for a sweep from `first` to `last` bytes, four an octave, each a multiple of `multiple`.
 * Returns how many, up to SWEEP_POINTS_MAX. */
size_t sweep_sizes(uint64_t first, uint64_t last, uint64_t multiple,
	struct sweep_point ret_point[static SWEEP_POINTS_MAX]);
