/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/service/pinner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/service/pinner_private.h"
#include "proto/clock.h"

#define LOOK_NS 1000000000ull /* between looks for jobs that have ended */

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
	const struct turn *t = p->child ? NULL : pinner_next_turn(p);
	return t ? t->since_ns : 0;
}

/* The one running job that is meant is pinned when it ends, and there is no more to do now. */
static int wait_for_one(struct pinner *p, struct turn *t, const struct label_set *set)
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

size_t pinner_unpin(struct pinner *p, uint32_t by, bool all, const struct label *label, size_t n)
{
	size_t n_removed = 0;
	for (size_t i = p->n_waits; i-- > 0;)
		if ((all || p->wait[i].ask.by == by) &&
			store_pin_matches(p->wait[i].labels, label, n)) {
			pinner_remove_wait(p, i);
			n_removed++;
		}
	/* jobs that have ended, and whose turn has not come */
	for (size_t i = p->n_turns; i-- > 0;) {
		const struct turn *t = &p->turn[i];
		if (t->exact && t->id != p->child_id && (all || t->ask.by == by) &&
			store_pin_matches(t->exact, label, n)) {
			pinner_remove_turn(p, i);
			n_removed++;
		}
	}
	return n_removed + pinner_forget_due(p, by, all, label, n);
}

/* --- going on --------------------------------------------------------------------------------- */

/* Once a second. 0 or -ENOMEM. */
static int look(struct pinner *p, uint64_t now_ns)
{
	if (now_ns < p->next_look_ns)
		return 0;
	p->next_look_ns = now_ns + LOOK_NS;
	int r = pinner_look_at_rules(p, now_ns);
	pinner_look_at_waits(p, now_ns);
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
