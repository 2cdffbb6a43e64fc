/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What a recording holds of its user's account (user.h): itself, descriptors, bytes in the cache
 * folder, and the loop's time for its windows. Of a private daemon nothing is counted.
 */

#include "daemon/control/request.h"
#include "daemon/control/walk.h"

struct record_hold {
	struct user *user; /* NULL: nothing is held */
	enum user_hold kind;
	uint64_t n_fds, bytes;
};

/* A recording more of the peer's user, who has room for what it will write; shared: it listens to
 * what is sampled all the time. 0; positive after the peer was told at which limit that is; -errno.
 */
int record_hold_begin(struct record_hold *h, struct request *q, bool shared);
/* Its descriptors: for n_pids targets, and those of a walk of its own (NULL: none). Likewise. */
int record_hold_fds(
	struct record_hold *h, struct request *q, size_t n_pids, const struct walk *walk);
/* Its segment now has that many bytes. False: its user may have no more. */
bool record_hold_bytes(struct record_hold *h, uint64_t bytes);
/* recording_options.spent, with the hold as its owner. */
uint64_t record_hold_spend(void *hold, uint64_t ns);
/* Give all back. */
void record_hold_end(struct record_hold *h);
