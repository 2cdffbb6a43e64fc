/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Rates of one machine are skewed to the slow side, so means and their errors would mislead.
 */
#include "client/roofs/measure/statistics.h"

#include <stdlib.h>
#include <string.h>

#define COVERAGE 0.95
#define THROTTLED 0.97

size_t statistics_rank(size_t n)
{
	/* outside on one side: fewer than `rank` of n fair coins are heads */
	double term = 1, sum = 0;
	for (size_t i = 0; i < n; i++)
		term /= 2;
	size_t rank = 0;
	while (rank < n / 2) {
		sum += term;
		if (1 - 2 * sum < COVERAGE)
			break;
		term = term * (double)(n - rank) / (double)(rank + 1);
		rank++;
	}
	return rank > 0 ? rank : 1;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct middle statistics_middle(const double *value, size_t n, bool whole)
{
	double sorted[STATISTICS_REPEATS_MAX];
	memcpy(sorted, value, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);

	size_t rank = whole ? 1 : statistics_rank(n);
	return (struct middle){
		.value = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2,
		.low = sorted[rank - 1],
		.high = sorted[n - rank],
	};
}

double statistics_upper(const double *value, size_t n)
{
	double sorted[STATISTICS_REPEATS_MAX];
	memcpy(sorted, value, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted[n - 1 - (n + 1) / 4];
}

static double mean(const double *value, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += value[i];
	return sum / (double)n;
}

bool statistics_throttled(const double *value, size_t n, double *ret_first, double *ret_last)
{
	size_t third = n / 3;
	if (n < 6)
		return false;
	double first = mean(value, third), last = mean(value + n - third, third);
	if (last >= first * THROTTLED)
		return false;
	*ret_first = first;
	*ret_last = last;
	return true;
}
