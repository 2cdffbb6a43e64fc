/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Rates fall from one plateau to the next, at once or over an octave or two, and single points are
 * off. So a running median of three smooths first; then each plateau grows from its left end for as
 * long as rates stay near its median; and neighbours that hardly differ are one. A slope has no
 * stretch that is flat for an octave.
 *
 * Other load makes plateaus where there are none and hides others, so by order alone "L1" could be the
 * remains of two levels. Therefore the sizes that the machine states tell where to look.
 */
#include "client/roofs/measure/sweep.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_AN_OCTAVE 4
#define FLAT 0.125 /* of its median, either way */
#define TIMES_HINT 2
#define TIMES_KNEE 4  /* times the last cache: this much does not fit any more */
#define DISTINCT 0.85 /* the next level is at most this fast */

size_t sweep_sizes(uint64_t first, uint64_t last, uint64_t multiple,
	struct sweep_point ret_point[static SWEEP_POINTS_MAX])
{
	/* 2^(i/4), in 1024ths */
	static const uint64_t step[POINTS_AN_OCTAVE] = {1024, 1218, 1448, 1722};
	size_t n = 0;
	for (uint64_t octave = first; octave <= last; octave *= 2)
		for (size_t i = 0; i < POINTS_AN_OCTAVE; i++) {
			uint64_t bytes = octave * step[i] / 1024 / multiple * multiple;
			if (bytes > last || n == SWEEP_POINTS_MAX)
				return n;
			if (bytes > 0 && (n == 0 || bytes > ret_point[n - 1].bytes))
				ret_point[n++] = (struct sweep_point){.bytes = bytes};
		}
	return n;
}

static double median3(double a, double b, double c)
{
	double low = a < b ? a : b, high = a < b ? b : a;
	return c < low ? low : c > high ? high : c;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(const double *value, size_t n)
{
	double sorted[SWEEP_POINTS_MAX];
	memcpy(sorted, value, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted[n / 2];
}

struct plateau {
	size_t first, last;
	double rate;
};

/* The longest flat stretch from `first` on: how many points. */
static size_t flat_from(const double *rate, size_t first, size_t n)
{
	size_t length = 1;
	while (first + length < n) {
		double middle = median(rate + first, length + 1);
		for (size_t i = first; i <= first + length; i++)
			if (rate[i] > middle * (1 + FLAT) || rate[i] < middle * (1 - FLAT))
				return length;
		length++;
	}
	return length;
}

static size_t find_plateaus(const double *rate, size_t n, struct plateau *ret_plateau, size_t max)
{
	size_t found = 0;
	for (size_t i = 0; i < n;) {
		size_t length = flat_from(rate, i, n);
		if (length <= POINTS_AN_OCTAVE) {
			i++;
			continue;
		}
		struct plateau p = {i, i + length - 1, median(rate + i, length)};
		i += length;
		struct plateau *before = found > 0 ? &ret_plateau[found - 1] : NULL;
		if (before && p.rate > before->rate * DISTINCT) {
			before->last = p.last; /* one plateau, or split by other load */
			continue;
		}
		if (found == max)
			break;
		ret_plateau[found++] = p;
	}
	return found;
}

/* Half of the level's size, or more if the level before holds that. */
static uint64_t size_within(const struct sweep_point *point, const struct plateau *p)
{
	uint64_t half = point[p->last].bytes / 2, first = point[p->first].bytes;
	return half > first ? half : (first + point[p->last].bytes) / 2;
}

/* Is a set of `bytes` too large for all caches? There are `n` levels before, the last of which holds `knee`. */
static bool is_beyond(uint64_t bytes, size_t n, uint64_t knee, const struct sweep_hint *hint)
{
	bool all_caches = hint->n_caches > 0 && n >= hint->n_caches;
	uint64_t largest = hint->n_caches > 0 ? hint->cache[hint->n_caches - 1] : 0;
	return n > 0 && bytes / TIMES_KNEE >= knee && (all_caches || bytes / TIMES_HINT >= largest);
}

/* --- where sizes are stated ------------------------------------------------------------------- */

bool sweep_is_stated(const struct sweep_hint *hint)
{
	for (size_t k = 0; k < hint->n_caches; k++)
		if (hint->cache[k] <= (k > 0 ? hint->cache[k - 1] : 0))
			return false;
	return hint->n_caches > 0;
}

/* Between `first` and the point before `end`: of the flat stretches that are about as fast as the fastest,
 * the longest. False: there is none of an octave. */
static bool find_fastest(const double *rate, size_t first, size_t end, struct plateau *ret_plateau)
{
	double highest = 0;
	size_t longest = 0;
	for (size_t i = first; i < end; i++) {
		size_t length = flat_from(rate, i, end);
		if (length > POINTS_AN_OCTAVE)
			highest = fmax(highest, median(rate + i, length));
	}
	for (size_t i = first; i < end; i++) {
		size_t length = flat_from(rate, i, end);
		double middle = median(rate + i, length);
		if (length <= POINTS_AN_OCTAVE || length <= longest || middle < highest * DISTINCT)
			continue;
		longest = length;
		*ret_plateau = (struct plateau){i, i + length - 1, middle};
	}
	return longest > 0;
}

/* The first point of more than `bytes`. */
static size_t behind(const struct sweep_point *point, size_t n, uint64_t bytes)
{
	size_t i = 0;
	while (i < n && point[i].bytes <= bytes)
		i++;
	return i;
}

static size_t find_stated(const struct sweep_point *point, const double *rate, size_t n,
	const struct sweep_hint *hint, struct level *ret_level)
{
	const uint64_t largest = hint->cache[hint->n_caches - 1];
	size_t found = 0, dram = behind(point, n, TIMES_HINT * largest - 1);
	for (size_t k = 0; k < hint->n_caches; k++) {
		struct plateau p;
		size_t first = k > 0 ? behind(point, n, hint->cache[k - 1]) : 0;
		if (!find_fastest(rate, first, behind(point, n, hint->cache[k]), &p))
			continue;
		struct level *level = &ret_level[found++];
		*level = (struct level){
			.knee = hint->cache[k], .bytes = size_within(point, &p), .rate = p.rate};
		snprintf(level->name, sizeof(level->name), "L%c", (int)('1' + k));
	}
	if (dram == n)
		return found;
	double slowest = median(rate + dram, n - dram);
	if (found > 0 && ret_level[found - 1].knee == largest &&
		ret_level[found - 1].rate * DISTINCT < slowest)
		found--;
	ret_level[found++] =
		(struct level){.name = "DRAM", .bytes = point[n - 1].bytes, .rate = slowest};
	return found;
}

/* ---------------------------------------------------------------------------------------------- */

size_t sweep_levels(const struct sweep_point *point, size_t n, const struct sweep_hint *hint,
	struct level ret_level[static SWEEP_LEVELS_MAX])
{
	struct plateau plateau[SWEEP_LEVELS_MAX];
	double rate[SWEEP_POINTS_MAX];
	if (n < POINTS_AN_OCTAVE || n > SWEEP_POINTS_MAX)
		return 0;
	for (size_t i = 0; i < n; i++)
		rate[i] = i == 0 || i + 1 == n
				  ? point[i].rate
				  : median3(point[i - 1].rate, point[i].rate, point[i + 1].rate);
	if (sweep_is_stated(hint))
		return find_stated(point, rate, n, hint, ret_level);

	size_t found = find_plateaus(rate, n, plateau, SWEEP_LEVELS_MAX);
	if (hint->n_caches > 0 && found > hint->n_caches + 1) {
		/* there is only memory behind all caches; other load may have split its plateau */
		plateau[hint->n_caches] = plateau[found - 1];
		found = hint->n_caches + 1;
	}
	for (size_t i = 0; i < found; i++) {
		struct plateau *p = &plateau[i];
		/* the very last points may be disturbed */
		bool dram = i + 1 == found && p->last + POINTS_AN_OCTAVE >= n &&
			    is_beyond(point[p->last].bytes, i, i > 0 ? point[p[-1].last].bytes : 0,
				    hint);
		ret_level[i] = (struct level){
			.knee = dram ? 0 : point[p->last].bytes,
			.bytes = dram ? point[p->last].bytes : size_within(point, p),
			.rate = p->rate,
		};
		if (dram)
			snprintf(ret_level[i].name, sizeof(ret_level[i].name), "DRAM");
		else
			snprintf(ret_level[i].name, sizeof(ret_level[i].name), "L%c",
				(int)('1' + i));
	}
	return found;
}
