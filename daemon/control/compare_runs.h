/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The child's side of a comparison in the store: it turns selections into runs, and runs into an
 * answer */

#include "daemon/attribute/label_set.h"
#include "daemon/control/question.h"

/* Facts that the daemon noted when it chose the files. */
struct compare_known {
	int64_t until_ns; /* CLOCK_REALTIME: end of the stored time */
	size_t n_alive;
	struct label_text **text; /* texts of the sets, held */
	struct query_job alive[]; /* labels that processes have then */
};

/* Answer as question.run does; its known is a struct compare_known. */
int compare_runs_answer(struct question *q, const Mperf__CompareRequest *m, bool is_gate,
	const struct answer *to, struct query_error *ret_error);
