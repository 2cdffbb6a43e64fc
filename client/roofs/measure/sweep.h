/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Levels of memory, found from rates at growing sizes */

#include <stddef.h>
#include <stdint.h>

#include "client/roofs/roofs.h"

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

/* Find the levels: stretches of at least an octave where the rate stays within an eighth. The last
 * is DRAM, if it reaches the end of the sweep, and the sweep four times the knee before and
 * `dram_bytes`, what caches may hold at most. A level without such a stretch is left out: what
 * falls all the way has no roof of its own. Returns how many, up to SWEEP_LEVELS_MAX. O(n^2). */
size_t sweep_levels(const struct sweep_point *point, size_t n, uint64_t dram_bytes,
	struct level ret_level[static SWEEP_LEVELS_MAX]);

/* Sizes for a sweep from `first` to `last` bytes, four an octave, each a multiple of `multiple`.
 * Returns how many, up to SWEEP_POINTS_MAX. */
size_t sweep_sizes(uint64_t first, uint64_t last, uint64_t multiple,
	struct sweep_point ret_point[static SWEEP_POINTS_MAX]);
