/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The answer of diff and gate, once all runs are gathered */

#include "daemon/compare/gather.h"

#define COMPARE_TOO_MANY_REMEDY "Compare fewer runs, or --by module."

struct compare_sides {
	const Mperf__CompareRequest *asked;
	bool is_gate;
	struct gather *gather;
	const char *const *name; /* of runs, those of the baseline first */
	size_t n_side[2];        /* runs of the baseline, of the candidate */
};

/* Check that the runs may be compared, compare them, and send the tables of a CompareRequest, without the end
 * of the answer. *ret_status is that of Done. 0; QUERY_FAILED with *ret_error; the answer's value; -errno. */
int compare_answer(const struct compare_sides *s, const struct answer *to, int *ret_status,
	struct query_error *ret_error);
