/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A question about roofs that may go unanswered
 *
 * Roofs and peaks are optional: it is no error if the daemon knows none, is older, or does not
 * answer in time.
 */

#include "client/show/reply.h"
#include "client/wire/ask.h"

/* Ask, and pass answers to `answer`. 0; ASK_FAILED: it has none; -errno, -ETIMEDOUT among them. */
int roofs_question(struct link *l, Mperf__RoofsRequest *roofs,
	int (*answer)(void *userdata, const Mperf__Answer *a), void *userdata);
/* The same, and keep its rows in *reply, which the caller clears. */
int roofs_rows(struct link *l, Mperf__RoofsRequest *roofs, struct reply *reply);
