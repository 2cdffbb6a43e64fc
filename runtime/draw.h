/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Draw: choose the entries of a region to measure, and estimate the error of their sums
 *
 *      entry      1  2  3  4  5  6  7  8  9 ...
 *      window    |1 |2    |4          |N ...        one random entry of each is measured
 *      stands for 1     2  4                        the entries of its window
 */

#include <stdbool.h>
#include <stdint.h>

/* State of a thread in a region. All 0: nothing was entered yet. */
struct draw {
	uint32_t window; /* entries of the one in which the next is measured */
	uint32_t at;     /* number of the chosen entry in the window, from 0 */
};

/* The number of entries that this one represents, if 1 in N is measured. 0: it is not measured,
 * only with one_in 0. The next *ret_passes entries are not measured; the entry after them calls
 * again. Async-signal-safe. */
uint32_t mperf_draw(struct draw *d, uint32_t one_in, uint64_t *ret_passes);

/* Error of a sum of measured entries, each multiplied by the number of entries that it stands
 * for. */
struct spread {
	double variance;
	uint64_t last; /* the value before; valid if any */
	bool any;
};

/* Add a measured value, which represents that many entries. */
void mperf_spread_add(struct spread *s, uint64_t value, uint32_t stands_for);

/* Its variance in units of MPERF_VARIANCE_UNIT, rounded up, so that a small error does not become
 * 0; at most INT64_MAX, the limit of the database. */
uint64_t mperf_spread_units(const struct spread *s);
