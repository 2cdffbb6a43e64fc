/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The child's side of a comparison in the store: it turns selections into runs, and runs into an
 * answer */

#include "daemon/control/run_selection.h"

/* Answer as question.run does; its known is a struct known_runs. */
int compare_runs_answer(struct question *q, const Mperf__CompareRequest *m, bool is_gate,
	const struct answer *to, struct query_error *ret_error);
