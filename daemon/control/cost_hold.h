/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The budget of a client's own sampling (--overhead)
 *
 * If the client has its own walk, the same governor as for always-on sampling measures its cost and
 * reduces its work. On the service's walk, which others use too, only the client's higher rate can
 * be given up; the service does that (service_want_rate).
 */

#include "daemon/budget/overhead.h"
#include "daemon/control/request.h"

struct service;

struct cost_hold {
	struct conf *conf;         /* its budget and rate are those of `overhead` */
	struct overhead *overhead; /* NULL: no budget, or the service's walk */
	/* the work given up, as a sentence; "": none */
	char says[256];
};

/* Can such sampling be held to a budget? Not with events that the client chose, nor task by task:
 * their costs are not measured. 0; positive after a refusal; -errno. */
int cost_hold_check(struct request *q, uint32_t overhead_ppm, bool events, bool per_task);

/* Hold a walk of the client's own. Nothing is done if overhead_ppm is 0. 0 or -ENOMEM. */
int cost_hold_begin(struct cost_hold *h, uint32_t hz, uint32_t overhead_ppm);
/* After the walk's dispatch. 0; COST_HOLD_STEPPED: h->says has changed; -errno. */
enum { COST_HOLD_STEPPED = 1 };
int cost_hold_dispatch(struct cost_hold *h, struct walk *w, uint64_t now_ns);
/* Deadline, as overhead_deadline_ns. */
uint64_t cost_hold_deadline_ns(const struct cost_hold *h, uint64_t next_ns);
/* The same for client `who` of the service's walk. Has h->says changed? */
bool cost_hold_follow(struct cost_hold *h, const struct service *s, const void *who);
/* Count the cost of a walk that is about to stop. */
void cost_hold_stop(struct cost_hold *h, struct walk *w, uint64_t now_ns);
void cost_hold_end(struct cost_hold *h);
