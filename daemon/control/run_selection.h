/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Selections of runs in the store, as diff, gate and job report have them */

#include "daemon/attribute/label_set.h"
#include "daemon/control/question.h"

/* Facts that the daemon noted when it chose the files. */
struct known_runs {
	int64_t until_ns; /* CLOCK_REALTIME: end of the stored time */
	size_t n_alive;
	struct label_text **text; /* texts of the sets, held */
	struct query_job alive[]; /* labels that processes have then */
};

/* Check a selection, and that the peer may see these users' jobs. 0, positive after a refusal, -errno. */
int run_selection_check(struct request *q, const Mperf__RunSelection *m);

/* For question.know and question.forget: `known` is then a struct known_runs. */
int run_selection_know(struct request *q, struct question *a);
void run_selection_forget(void *known);
