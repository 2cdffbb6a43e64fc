/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Roofline: the performance that loops reached, as rows for a roofline model
 *
 * A rate is relative to thread time: it is the mean rate of a thread. Bandwidth is that of the program's loads and
 * stores, not of memory.
 */

#include "daemon/pmu/cores.h"
#include "daemon/query/loops/facts.h"

enum roofline_by {
	ROOFLINE_LOOP,
	ROOFLINE_FUNCTION,
	ROOFLINE_REGION,
	ROOFLINE_THREAD,
	N_ROOFLINE_BY
};
enum roofline_ops { ROOFLINE_FP, ROOFLINE_INT, ROOFLINE_SP, ROOFLINE_DP, N_ROOFLINE_OPS };

/* -1 if there is no such name. */
int roofline_by_parse(const char *name);
int roofline_ops_parse(const char *name);

struct roofline_question {
	enum roofline_by by;
	enum roofline_ops ops;
	uint32_t limit; /* rows; 0: all */
	bool inclusive; /* choose and order loops by time with the loops inside, not by their own */
	bool explains;  /* explain the columns, too */
	const struct cores *cores; /* for their formulas of memory; NULL: not known */
	const struct query_filter *filter;
};

/* The coarsest tier that can answer. */
enum tier roofline_coarsest(const struct roofline_question *question);

/* Rows sorted by time, largest first. Loops of one nest are adjacent, in the order of the source; with a loop,
 * the loops around it are shown too. 0, QUERY_FAILED with *ret_error, a callback's value, -errno. */
int query_roofline(struct query_source *source, size_t n_sources,
	const struct roofline_question *question, const struct answer *answer,
	struct query_error *ret_error);
