/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Pinning and unpinning jobs
 *
 * A pin keeps samples beyond their time, and takes room from everyone's: so it is charged to the user that
 * asks for it. Users pin jobs of their own, and members of the group those of others too.
 */

#include "daemon/attribute/label_set.h"
#include "daemon/control/request.h"
#include "daemon/store/store.h"

/* Keep the jobs that m says; only: the one of m->pid. Leaves a job in q. 0 or -errno. */
int job_pin(struct request *q, struct label_set *only, const Mperf__JobRequest *m);
/* Keep them no longer. Leaves a job in q. 0 or -errno. */
int job_unpin(struct request *q, const Mperf__JobRequest *m);

/* Send the table "pin", which `mperfctl job` and `mperfctl store` show: pins of the peer's jobs, and those that it made;
 * of all users if it sees all. As the callbacks of an answer. */
int pin_rows_send(struct row_stream *stream, const struct answer *answer, const struct store *s,
	const struct peer *peer);
