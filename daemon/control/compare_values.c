/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * With two runs on each side the interval is that of the runs' values, whose spread has in it what sampling does
 * to a run. Without, it is that of the estimates alone, where these say how far off they may be.
 */
#include "daemon/control/compare_values.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/compare/compare.h"
#include "proto/base/memory.h"

#define NORMAL_95 1.96 /* half of a 95 % interval, in standard errors */

static struct answer_value real(double value)
{
	return isfinite(value) ? (struct answer_value){.kind = ANSWER_REAL, .real = value}
			       : (struct answer_value){.kind = ANSWER_ABSENT};
}

/* --- columns ---------------------------------------------------------------------------------- */

struct form {
	const char *before, *after; /* of the value's name */
	const char *title;          /* NULL: the value's */
	bool is_share;
};

static size_t put_columns(const struct gather *g, const struct form *form, size_t n_forms,
	struct compare_value_names *names, struct answer_column *ret_columns)
{
	const struct gathered_column *c;
	const size_t n = gather_value_columns(g, &c);
	size_t at = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n_forms; k++) {
			const struct form *f = &form[k];
			snprintf(names->name[at], sizeof(names->name[at]), "%s%s%s", f->before,
				c[i].name, f->after);
			ret_columns[at] = (struct answer_column){names->name[at],
				f->title ? f->title : c[i].title,
				f->is_share ? MPERF__UNIT__UNIT_SHARE : MPERF__UNIT__UNIT_RATIO};
			at++;
		}
	return at;
}

size_t compare_value_columns(const struct gather *g, struct compare_value_names *names,
	struct answer_column *ret_columns)
{
	/* that of a loop is shown without the values that changed */
	const struct form forms[] = {{"baseline_", "", NULL, false},
		{"candidate_", "", "Candidate", false},
		{"", "_change", gather_is_by_loop(g) ? NULL : "Change", true},
		{"", "_low", "Lowest", true}, {"", "_high", "Highest", true}};
	return put_columns(g, forms, sizeof(forms) / sizeof(*forms), names, ret_columns);
}

size_t compare_beside_columns(const struct gather *g, struct compare_value_names *names,
	struct answer_column *ret_columns)
{
	static const struct form forms[] = {{"", "_a", NULL, false}, {"", "_b", "B", false}};
	return put_columns(g, forms, sizeof(forms) / sizeof(*forms), names, ret_columns);
}

/* --- values ----------------------------------------------------------------------------------- */

/* The mean of a side's runs that have one; NAN: none has. */
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

/* The variance of the mean logarithm of a side's values above 0, by their own errors; NAN: these are not
 * known. */
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

int compare_value_values(const struct gather *g, const struct compare_runs *runs, size_t row,
	struct answer_value *ret_values)
{
	_cleanup_(freep) double *value = calloc(2 * runs->n_runs + 1, sizeof(*value));
	double *error = value ? value + runs->n_runs : NULL;
	const struct gathered_column *column;
	const size_t n = gather_value_columns(g, &column);
	struct answer_value *v = ret_values;
	int r = value ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && r == 0; i++) {
		struct compare_change change;
		gather_values(g, row, i, value, error);
		r = change_of(runs, value, error, &change);
		*v++ = real(mean_of(runs, false, value));
		*v++ = real(mean_of(runs, true, value));
		*v++ = real(change.change);
		*v++ = real(change.low);
		*v++ = real(change.high);
	}
	return r;
}

int compare_beside_values(const struct gather *g, const struct compare_runs *runs,
	const size_t row[2], struct answer_value *ret_values)
{
	_cleanup_(freep) double *value = calloc(2 * runs->n_runs + 1, sizeof(*value));
	const struct gathered_column *column;
	const size_t n = gather_value_columns(g, &column);
	if (!value)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (int side = 0; side < 2; side++) {
			gather_values(g, row[side], i, value, value + runs->n_runs);
			ret_values[2 * i + (size_t)side] = real(mean_of(runs, side, value));
		}
	return 0;
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
			snprintf(text, bytes, "No run counted what %.80s needs: it is n/a",
				c[k].name);
		else
			snprintf(text, bytes, "%zu of %zu runs did not count what %.80s needs",
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
