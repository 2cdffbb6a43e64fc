/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Draw: which entries into a region are measured, and how sure their sums are
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
	uint32_t at;     /* which of them that is, from 0 */
};

/* For how many entries does this one stand, if 1 in N is measured? 0: it is not measured, which happens
 * with one_in 0 alone. The next *ret_passes entries are not measured; the one behind them asks again.
 * Async-signal-safe. */
uint32_t mperf_draw(struct draw *d, uint32_t one_in, uint64_t *ret_passes);

/* Error of a sum of measured entries, each multiplied by the number of entries that it stands
 * for. */
struct spread {
	double variance;
	uint64_t last; /* the value before; valid if any */
	bool any;
};

/* Add a measured value, which stands for that many. */
void mperf_spread_add(struct spread *s, uint64_t value, uint32_t stands_for);

/* Its variance in units of MPERF_VARIANCE_UNIT, rounded up, so that a small error is not taken for none; at
 * most INT64_MAX, since a database takes no more. */
uint64_t mperf_spread_units(const struct spread *s);
