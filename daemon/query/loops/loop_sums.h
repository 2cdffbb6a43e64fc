/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Sums by loop: the samples of programs that count their loops, and each loop's counts. Used to compare runs
 *
 * A row is a loop by itself, without the loops inside; a function's code outside of its loops, which has no
 * nest; or an uncounted function, which has no source. Each sample is in one row, so they add up.
 */

#include "daemon/query/loops/facts.h"
#include "daemon/query/sums.h"

/* Names: function, nest ("1.3", the loop's place in its function), source (a file), line. Values, if the code
 * counts and ran: iterations, ops (of floating point), int_ops, bytes (loaded and stored), gops and gbytes (per
 * ns of the row's time). In no order. 0, QUERY_FAILED with *ret_error, a callback's value, -errno. */
int query_loop_sums(struct query_source *source, size_t n_sources,
	const struct query_filter *filter, const struct sums_reader *to,
	struct query_error *ret_error);
