/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The chain and the replay
 *
 * Children are sorted by their end, the last first, and each process has a cursor in its list, which only moves on. A
 * process is in one list, so it is entered once at most, whatever a forged file says, and nothing recurses.
 *
 * The replay takes all starts and ends in their order. Each process has a clock, the new time of its last event. The
 * start of a child comes after the work that its parent did since the event before. The end of a child moves the
 * parent's clock to the child's, if that is later: until then the parent waited. What a process does not do itself it
 * waits for, so a replay in which nothing is left out gives the old times.
 */
#include "daemon/query/processes/chain.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "proto/base/memory.h"

struct event {
	int64_t time_ns;
	uint32_t process, order; /* order: by depth */
	bool is_end;
};

struct clock {
	int64_t old_ns, new_ns;
};

struct chain {
	const struct chain_process *process;
	uint32_t n;
	uint32_t *child; /* those of a process side by side, the last to end first */
	uint32_t *first; /* by process, and one more: where its children begin */
	uint32_t *order; /* by process: parents before children; CHAIN_NONE: left out */
	uint32_t n_ordered;
	struct chain_part *part;
	uint32_t n_parts;
	struct event *event; /* two of each process that is not left out */
	struct clock *clock; /* by process, for the replay */
};

/* --- children --------------------------------------------------------------------------------- */

static bool is_child(const struct chain *c, uint32_t i)
{
	const struct chain_process *p = &c->process[i];
	return i != 0 && p->parent < c->n && p->parent != i && p->end_ns >= p->start_ns &&
	       p->start_ns >= c->process[p->parent].start_ns;
}

static int by_parent_and_end(const void *a, const void *b, void *userdata)
{
	const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct chain_process *process = userdata, *x = &process[i], *y = &process[k];
	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns > y->start_ns ? -1 : 1;
	return (i < k) - (i > k);
}

static void find_children(struct chain *c)
{
	uint32_t n = 0, at = 0;
	for (uint32_t i = 0; i < c->n; i++)
		if (is_child(c, i))
			c->child[n++] = i;
	qsort_r(c->child, n, sizeof(*c->child), by_parent_and_end, (void *)c->process);
	for (uint32_t i = 0; i <= c->n; i++) {
		while (at < n && c->process[c->child[at]].parent < i)
			at++;
		c->first[i] = at;
	}
}

/* Number the processes by their depth: `queue` has room for all. */
static void find_order(struct chain *c, uint32_t *queue)
{
	for (uint32_t i = 0; i < c->n; i++)
		c->order[i] = CHAIN_NONE;
	queue[c->n_ordered++] = 0;
	for (uint32_t at = 0; at < c->n_ordered; at++) {
		const uint32_t p = queue[at];
		c->order[p] = at;
		for (uint32_t k = c->first[p]; k < c->first[p + 1]; k++)
			queue[c->n_ordered++] = c->child[k];
	}
}

/* --- the chain -------------------------------------------------------------------------------- */

static void add_part(struct chain *c, uint32_t process, int64_t from_ns, int64_t to_ns)
{
	if (to_ns > from_ns)
		c->part[c->n_parts++] = (struct chain_part){process, from_ns, to_ns};
}

/* The child that ended last, at t or before; the cursor is behind it then. CHAIN_NONE: there is none. */
static uint32_t last_child(const struct chain *c, uint32_t *cursor, uint32_t p, int64_t t)
{
	while (cursor[p] < c->first[p + 1]) {
		const uint32_t child = c->child[cursor[p]++];
		if (c->process[child].end_ns <= t)
			return child;
	}
	return CHAIN_NONE;
}

/* cursor: by process, at its first child. */
static void find_parts(struct chain *c, uint32_t *cursor)
{
	uint32_t p = 0;
	int64_t t = c->process[0].end_ns;
	while (p != CHAIN_NONE) {
		const uint32_t child = last_child(c, cursor, p, t);
		if (child != CHAIN_NONE) {
			add_part(c, p, c->process[child].end_ns, t);
			t = c->process[child].end_ns;
			p = child;
			continue;
		}
		add_part(c, p, c->process[p].start_ns, t);
		t = c->process[p].start_ns;
		p = p == 0 ? CHAIN_NONE : c->process[p].parent;
	}
	for (uint32_t i = 0, k = c->n_parts; i + 1 < k; i++) {
		const struct chain_part last = c->part[--k];
		c->part[k] = c->part[i];
		c->part[i] = last;
	}
}

/* --- the replay ------------------------------------------------------------------------------- */

/* At one moment: ends, then starts, then ends of what has just started. */
static int rank_of(const struct chain *c, const struct event *e)
{
	if (!e->is_end)
		return 1;
	return c->process[e->process].start_ns < e->time_ns ? 0 : 2;
}

/* Parents start before their children, and end behind them. */
static int by_time(const void *a, const void *b, void *userdata)
{
	const struct event *x = a, *y = b;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	const int rank = rank_of(userdata, x), other = rank_of(userdata, y);
	if (rank != other)
		return rank - other;
	return x->is_end ? (x->order < y->order) - (x->order > y->order)
			 : (x->order > y->order) - (x->order < y->order);
}

static void find_events(struct chain *c)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct chain_process *p = &c->process[i];
		if (c->order[i] == CHAIN_NONE)
			continue;
		c->event[n++] = (struct event){p->start_ns, i, c->order[i], false};
		c->event[n++] = (struct event){p->end_ns, i, c->order[i], true};
	}
	qsort_r(c->event, n, sizeof(*c->event), by_time, c);
}

/* The process works by itself up to that moment. */
static void work_until(const struct chain *c, uint32_t p, int64_t time_ns, uint32_t without)
{
	struct clock *clock = &c->clock[p];
	if (c->process[p].program != without && time_ns > clock->old_ns)
		clock->new_ns += time_ns - clock->old_ns;
	if (time_ns > clock->old_ns)
		clock->old_ns = time_ns;
}

/* The process waits until its child has ended. */
static void wait_for(const struct chain *c, uint32_t p, uint32_t child, int64_t time_ns)
{
	struct clock *clock = &c->clock[p];
	if (time_ns > c->process[p].end_ns)
		return;
	if (c->clock[child].new_ns > clock->new_ns)
		clock->new_ns = c->clock[child].new_ns;
	if (time_ns > clock->old_ns)
		clock->old_ns = time_ns;
}

int64_t chain_without_ns(const struct chain *c, uint32_t program)
{
	const int64_t start_ns = c->process[0].start_ns;
	c->clock[0] = (struct clock){start_ns, start_ns};
	for (uint32_t i = 0; i < 2 * c->n_ordered; i++) {
		const struct event *e = &c->event[i];
		const uint32_t p = e->process, parent = p ? c->process[p].parent : CHAIN_NONE;
		if (e->is_end) {
			work_until(c, p, e->time_ns, program);
			if (p != 0)
				wait_for(c, parent, p, e->time_ns);
		} else if (p != 0) {
			work_until(c, parent, e->time_ns, program);
			c->clock[p] = (struct clock){e->time_ns, c->clock[parent].new_ns};
		}
	}
	return c->clock[0].new_ns - start_ns;
}

/* ---------------------------------------------------------------------------------------------- */

int chain_new(const struct chain_process *process, uint32_t n, struct chain **ret_chain)
{
	struct chain *c = calloc(1, sizeof(*c));
	_cleanup_(freep) uint32_t *spare = calloc((size_t)n + 1, sizeof(*spare));
	if (!c || !spare) {
		free(c);
		return -ENOMEM;
	}
	*c = (struct chain){.process = process, .n = n};
	c->child = calloc((size_t)n + 1, sizeof(*c->child));
	c->first = calloc((size_t)n + 1, sizeof(*c->first));
	c->order = calloc((size_t)n + 1, sizeof(*c->order));
	c->clock = calloc((size_t)n + 1, sizeof(*c->clock));
	/* a process has a stretch before each child on the chain, and one behind the last */
	c->part = calloc(2 * (size_t)n + 1, sizeof(*c->part));
	c->event = calloc(2 * (size_t)n + 1, sizeof(*c->event));
	if (!c->child || !c->first || !c->order || !c->clock || !c->part || !c->event) {
		chain_free(c);
		return -ENOMEM;
	}
	find_children(c);
	find_order(c, spare);
	for (uint32_t i = 0; i < n; i++)
		spare[i] = c->first[i];
	find_parts(c, spare);
	find_events(c);
	*ret_chain = c;
	return 0;
}

const struct chain_part *chain_parts(const struct chain *c, uint32_t *ret_n)
{
	*ret_n = c->n_parts;
	return c->part;
}

uint32_t chain_left_out(const struct chain *c)
{
	return c->n - c->n_ordered;
}

struct chain *chain_free(struct chain *c)
{
	if (!c)
		return NULL;
	free(c->child);
	free(c->first);
	free(c->order);
	free(c->clock);
	free(c->part);
	free(c->event);
	free(c);
	return NULL;
}
