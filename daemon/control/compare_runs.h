/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The child's part of a comparison in the store: selections to runs, runs to an answer */

#include "daemon/attribute/label_set.h"
#include "daemon/control/question.h"

/* Facts that the daemon noted as the files were chosen. */
struct compare_known {
	int64_t until_ns; /* CLOCK_REALTIME: what is stored ends there */
	size_t n_alive;
	struct label_text **text; /* of each, held */
	struct query_job alive[]; /* labels that processes have then */
};

/* Answer as question.run does; its known is a struct compare_known. */
int compare_runs_answer(struct question *q, const Mperf__CompareRequest *m, bool is_gate,
	const struct answer *to, struct query_error *ret_error);
