/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* However long the time of a value is, it changes four cells: those at its ends, and where it begins and ends to fill
 * whole stretches.
 */

#include <math.h>

#include "daemon/query/samples/timeline_private.h"

/* Sums and differences of 10,000 samples are off by less than this part of their values. */
#define NOTHING 1e-9

static double part_of(double at_ns, double least, double most)
{
	return at_ns > least ? at_ns < most ? at_ns : most : least;
}

void timeline_put(struct timeline *t, uint32_t row, double from_ns, double to_ns, double value)
{
	const double every_ns = (double)t->every_ns, n = t->n_stretches;
	struct timeline_cell *cell = timeline_row(t, row);
	const double per_ns = to_ns > from_ns ? value / (to_ns - from_ns) : 0;
	if (!(to_ns >= 0) || !(from_ns <= every_ns * n))
		return;
	if (per_ns <= 0) {
		const uint32_t at = (uint32_t)part_of(from_ns / every_ns, 0, n - 1);
		cell[at].value += from_ns >= 0 && from_ns < every_ns * n ? value : 0;
		return;
	}
	from_ns = part_of(from_ns, 0, every_ns * n);
	to_ns = part_of(to_ns, 0, every_ns * n);
	const uint32_t first = (uint32_t)part_of(floor(from_ns / every_ns), 0, n - 1);
	const uint32_t last = (uint32_t)part_of(ceil(to_ns / every_ns) - 1, first, n - 1);
	if (first == last) {
		cell[first].value += per_ns * (to_ns - from_ns);
		return;
	}
	cell[first].value += per_ns * ((first + 1) * every_ns - from_ns);
	cell[last].value += per_ns * (to_ns - last * every_ns);
	if (last > first + 1) {
		cell[first + 1].whole += per_ns * every_ns;
		cell[last].whole -= per_ns * every_ns;
	}
}

void timeline_add_up(struct timeline *t)
{
	for (uint32_t row = 0; row <= t->n_rows; row++) {
		struct timeline_cell *cell = timeline_row(t, row);
		double whole = 0, most = 0;
		for (uint32_t i = 0; i < t->n_stretches; i++) {
			whole += cell[i].whole;
			cell[i].value += whole;
			most = fmax(most, cell[i].value);
		}
		for (uint32_t i = 0; i < t->n_stretches; i++)
			if (cell[i].value < most * NOTHING)
				cell[i].value = 0;
	}
}
