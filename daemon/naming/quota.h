/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Quotas: the amount of a table, or of memory, that each user holds
 *
 * A user may hold at most as much as is left for the others, so one user alone can hold half, the next
 * one half of the remainder. A sixteenth is left for root, who may use all that is free. A user who is over
 * the quota gets no new entries; other users do not notice.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define QUOTA_ROOT_PART 16u /* 1 / this is root's alone */

struct quota_user;

/* A quota; all 0: no user holds anything. */
struct quota {
	uint64_t held;            /* by all */
	struct quota_user *users; /* uthash by uid: those who hold something */
	struct quota_user *last;  /* found last; NULL: none */
	/* held by (uid_t)-1, and by users for whose entry there was no memory */
	uint64_t unknown;
	uint64_t n_refused;
};

/* Take n more of `max` places or bytes for that user; (uid_t)-1: nobody, which counts as one user. False:
 * the user may have no more. O(1). */
bool quota_take(struct quota *q, uid_t uid, uint64_t max, uint64_t n);
/* Give back n that were taken for that user. */
void quota_give(struct quota *q, uid_t uid, uint64_t n);
/* The amount that the user holds. O(1). */
uint64_t quota_held(struct quota *q, uid_t uid);
/* Clear the quota: no user holds anything any more. */
void quota_clear(struct quota *q);
