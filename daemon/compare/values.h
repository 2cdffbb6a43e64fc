/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Columns of a comparison for values other than samples: metrics or loop counts (gathered_column), and counts of
 * samples */

#include "daemon/answer/row.h"
#include "daemon/compare/gather.h"

/* Names of columns, whose text is here. */
#define COMPARE_VALUE_COLUMNS (5 * GATHER_VALUES_MAX)
struct compare_value_names {
	char name[COMPARE_VALUE_COLUMNS][112];
};

/* Add each value of a row: of the baseline, of the candidate, the change and its interval; names: NULL for a row.
 * 0 or -ENOMEM. */
int compare_values(const struct gather *g, const struct compare_runs *runs, size_t row,
	struct compare_value_names *names, struct row_builder *to);

/* Add each value of both sides without a change, for machines side by side, where changes mean nothing. row: the
 * baseline's and the candidate's, which differ if the function has another name there. */
#define COMPARE_SIDE_COLUMNS (2 * GATHER_VALUES_MAX)
int compare_values_side_by_side(const struct gather *g, const struct compare_runs *runs,
	const size_t row[2], struct compare_value_names *names, struct row_builder *to);

/* Add a row's cycles, instructions and their quotient, of both sides, with the interval of the change of each; if
 * any run counted. 0 or -ENOMEM. */
#define COMPARE_COUNT_COLUMNS 15
int compare_counts(const struct gather *g, const struct compare_runs *runs, size_t row,
	struct row_builder *to);

/* Write a note on runs that lack a value, as a sentence without its full stop; there are
 * GATHER_VALUES_MAX + 1 notes at most. Returns false after the last. */
bool compare_value_note(const struct gather *g, size_t n_runs, size_t i, char *text, size_t bytes);
