/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each run has one value of each, so the spread of runs has in it what sampling does to a run. A quotient needs
 * both counts of a run.
 */
#include "daemon/control/compare_counts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/compare/compare.h"
#include "proto/base/memory.h"

enum { CYCLES, INSTRUCTIONS, IPC, N_COUNTS };

static const struct answer_column columns[COMPARE_COUNT_COLUMNS] = {
	{"baseline_cycles", "Cycles", MPERF__UNIT__UNIT_RATIO},
	{"candidate_cycles", "Cycles", MPERF__UNIT__UNIT_RATIO},
	{"cycles_change", "Change", MPERF__UNIT__UNIT_SHARE},
	{"cycles_low", "Lowest", MPERF__UNIT__UNIT_SHARE},
	{"cycles_high", "Highest", MPERF__UNIT__UNIT_SHARE},
	{"baseline_instructions", "Instructions", MPERF__UNIT__UNIT_RATIO},
	{"candidate_instructions", "Instructions", MPERF__UNIT__UNIT_RATIO},
	{"instructions_change", "Instructions", MPERF__UNIT__UNIT_SHARE},
	{"instructions_low", "Lowest", MPERF__UNIT__UNIT_SHARE},
	{"instructions_high", "Highest", MPERF__UNIT__UNIT_SHARE},
	{"baseline_ipc", "IPC", MPERF__UNIT__UNIT_RATIO},
	{"candidate_ipc", "IPC", MPERF__UNIT__UNIT_RATIO},
	{"ipc_change", "IPC", MPERF__UNIT__UNIT_SHARE},
	{"ipc_low", "Lowest", MPERF__UNIT__UNIT_SHARE},
	{"ipc_high", "Highest", MPERF__UNIT__UNIT_SHARE},
};

size_t compare_count_columns(const struct gather *g, struct answer_column *ret_columns)
{
	if (!gather_has_counts(g))
		return 0;
	for (size_t i = 0; i < COMPARE_COUNT_COLUMNS; i++)
		ret_columns[i] = columns[i];
	return COMPARE_COUNT_COLUMNS;
}

/* NAN: it was not counted. */
static double value_of(const struct gathered_counts *c, int what)
{
	if (what == IPC)
		return c->cycles > 0 && c->instructions >= 0 ? c->instructions / c->cycles : NAN;
	const double n = what == CYCLES ? c->cycles : c->instructions;
	return n >= 0 ? n : NAN;
}

static struct answer_value real(double value)
{
	return isfinite(value) ? (struct answer_value){.kind = ANSWER_REAL, .real = value}
			       : (struct answer_value){.kind = ANSWER_ABSENT};
}

/* Of runs that counted; a quotient is of all that was counted. */
static double mean_of(
	const struct gather *g, const struct compare_runs *runs, size_t row, bool side, int what)
{
	double sum = 0, cycles = 0;
	size_t n = 0;
	for (size_t r = 0; r < runs->n_runs; r++) {
		const struct gathered_counts c = gather_counts(g, row, r);
		if (runs->candidate[r] != side || isnan(value_of(&c, what)))
			continue;
		sum += what == CYCLES ? c.cycles : c.instructions;
		cycles += c.cycles;
		n++;
	}
	return n == 0 ? NAN : what == IPC ? sum / cycles : sum / (double)n;
}

int compare_count_values(const struct gather *g, const struct compare_runs *runs, size_t row,
	struct answer_value *ret_values)
{
	_cleanup_(freep) double *value = calloc(runs->n_runs + 1, sizeof(*value));
	struct answer_value *v = ret_values;
	int r = value ? 0 : -ENOMEM;

	for (int what = 0; what < N_COUNTS && r == 0; what++) {
		struct compare_change change;
		for (size_t i = 0; i < runs->n_runs; i++) {
			const struct gathered_counts c = gather_counts(g, row, i);
			value[i] = value_of(&c, what);
		}
		r = compare_value(value, runs->candidate, runs->n_runs, &change);
		*v++ = real(mean_of(g, runs, row, false, what));
		*v++ = real(mean_of(g, runs, row, true, what));
		*v++ = real(change.change);
		*v++ = real(change.low);
		*v++ = real(change.high);
	}
	return r;
}
