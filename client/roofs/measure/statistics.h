/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The middle of some repeats, and an interval, without assuming how they are distributed */

#include <stdbool.h>
#include <stddef.h>

#define STATISTICS_REPEATS_MAX 64

struct middle {
	double value;     /* the median */
	double low, high; /* order statistics that contain the median in at least 95 % of cases;
			   * below six repeats, the extremes */
};

/* Which order statistic, from 1, is the low end for `n` repeats: 2 for 9 of them, where the median
 * is between the 2nd and the 8th in 96.1 %. Below six not even the extremes reach 95 %: 1.
 * Source: H. A. David, H. N. Nagaraja, "Order Statistics", 3rd edition, 7.1.
 * Exported for tests. */
size_t statistics_rank(size_t n);

/* The middle of n values, at least one, at most STATISTICS_REPEATS_MAX; `whole` widens the interval
 * to all of them. O(n log n). */
struct middle statistics_middle(const double *value, size_t n, bool whole);

/* The upper quartile of n values, at least one, at most STATISTICS_REPEATS_MAX: for repeats that others
 * slowed, since none of them is too fast. */
double statistics_upper(const double *value, size_t n);

/* Is the last third, in order of time, slower than the first by more than 3 %? Then the outputs are
 * the two means. False below six values. */
bool statistics_throttled(const double *value, size_t n, double *ret_first, double *ret_last);
