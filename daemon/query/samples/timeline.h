/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Timeline: how busy each hart, process or job was, by stretches of time
 *
 *      first pass     all sources ──▶ the sum of each row, first and last window ──▶ rows, stretches
 *      second pass    all sources ──▶ time of each row in each stretch
 *
 * Within a window, samples of recordings have their moments; of the service's windows, the seconds of each process and
 * hart are known (query/seconds.h), as far as they changed. All else is spread evenly over its window.
 */

#include "daemon/query/query.h"

/* Stretches of one answer: 400 KB of each row, of frames of 1 MB. */
#define TIMELINE_STRETCHES_MAX 100000u
/* Rows times stretches: at 16 bytes each, and as many to go back to, 32 MB. */
#define TIMELINE_CELLS_MAX (1u << 20)

struct timeline_of {
	int64_t every_ns; /* length of a stretch; 0: the shortest round one that makes at most n_stretches */
	uint32_t n_stretches; /* 0: TIMELINE_STRETCHES */
};
#define TIMELINE_STRETCHES 100u

/* Answer with the tables "timeline" (a row for each hart, process or job of question->by, and one for the rest beyond
 * question->limit) and "mark" (losses and the like), and provenance. Values are shares of a hart, or counts a second
 * of filter->event. 0, QUERY_FAILED with *ret_error, an answer callback's value, -errno. */
int query_timeline(struct query_source *source, size_t n_sources,
	const struct query_question *question, const struct timeline_of *of,
	const struct answer *answer, struct query_error *ret_error);
