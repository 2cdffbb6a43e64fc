/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Blocks: what was counted, by epoch, region, thread and block
 *
 * If a program counts blocks, these are the rows, else its loops and functions. A series has a row
 * for each epoch and thread, with the requested bandwidth.
 */

#include "daemon/query/loops/facts.h"

struct blocks_question {
	uint64_t every_ns; /* length of an epoch; 0: one epoch for all time */
	uint32_t limit;    /* rows; 0: all */
	bool series;
	const struct cores *cores; /* for their formulas of memory; NULL: not known */
	const struct query_filter *filter;
};

/* Rows in order of time. Returns as query_roofline. */
int query_blocks(struct query_source *source, size_t n_sources,
	const struct blocks_question *question, const struct answer *answer,
	struct query_error *ret_error);
