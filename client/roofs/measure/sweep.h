/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Levels of memory, found from rates at growing sizes */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/roofs/roofs.h"

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

/* Sizes of caches that the machine states. */
#define SWEEP_CACHES_MAX 5
struct sweep_hint {
	uint64_t cache
		[SWEEP_CACHES_MAX]; /* bytes of each that a hart has, or its share; 0: not known */
	size_t n_caches;            /* 0: nothing is known */
};

/* Are the sizes of all caches stated, each larger than the one before? */
bool sweep_is_stated(const struct sweep_hint *hint);

/* Find the levels: stretches of at least an octave in which the rate stays within an eighth.
 *
 * Where all sizes are stated, they give the names: a level is the fastest such stretch between the size
 * before and its own, since other load only slows us down, and DRAM is what is twice as large as all caches or
 * more. A level without such a stretch, and a last cache that is no faster than DRAM, are not found.
 *
 * Else names go by order. The last stretch is DRAM, if it reaches the last octave of the sweep, to at
 * least four times the knee before, and twice the largest cache that is stated, unless as many levels come
 * before. Rates that fall all the way make no level.
 *
 * Returns how many, up to SWEEP_LEVELS_MAX. O(n^2), where sizes are stated O(n^3). */
size_t sweep_levels(const struct sweep_point *point, size_t n, const struct sweep_hint *hint,
	struct level ret_level[static SWEEP_LEVELS_MAX]);

/* Sizes for a sweep from `first` to `last` bytes, four an octave, each a multiple of `multiple`.
 * Returns how many, up to SWEEP_POINTS_MAX. */
size_t sweep_sizes(uint64_t first, uint64_t last, uint64_t multiple,
	struct sweep_point ret_point[static SWEEP_POINTS_MAX]);
