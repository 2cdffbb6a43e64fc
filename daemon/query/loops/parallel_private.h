/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rows of parallel, and their cells */

#include "daemon/query/loops/parallel.h"

/* A row, and sums over its threads. */
struct parallel_row {
	uint32_t site;     /* index + 1 */
	uint32_t region;   /* the same: of the region that it is in, or itself; 0: outside all */
	uint32_t who;      /* a thread of it, index + 1 */
	uint32_t function; /* with rows by function: texts */
	uint32_t module;
	uint32_t n_threads;
	double entries, calls, time_ns, wait_ns, lock_ns, longest_ns;
	double work, most_work; /* ns; of loops iterations */
	double iterations, fp_ops, bytes;
	double sampled_ns, samples;
};

struct parallel {
	struct parallel_question q;
	struct loop_facts facts;
	struct key_table keys; /* of rows */
	struct parallel_row *row;
	uint32_t size_rows;
	uint32_t *order;
};

/* parallel_cells.c. The answer's value. */
int parallel_tell_columns(const struct parallel *p, const struct answer *answer);
int parallel_tell_row(
	const struct parallel *p, const struct parallel_row *row, const struct answer *answer);
