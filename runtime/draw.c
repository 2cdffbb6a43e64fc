/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * As Examem does, a region is measured at some of its entries only (section III.B), but at random
 * ones: if each Nth were measured, a program with a period would be measured at the same place of it
 * again and again. Windows begin with one entry and double up to N, so a region that is entered
 * once, or a few times, is measured and stands for itself alone. In Examem it would stand for N
 * (section IV.D: bc, mcf, imagick).
 *
 * With one entry of each window, a window has no variance of its own. Neighbours are taken to be of
 * the same distribution: half the square of the difference of two values in a row estimates its
 * variance, which is right for entries that are independent, and too much, thus on the safe side,
 * where there is a trend. Of a window of w entries the sum w x is off by a variance of
 * w (w - 1) of that: x stands for w - 1 others, and is itself exact. Source: Wolter, Introduction to
 * Variance Estimation, 2007, section 8.2, successive differences.
 */
#include "runtime/draw.h"
#include "runtime/abi.h"
#include "runtime/thread.h"

/* Passes if entries are never measured: more than any program makes. */
#define PASSES_ENDLESS (UINT64_C(1) << 61)

uint32_t mperf_draw(struct draw *d, uint32_t one_in, uint64_t *ret_passes)
{
	*ret_passes = one_in == 0 ? PASSES_ENDLESS : 0;
	if (one_in < 2)
		return one_in;
	const uint32_t window = d->window ? d->window : 1, rest = window - 1 - d->at;
	d->window = window <= one_in / 2 ? 2 * window : one_in;
	d->at = (uint32_t)(mperf_thread_chance() % d->window);
	*ret_passes = rest + d->at;
	return window;
}

void mperf_spread_add(struct spread *s, uint64_t value, uint32_t stands_for)
{
	const double difference = s->any ? (double)(int64_t)(value - s->last) : 0;
	const double others = (double)stands_for * ((double)stands_for - 1);
	s->variance += difference * difference / 2 * others;
	s->last = value;
	s->any = true;
}

uint64_t mperf_spread_units(const struct spread *s)
{
	const double units = s->variance / MPERF_VARIANCE_UNIT;
	if (units >= (double)INT64_MAX)
		return (uint64_t)INT64_MAX;
	const uint64_t whole = (uint64_t)units;
	return whole + ((double)whole < units);
}
