/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/jobs/pinner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/budget/turns.h"
#include "daemon/jobs/pinner_private.h"
#include "proto/base/clock.h"

#define LOOK_NS 1000000000ull /* between looks for jobs that have ended */
#define SLICE_PART 20         /* one part in this of all time for rules, where many jobs begin */

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
	p->last_id = clock_ns(CLOCK_MONOTONIC); /* no id of one that was before */
	p->turn = calloc(PIN_ASKS_MAX + PIN_WAITS_MAX, sizeof(*p->turn));
	p->wait = calloc(PIN_WAITS_MAX, sizeof(*p->wait));
	void *shared = mmap(NULL, sizeof(*p->shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	p->shared = shared == MAP_FAILED ? NULL : shared;
	if (!p->turn || !p->wait || !p->shared) {
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
	while (p->n_turns > 0)
		pinner_remove_turn(p, p->n_turns - 1);
	while (p->n_waits > 0)
		pinner_remove_wait(p, p->n_waits - 1);
	free(p->turn);
	free(p->wait);
	free(p->rules_text);
	free(p->met);
	if (p->shared)
		munmap(p->shared, sizeof(*p->shared));
	free(p);
	return NULL;
}

void pinner_allow(struct pinner *p, const struct pin_limits *limits)
{
	p->limits = *limits;
}

/* --- asking ----------------------------------------------------------------------------------- */

static bool has_room(const struct pinner *p, uint32_t by)
{
	size_t n = 0, own = 0;
	for (size_t i = 0; i < p->n_turns; i++) {
		n += !p->turn[i].nobody_waits;
		own += !p->turn[i].nobody_waits && p->turn[i].ask.by == by;
	}
	return n < PIN_ASKS_MAX && own < PIN_ASKS_USER_MAX &&
	       p->n_turns < PIN_ASKS_MAX + PIN_WAITS_MAX;
}

bool pinner_has(const struct pinner *p, uint64_t id)
{
	return pinner_turn_of(p, id) != NULL;
}

const struct pin_report *pinner_report(const struct pinner *p, uint64_t id)
{
	const struct turn *t = pinner_turn_of(p, id);
	return t ? t->report : NULL;
}

void pinner_forget(struct pinner *p, uint64_t id)
{
	struct turn *t = pinner_turn_of(p, id);
	if (t && (t->report || id != p->child_id))
		pinner_remove_turn(p, (size_t)(t - p->turn));
	else if (t)
		t->nobody_waits = true;
}

uint64_t pinner_wants_flush(const struct pinner *p)
{
	const struct turn *t = p->child || p->taking.goes_on ? NULL : pinner_next_turn(p);
	return t ? t->since_ns : 0;
}

/* The one running job that is meant is pinned when it ends, and there is no more to do now. */
static int wait_for_one(struct pinner *p, struct turn *t, struct label_set *set)
{
	t->report = calloc(1, sizeof(*t->report));
	int r = t->report ? pinner_add_wait(p, t, set) : -ENOMEM;
	if (r == 0) {
		t->report->outcome = PIN_WELL;
		pinner_add_running(t->report, set);
	}
	return r;
}

int pinner_ask(struct pinner *p, const struct pin_ask *ask, uint64_t *ret_id)
{
	struct label_fault fault;
	if (!has_room(p, ask->by))
		return PINNER_BUSY;
	struct turn t = {.ask = *ask, .id = ++p->last_id, .since_ns = clock_ns(CLOCK_MONOTONIC)};
	t.ask.only = NULL; /* it may be freed at any time */
	int r = labels_write(ask->label, ask->n_labels, &t.group, &fault);
	if (r > 0)
		r = -EINVAL; /* the caller has parsed them */
	if (r == 0 && ask->only)
		r = wait_for_one(p, &t, ask->only);
	if (r != 0) {
		pinner_clear_turn(&t);
		return r;
	}
	pinner_add_turn(p, &t);
	*ret_id = t.id;
	return 0;
}

/* --- forgetting ------------------------------------------------------------------------------- */

static bool is_left(const struct pinner_unpin *u, uint64_t id)
{
	return u->at == 0 || id < u->at;
}

/* The next wait is the one with the highest id of those that are left. False: none is. */
static bool forget_wait(struct pinner *p, struct pinner_unpin *u)
{
	size_t at = p->n_waits;
	for (size_t i = 0; i < p->n_waits; i++)
		if (is_left(u, p->wait[i].id) &&
			(at == p->n_waits || p->wait[i].id > p->wait[at].id))
			at = i;
	if (at == p->n_waits)
		return false;
	u->at = p->wait[at].id;
	if (pinner_unpin_wants(u, p->wait[at].ask.by, p->wait[at].set->labels)) {
		pinner_remove_wait(p, at);
		u->n_removed++;
	}
	return true;
}

/* The same of jobs that have ended, and whose turn has not come. */
static bool forget_turn(struct pinner *p, struct pinner_unpin *u)
{
	size_t at = p->n_turns;
	for (size_t i = 0; i < p->n_turns; i++)
		if (is_left(u, p->turn[i].id) &&
			(at == p->n_turns || p->turn[i].id > p->turn[at].id))
			at = i;
	if (at == p->n_turns)
		return false;
	const struct turn *t = &p->turn[at];
	u->at = t->id;
	if (t->exact && t->id != p->child_id && pinner_unpin_wants(u, t->ask.by, t->exact)) {
		pinner_remove_turn(p, at);
		u->n_removed++;
	}
	return true;
}

bool pinner_unpin(struct pinner *p, struct pinner_unpin *u, uint64_t until_ns)
{
	while (u->stage != UNPIN_DONE) {
		const bool more = u->stage == UNPIN_WAITS   ? forget_wait(p, u)
				  : u->stage == UNPIN_TURNS ? forget_turn(p, u)
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
	pinner_look_at_waits(p);
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
	int r = look(p, now_ns);
	struct turn *t = pinner_next_turn(p);
	return r == 0 && t && written ? pinner_start(p, t) : r;
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
