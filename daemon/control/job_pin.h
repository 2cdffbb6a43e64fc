/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Pinning and unpinning jobs
 *
 * A pin keeps samples beyond the retention time, which takes room that all share. So it is charged to the
 * user who requests it. Users pin their own jobs; members of the group also those of others.
 */

#include "daemon/attribute/label_set.h"
#include "daemon/control/request.h"
#include "daemon/store/pin.h"

/* Pin the jobs that m selects; only: only the job of m->pid. Leaves a job in q. 0 or -errno. */
int job_pin(struct request *q, struct label_set *only, const Mperf__JobRequest *m);
/* Unpin the jobs that m selects. Leaves a job in q. 0 or -errno. */
int job_unpin(struct request *q, const Mperf__JobRequest *m);

/* Send the table "pin": pins of the peer's jobs, and pins that it made; those of all users if it sees all.
 * As the callbacks of an answer. */
int job_pins_send(const struct answer *to, const struct store *s, const struct peer *peer);
