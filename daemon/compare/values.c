/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * With two runs on each side the interval comes from the runs' values, whose spread includes the
 * error of sampling. With fewer runs it comes from the errors of the estimates, if these are known.
 * A quotient of counts needs both counts of a run.
 */
#include "daemon/compare/values.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/compare/compare.h"
#include "proto/base/memory.h"

#define NORMAL_95 1.96 /* half of a 95 % interval, in standard errors */

/* --- columns ---------------------------------------------------------------------------------- */

struct form {
	const char *before, *after; /* of the value's name */
	const char *title;          /* NULL: the value's */
	bool is_share;
};

static void add_columns(const struct gather *g, const struct form *form, size_t n_forms,
	struct compare_value_names *names, struct row_builder *to)
{
	const struct gathered_column *c;
	const size_t n = gather_value_columns(g, &c);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n_forms; k++) {
			const struct form *f = &form[k];
			char *name = names->name[i * n_forms + k];
			snprintf(name, sizeof(names->name[0]), "%s%s%s", f->before, c[i].name,
				f->after);
			to->column[to->n++] = (struct answer_column){name,
				f->title ? f->title : c[i].title,
				f->is_share ? MPERF__UNIT__UNIT_SHARE : MPERF__UNIT__UNIT_RATIO};
		}
}

/* --- values ----------------------------------------------------------------------------------- */

/* The mean over a side's runs that have the value; NAN: none has. */
static double mean_of(const struct compare_runs *runs, bool side, const double *value)
{
	double sum = 0;
	size_t n = 0;
	for (size_t r = 0; r < runs->n_runs; r++)
		if (runs->candidate[r] == side && isfinite(value[r])) {
			sum += value[r];
			n++;
		}
	return n > 0 ? sum / (double)n : NAN;
}

/* The variance of the mean logarithm of a side's values above 0, from the values' own errors; NAN: these
 * are not known. */
static double variance_of(
	const struct compare_runs *runs, bool side, const double *value, const double *error)
{
	double sum = 0;
	size_t n = 0;
	for (size_t r = 0; r < runs->n_runs; r++)
		if (runs->candidate[r] == side && value[r] > 0) {
			const double relative = error[r] / NORMAL_95 / value[r];
			sum += relative * relative;
			n++;
		}
	return n > 0 ? sum / (double)(n * n) : NAN;
}

static int change_of(const struct compare_runs *runs, const double *value, const double *error,
	struct compare_change *ret_change)
{
	int r = compare_value(value, runs->candidate, runs->n_runs, ret_change);
	if (r < 0 || isfinite(ret_change->low) || !isfinite(ret_change->change))
		return r;
	const double half = NORMAL_95 * sqrt(variance_of(runs, false, value, error) +
						variance_of(runs, true, value, error));
	ret_change->low = expm1(log1p(ret_change->change) - half);
	ret_change->high = expm1(log1p(ret_change->change) + half);
	return 0;
}

int compare_values(const struct gather *g, const struct compare_runs *runs, size_t row,
	struct compare_value_names *names, struct row_builder *to)
{
	/* a loop's change has the title of its value, since the values themselves are not shown */
	const struct form forms[] = {{"baseline_", "", NULL, false},
		{"candidate_", "", "Candidate", false},
		{"", "_change", gather_is_by_loop(g) ? NULL : "Change", true},
		{"", "_low", "Lowest", true}, {"", "_high", "Highest", true}};
	_cleanup_(freep) double *value = calloc(2 * runs->n_runs + 1, sizeof(*value));
	double *error = value ? value + runs->n_runs : NULL;
	const struct gathered_column *column;
	const size_t n = gather_value_columns(g, &column);
	int r = value ? 0 : -ENOMEM;

	if (to->column)
		add_columns(g, forms, sizeof(forms) / sizeof(*forms), names, to);
	for (size_t i = 0; to->value && i < n && r == 0; i++) {
		struct compare_change change;
		gather_values(g, row, i, value, error);
		r = change_of(runs, value, error, &change);
		const double cell[] = {mean_of(runs, false, value), mean_of(runs, true, value),
			change.change, change.low, change.high};
		for (size_t k = 0; k < sizeof(cell) / sizeof(*cell); k++)
			to->value[to->n++] = cell_ratio(cell[k]);
	}
	return r;
}

int compare_values_side_by_side(const struct gather *g, const struct compare_runs *runs,
	const size_t row[2], struct compare_value_names *names, struct row_builder *to)
{
	static const struct form forms[] = {{"", "_a", NULL, false}, {"", "_b", "B", false}};
	_cleanup_(freep) double *value = calloc(2 * runs->n_runs + 1, sizeof(*value));
	const struct gathered_column *column;
	const size_t n = gather_value_columns(g, &column);
	if (!value)
		return -ENOMEM;
	if (to->column)
		add_columns(g, forms, sizeof(forms) / sizeof(*forms), names, to);
	for (size_t i = 0; to->value && i < n; i++)
		for (int side = 0; side < 2; side++) {
			gather_values(g, row[side], i, value, value + runs->n_runs);
			to->value[to->n++] = cell_ratio(mean_of(runs, side, value));
		}
	return 0;
}

/* --- cycles, instructions and their quotient -------------------------------------------------- */

enum { CYCLES, INSTRUCTIONS, IPC, N_COUNTS };

struct counted {
	double mean[2]; /* of the baseline, of the candidate */
	struct compare_change change;
};

#define COUNTS_TABLE(COLUMN, KNOWN_IF)                                                             \
	COLUMN(baseline_cycles, "Cycles", ratio, of[CYCLES].mean[0])                               \
	COLUMN(candidate_cycles, "Cycles", ratio, of[CYCLES].mean[1])                              \
	COLUMN(cycles_change, "Change", share, of[CYCLES].change.change)                           \
	COLUMN(cycles_low, "Lowest", share, of[CYCLES].change.low)                                 \
	COLUMN(cycles_high, "Highest", share, of[CYCLES].change.high)                              \
	COLUMN(baseline_instructions, "Instructions", ratio, of[INSTRUCTIONS].mean[0])             \
	COLUMN(candidate_instructions, "Instructions", ratio, of[INSTRUCTIONS].mean[1])            \
	COLUMN(instructions_change, "Instructions", share, of[INSTRUCTIONS].change.change)         \
	COLUMN(instructions_low, "Lowest", share, of[INSTRUCTIONS].change.low)                     \
	COLUMN(instructions_high, "Highest", share, of[INSTRUCTIONS].change.high)                  \
	COLUMN(baseline_ipc, "IPC", ratio, of[IPC].mean[0])                                        \
	COLUMN(candidate_ipc, "IPC", ratio, of[IPC].mean[1])                                       \
	COLUMN(ipc_change, "IPC", share, of[IPC].change.change)                                    \
	COLUMN(ipc_low, "Lowest", share, of[IPC].change.low)                                       \
	COLUMN(ipc_high, "Highest", share, of[IPC].change.high)
_Static_assert(ROW_LENGTH(COUNTS_TABLE) == COMPARE_COUNT_COLUMNS, "room for them");

/* NAN: it was not counted. */
static double value_of(const struct gathered_counts *c, int what)
{
	if (what == IPC)
		return c->cycles > 0 && c->instructions >= 0 ? c->instructions / c->cycles : NAN;
	const double n = what == CYCLES ? c->cycles : c->instructions;
	return n >= 0 ? n : NAN;
}

/* Mean over the runs that counted; a quotient is that of the summed counts. */
static double mean_count(
	const struct compare_runs *runs, const struct gathered_counts *of, bool side, int what)
{
	double sum = 0, cycles = 0;
	size_t n = 0;
	for (size_t r = 0; r < runs->n_runs; r++) {
		if (runs->candidate[r] != side || isnan(value_of(&of[r], what)))
			continue;
		sum += what == CYCLES ? of[r].cycles : of[r].instructions;
		cycles += of[r].cycles;
		n++;
	}
	return n == 0 ? NAN : what == IPC ? sum / cycles : sum / (double)n;
}

int compare_counts(
	const struct gather *g, const struct compare_runs *runs, size_t row, struct row_builder *to)
{
	struct counted of[N_COUNTS] = {0};
	_cleanup_(freep) double *value = calloc(runs->n_runs + 1, sizeof(*value));
	_cleanup_(freep) struct gathered_counts *counts = calloc(runs->n_runs + 1, sizeof(*counts));
	int r = value && counts ? 0 : -ENOMEM;

	if (r == 0 && to->value)
		gather_counts(g, row, counts);
	for (int what = 0; to->value && what < N_COUNTS && r == 0; what++) {
		for (size_t i = 0; i < runs->n_runs; i++)
			value[i] = value_of(&counts[i], what);
		for (int side = 0; side < 2; side++)
			of[what].mean[side] = mean_count(runs, counts, side, what);
		r = compare_value(value, runs->candidate, runs->n_runs, &of[what].change);
	}
	ROW_PART(to, COUNTS_TABLE);
	return r;
}

/* --- what is missing -------------------------------------------------------------------------- */

bool compare_value_note(const struct gather *g, size_t n_runs, size_t i, char *text, size_t bytes)
{
	const struct gathered_column *c;
	const size_t n = gather_value_columns(g, &c);
	for (size_t k = 0; k < n; k++) {
		const size_t have = gather_value_runs(g, k);
		/* not every loop has all of these */
		if (have == n_runs || gather_is_by_loop(g) || i-- > 0)
			continue;
		if (have == 0)
			snprintf(text, bytes, "%.80s is n/a, since no run counted its events",
				c[k].name);
		else
			snprintf(text, bytes, "%zu of %zu runs did not count the events of %.80s",
				n_runs - have, n_runs, c[k].name);
		return true;
	}
	if (n == GATHER_VALUES_MAX && c[n - 1].is_cut && i == 0) {
		snprintf(text, bytes, "Only %d metrics are shown: the sides have others",
			GATHER_VALUES_MAX);
		return true;
	}
	return false;
}
