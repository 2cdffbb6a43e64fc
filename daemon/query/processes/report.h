/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Report: which processes bounded how long a job, or a recorded command, took
 *
 *      first pass     tasks of all sources ──▶ processes ──▶ chain (chain.h)
 *      second pass    samples of all sources ──▶ what each process and each stretch of the chain spent
 *
 * Processes of one run may be spread over several files of the store. A process is (boot, pid, start). It is called by
 * the name that it had last: a shell that starts a compiler is first a shell, and then the compiler.
 */

#include "daemon/query/query.h"

struct report_of {
	const char *says;      /* the run, for people */
	int64_t begin_ns;      /* CLOCK_REALTIME; 0: not known */
	int64_t begin_boot_ns; /* the same as CLOCK_MONOTONIC; 0: not known */
	bool unfinished;       /* it has processes: the report is of what there is so far */
	bool is_recording;     /* of a recording: its command */
};

/* Answer with the tables "run" (one row), "chain" and "program", and provenance. The question's filter selects the
 * processes, its limit the stretches of the chain and the programs. Sums of minutes and hours cannot answer. 0,
 * QUERY_FAILED with *ret_error, an answer callback's value, -errno. */
int query_report(struct query_source *source, size_t n_sources,
	const struct query_question *question, const struct report_of *of,
	const struct answer *answer, struct query_error *ret_error);
