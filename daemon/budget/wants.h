/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Wants: the rates that clients request beyond always-on sampling, each with or without a budget
 *
 * A want is for the whole system, or for the tasks of one user alone. */

#include "daemon/budget/overhead.h"

#define WANTS_MAX 4096 /* clients times their requests is less */

struct want {
	const void *who;
	uid_t uid;                 /* whose tasks; -1: the whole system */
	struct overhead_held held; /* the rate with its budget; ppm 0: no budget */
	bool is_new;               /* the next figures cover a time before it began */
};

/* All 0: there are no requests. */
struct wants {
	struct want *want;
	size_t n, size;
	uint64_t n_ticks; /* overhead's n_ticks at the last decision */
};

/* `who`, any address, requests at least hz samples a second; 0: withdraws its request.
 * overhead_ppm: fewer, if mperf would otherwise cost a hart more millionths of its time; 0: no
 * limit. Beyond WANTS_MAX requests, no rate is raised, and the answer says so. 0 or -ENOMEM. */
int wants_set(struct wants *w, const void *who, uint32_t hz, uint32_t overhead_ppm);
/* The same for the tasks of *uid; if a request is withdrawn, *uid becomes its user. */
int wants_set_for(struct wants *w, const void *who, uid_t *uid, uint32_t hz, uint32_t overhead_ppm);
void wants_clear(struct wants *w);

/* The highest rate allowed to any of them, at least hz. */
uint32_t wants_rate(const struct wants *w, uint32_t hz);
/* The highest rate requested for that user's tasks; 0: none is. */
uint32_t wants_rate_for(const struct wants *w, uid_t uid);

/* Decision of the budget of `who` about its rate; NULL: there is no budget. Borrowed until
 * wants_set. */
const struct overhead_held *wants_held(const struct wants *w, const void *who);

/* Decide about requests with a budget, if there are new figures. True if wants_rate may have
 * changed. */
bool wants_hold(struct wants *w, const struct overhead *h, uint64_t now_ns);
