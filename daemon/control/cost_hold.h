/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The budget of a client's own sampling (--overhead)
 *
 * Of a walk of its own all is measured and given up as for always-on sampling, by the same governor.
 * On the service's walk, which others use too, only the client's higher rate can be given up; that
 * is the service's (service_want_rate).
 */

#include "daemon/budget/overhead.h"
#include "daemon/control/request.h"

struct service;

struct cost_hold {
	struct conf *conf;         /* its budget and rate are those of `overhead` */
	struct overhead *overhead; /* NULL: no budget, or the service's walk */
	/* what is given up, as a sentence; "": nothing was */
	char says[256];
};

/* Can such sampling be held to a budget? Not by events that the client chose, nor task by task: their
 * costs are not measured. 0; positive if not, and the peer has the reason; -errno. */
int cost_hold_check(struct request *q, uint32_t overhead_ppm, bool events, bool per_task);

/* Hold a walk of the client's own. Nothing is done if overhead_ppm is 0. 0 or -ENOMEM. */
int cost_hold_begin(struct cost_hold *h, uint32_t hz, uint32_t overhead_ppm);
/* After the walk's dispatch. 0; COST_HOLD_STEPPED: h->says has changed; -errno. */
enum { COST_HOLD_STEPPED = 1 };
int cost_hold_dispatch(struct cost_hold *h, struct walk *w, uint64_t now_ns);
/* Deadline, as overhead_deadline_ns. */
uint64_t cost_hold_deadline_ns(const struct cost_hold *h, uint64_t next_ns);
/* The same for `who` on the service's walk: has h->says changed? */
bool cost_hold_follow(struct cost_hold *h, const struct service *s, const void *who);
/* The walk is about to stop: count what it cost. */
void cost_hold_stop(struct cost_hold *h, struct walk *w, uint64_t now_ns);
void cost_hold_end(struct cost_hold *h);
