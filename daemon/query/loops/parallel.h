/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Parallel: work and waiting of the threads in OpenMP regions
 *
 * A region's time is the sum of its threads' times inside; its work is that time without waits at
 * barriers, for tasks and for locks. Both include nested regions.
 */

#include "daemon/query/loops/facts.h"

enum parallel_by {
	PARALLEL_BY_REGION,   /* rows: regions of a process */
	PARALLEL_BY_THREAD,   /* regions by thread */
	PARALLEL_BY_PLACE,    /* loops, barriers and locks in regions */
	PARALLEL_BY_WAIT,     /* barriers and locks by thread */
	PARALLEL_BY_LOOP,     /* instrumented loops in regions */
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

/* Rows sorted by time, largest first. Returns as query_roofline. */
int query_parallel(struct query_source *source, size_t n_sources,
	const struct parallel_question *question, const struct answer *answer,
	struct query_error *ret_error);
