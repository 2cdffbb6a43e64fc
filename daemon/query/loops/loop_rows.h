/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The samples of programs that count their loops, split by loop, and what each loop counted: runs are compared
 * by these
 *
 * A row is a loop by itself, without the loops inside; a function's code outside of its loops, which has no
 * nest; or a function that nobody counts, which has no source. Each sample is in one row, so they add up.
 */

#include "daemon/query/loops/facts.h"

/* Columns: function, nest ("1.3", the loop's place in its function), source (a file), line, samples, self_ns,
 * cycles and instructions (absent: not counted), and of code that counts, as far as it ran: iterations, ops (of
 * floating point), int_ops, bytes (loaded and stored), gops and gbytes (per ns of self_ns). In no order. 0,
 * QUERY_FAILED with *ret_error, a callback's value, -errno. */
int query_loop_rows(struct query_source *source, size_t n_sources,
	const struct query_filter *filter, const struct answer *answer,
	struct query_error *ret_error);
