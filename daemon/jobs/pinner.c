/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A pinner's life, what it is asked, and what is done in which order.
 */
#include "daemon/jobs/pinner.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "daemon/budget/loop_latency.h"
#include "daemon/jobs/pinner_private.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define PPM 1000000u
#define LOOK_NS 1000000000ull /* time between scans for jobs that have ended */
#define SLICE_PART 20         /* rules take at most this fraction of the time if many jobs begin */

const char *pin_state_says(enum pin_state state)
{
	static const char *const says[] = {
		[PIN_MADE] = "pinned", [PIN_KNOWN] = "pinned before", [PIN_RUNS] = "when it ends"};
	return says[state];
}

int pinner_new(const struct pinner_options *o, struct pinner **ret_pinner)
{
	struct pinner *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->o = *o;
	/* start above all ids of earlier pinners */
	p->last_id = clock_ns(CLOCK_MONOTONIC);
	p->request = calloc(PIN_REQUESTS_MAX, sizeof(*p->request));
	void *shared = mmap(NULL, sizeof(*p->shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	p->shared = shared == MAP_FAILED ? NULL : shared;
	if (!p->request || !p->shared) {
		pinner_free(p);
		return -ENOMEM;
	}
	*ret_pinner = p;
	return 0;
}

struct pinner *pinner_free(struct pinner *p)
{
	if (!p)
		return NULL;
	offload_free(p->child);
	while (p->n_requests > 0)
		pinner_remove(p, &p->request[p->n_requests - 1]);
	free(p->request);
	free(p->rules_text);
	if (p->shared)
		munmap(p->shared, sizeof(*p->shared));
	free(p);
	return NULL;
}

void pinner_allow(struct pinner *p, const struct conf *c)
{
	const uint64_t all = c->budget_bytes / PPM * c->pinned_ppm, free = p->o.store->free_bytes;
	p->limits = (struct pin_limits){
		.all_bytes = all,
		.user_bytes = all / PIN_USER_PART,
		.free_bytes = free > c->min_free_bytes ? free - c->min_free_bytes : 0,
		.min_free_bytes = c->min_free_bytes,
	};
	pinner_set_rules(p, c->pin_jobs);
}

/* --- asking ----------------------------------------------------------------------------------- */

static bool has_room(const struct pinner *p, uint32_t by)
{
	size_t n = 0, own = 0;
	for (size_t i = 0; i < p->n_requests; i++) {
		n += !p->request[i].nobody_waits;
		own += !p->request[i].nobody_waits && p->request[i].ask.by == by;
	}
	return n < PIN_ASKS_MAX && own < PIN_ASKS_USER_MAX && p->n_requests < PIN_REQUESTS_MAX;
}

bool pinner_has(const struct pinner *p, uint64_t id)
{
	return pinner_find(p, id);
}

const struct pin_report *pinner_report(const struct pinner *p, uint64_t id)
{
	const struct pin_request *q = pinner_find(p, id);
	return q ? q->report : NULL;
}

void pinner_forget(struct pinner *p, uint64_t id)
{
	struct pin_request *q = pinner_find(p, id);
	if (q && (q->report || id != p->child_id))
		pinner_remove(p, q);
	else if (q)
		q->nobody_waits = true;
}

uint64_t pinner_wants_flush(const struct pinner *p)
{
	const struct pin_request *q = p->child || p->taking.goes_on ? NULL : pinner_next(p);
	return q ? q->since_ns : 0;
}

/* Pin the one running job of the request when it ends; nothing else to do now. 0; PINNER_WAITS;
 * -ENOMEM. */
static int wait_for_one(struct pinner *p, const struct pin_ask *ask, const char *group,
	struct pin_report **ret_report)
{
	_cleanup_(freep) struct pin_report *report = calloc(1, sizeof(*report));
	int r = report ? pinner_await(p, ask, group, ask->only, NULL) : -ENOMEM;
	if (r != 0)
		return r;
	report->outcome = PIN_WELL;
	pinner_add_running(report, ask->only);
	*ret_report = TAKE_PTR(report);
	return 0;
}

int pinner_ask(struct pinner *p, const struct pin_ask *ask, uint64_t *ret_id)
{
	_cleanup_(freep) char *group = NULL;
	_cleanup_(freep) struct pin_report *report = NULL;
	struct label_fault fault;
	if (!has_room(p, ask->by))
		return PINNER_BUSY;
	int r = labels_write(ask->label, ask->n_labels, &group, &fault);
	if (r > 0)
		r = -EINVAL; /* the caller has parsed them before */
	if (r != 0)
		return r;
	struct pin_request *q = pinner_add(p, ask, group, 0, NULL);
	if (!q)
		return -ENOMEM;
	if (ask->only)
		r = wait_for_one(p, ask, group, &report);
	if (r != 0) {
		pinner_remove(p, q);
		return r;
	}
	q->report = TAKE_PTR(report);
	pinner_enter_queue(p, q);
	*ret_id = q->id;
	return 0;
}

/* --- forgetting ------------------------------------------------------------------------------- */

/* Step to the remaining request with the highest id. False: there is none. */
static bool forget_next(struct pinner *p, struct pinner_unpin *u)
{
	struct pin_request *next = NULL;
	for (size_t i = 0; i < p->n_requests; i++) {
		struct pin_request *q = &p->request[i];
		if ((u->at == 0 || q->id < u->at) && (!next || q->id > next->id))
			next = q;
	}
	if (!next)
		return false;
	u->at = next->id;
	if (next->labels && next->id != p->child_id &&
		pinner_unpin_wants(u, next->ask.by, next->labels)) {
		pinner_remove(p, next);
		u->n_removed++;
	}
	return true;
}

bool pinner_unpin(struct pinner *p, struct pinner_unpin *u, uint64_t until_ns)
{
	while (u->stage != UNPIN_DONE) {
		const bool more = u->stage == UNPIN_REQUESTS ? forget_next(p, u)
							     : pinner_forget_due(p, u, until_ns);
		if (!more) {
			u->stage++;
			u->at = 0;
		} else if (slice_is_over(until_ns))
			return false;
	}
	return true;
}

/* --- going on --------------------------------------------------------------------------------- */

/* Once a second. 0 or -ENOMEM. */
static int look(struct pinner *p, uint64_t now_ns)
{
	if (now_ns < p->next_look_ns)
		return 0;
	p->next_look_ns = now_ns + LOOK_NS;
	bool more = false;
	int r = pinner_look_at_rules(p, now_ns, &more);
	if (more)
		p->next_look_ns = now_ns + SLICE_NS * SLICE_PART;
	pinner_look_at_ended(p);
	return r;
}

int pinner_dispatch(struct pinner *p, uint64_t now_ns, bool written)
{
	if (p->child) {
		struct offload_end end;
		int r = offload_poll(p->child, &end);
		if (r != 0)
			return r < 0 ? r : 0;
		pinner_take_end(p, &end);
	}
	if (p->taking.goes_on)
		pinner_take_made(p);
	if (p->taking.goes_on)
		return 0;
	/* the request to which `written` refers; remember it before the scan, which only appends
	 * requests */
	struct pin_request *q = pinner_next(p);
	int r = look(p, now_ns);
	return r == 0 && q && written ? pinner_start(p, q) : r;
}

size_t pinner_fds(const struct pinner *p, struct pollfd *fds, size_t n)
{
	if (!p->child || n == 0)
		return 0;
	fds[0] = (struct pollfd){.fd = offload_fd(p->child), .events = POLLIN};
	return 1;
}

bool pinner_has_more(const struct pinner *p)
{
	return p->taking.goes_on;
}
