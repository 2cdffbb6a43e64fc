/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Columns of a comparison for what rows have beside samples (gathered_column): metrics, or what loops counted */

#include "daemon/compare/gather.h"

/* Of each value: of the baseline, of the candidate, the change and its interval. */
#define COMPARE_VALUE_COLUMNS (5 * GATHER_VALUES_MAX)
struct compare_value_names {
	char name[COMPARE_VALUE_COLUMNS][112];
};

/* Returns how many; their names are in *names. */
size_t compare_value_columns(const struct gather *g, struct compare_value_names *names,
	struct answer_column *ret_columns);
/* Values of a row in these columns. 0 or -ENOMEM. */
int compare_value_values(const struct gather *g, const struct compare_runs *runs, size_t row,
	struct answer_value *ret_values);

/* For machines side by side, whose changes mean nothing: of each value the two sides alone. */
#define COMPARE_BESIDE_COLUMNS (2 * GATHER_VALUES_MAX)
size_t compare_beside_columns(const struct gather *g, struct compare_value_names *names,
	struct answer_column *ret_columns);
/* Of two rows, which may be the same: a function can have another name. 0 or -ENOMEM. */
int compare_beside_values(const struct gather *g, const struct compare_runs *runs,
	const size_t row[2], struct answer_value *ret_values);

/* Which runs have no such value, as a sentence without its full stop; GATHER_VALUES_MAX + 1 of them at most.
 * Returns false behind the last. */
bool compare_value_note(const struct gather *g, size_t n_runs, size_t i, char *text, size_t bytes);
