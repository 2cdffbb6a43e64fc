/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Parallel: what the threads of OpenMP's regions did, and what they waited for
 *
 * A region's time is that of its threads inside, added up; its work is what is left without waits
 * at barriers, for tasks and for locks. Regions inside are part of both.
 */

#include "daemon/query/loops/facts.h"

enum parallel_by {
	PARALLEL_BY_REGION,   /* rows: regions of a process */
	PARALLEL_BY_THREAD,   /* regions by thread */
	PARALLEL_BY_PLACE,    /* loops, barriers and locks in them */
	PARALLEL_BY_WAIT,     /* barriers and locks by thread */
	PARALLEL_BY_LOOP,     /* loops that count themselves in them */
	PARALLEL_BY_FUNCTION, /* functions by samples in them */
	N_PARALLEL_BY,
};
/* -1 if there is no such name. */
int parallel_by_parse(const char *name);

struct parallel_question {
	enum parallel_by by;
	uint32_t limit; /* rows; 0: all */
	const struct query_filter *filter;
};

/* Rows by falling time. Returns as query_roofline. */
int query_parallel(struct query_source *source, size_t n_sources,
	const struct parallel_question *question, const struct answer *answer,
	struct query_error *ret_error);
