/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Making pins, in a child process: find the jobs, and write a pin for each */

#include "daemon/jobs/pinner.h"

struct pin_making {
	struct store *store; /* a copy, whose list is kept as the daemon will have it */
	const struct pin_ask *ask;
	const char *exact; /* JSON of the job that ended; NULL: what `ask` says */
	uint32_t exact_uid;
	const char *group; /* JSON */
	struct pin_limits limits;
	/* in memory that the daemon has too: already with the running jobs, which are left out */
	struct pin_report *report;
	char (*making)[STORE_NAME_BYTES]; /* the same: name of what is being written */
};

/* All outcomes go to the report. */
void pin_make(struct pin_making *m);
