/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Rate requests: the rates that clients ask for beyond always-on sampling, each held to a budget or to none
 *
 * A request is for the whole system, or for the tasks of one user alone. */

#include "daemon/budget/overhead.h"

#define RATE_REQUESTS_MAX 4096 /* clients times their requests is less */

struct rate_request {
	const void *who;
	uid_t uid;                 /* whose tasks; -1: the whole system */
	struct overhead_held held; /* the rate with its budget; ppm 0: no budget */
	bool is_new;               /* the next figures cover a time before it began */
};

/* All 0: there are none. */
struct rate_requests {
	struct rate_request *request;
	size_t n, size;
	uint64_t n_ticks; /* overhead's n_ticks at the last decision */
};

/* `who`, any address, requests at least hz samples a second; 0: withdraws its request.
 * overhead_ppm: it gets fewer where mperf would cost a hart more millionths of its time; 0: no
 * limit. *uid: whose tasks, or -1 for the whole system; where a request ends, *uid becomes that of the
 * request. Beyond RATE_REQUESTS_MAX no rate is raised, and the answer says so. 0 or -ENOMEM. */
int rate_requests_set(
	struct rate_requests *q, const void *who, uid_t *uid, uint32_t hz, uint32_t overhead_ppm);
void rate_requests_clear(struct rate_requests *q);

/* The highest rate of all that they are given, at least hz. */
uint32_t rate_requests_highest(const struct rate_requests *q, uint32_t hz);
/* The highest rate requested for that user's tasks; 0: none is. */
uint32_t rate_requests_highest_for(const struct rate_requests *q, uid_t uid);

/* Decision of the budget of `who` about its rate; NULL: there is no budget. Borrowed until
 * rate_requests_set. */
const struct overhead_held *rate_requests_held(const struct rate_requests *q, const void *who);

/* Decide on those with a budget, if there are new figures. True if rate_requests_highest may have changed. */
bool rate_requests_hold(struct rate_requests *q, const struct overhead *h, uint64_t now_ns);
