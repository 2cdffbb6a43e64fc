/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Columns of a comparison for what samples counted beside time: cycles, instructions and their quotient, with
 * the interval of the change of each. There are none if no run counted. */

#include "daemon/compare/gather.h"
#include "daemon/query/query.h"

#define COMPARE_COUNT_COLUMNS 15

/* Returns how many. */
size_t compare_count_columns(const struct gather *g, struct answer_column *ret_columns);
/* Values of a row in these columns. 0 or -ENOMEM. */
int compare_count_values(const struct gather *g, const struct compare_runs *runs, size_t row,
	struct answer_value *ret_values);
