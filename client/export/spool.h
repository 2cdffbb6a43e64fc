/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A spool: the samples of each thread in order, for formats that are written thread by thread
 *
 * Samples in a row with one stack and window become one, with the sum of their values, unless their times are known.
 */

#include "client/export/format.h"

/* 32 bytes each: 540 MB. A day of one busy hart at 99 Hz has half as many. More: EXPORT_TOO_LARGE.
 * */
#define SPOOL_ROWS_MAX (1u << 24)

struct spool_row {
	uint32_t stack, window;
	uint64_t value;
	int64_t at_ns; /* as of struct profile_sample */
	uint32_t next; /* of the same thread; index + 1, 0 at the end */
};

struct spool_thread {
	uint32_t first, last; /* rows: index + 1; 0: none */
	uint32_t n;
	uint64_t value;
};

struct spool {
	struct spool_row *row;
	struct spool_thread *thread; /* by task */
	uint32_t n, size, n_threads; /* n_threads: of the array */
};

/* 0, EXPORT_TOO_LARGE, -ENOMEM. */
int spool_add(struct spool *s, const struct profile_sample *sample);
void spool_clear(struct spool *s);

/* Rows of a thread: for (r = spool_first(s, task); r; r = spool_next(s, r)). */
static inline const struct spool_row *spool_first(const struct spool *s, uint32_t task)
{
	return task < s->n_threads && s->thread[task].first ? &s->row[s->thread[task].first - 1]
							    : NULL;
}
static inline const struct spool_row *spool_next(const struct spool *s, const struct spool_row *r)
{
	return r->next ? &s->row[r->next - 1] : NULL;
}
