/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The chain and the replay
 *
 * Children are sorted by their end, the last first, and each process has a cursor in its list, which only moves on. A
 * process is in one list, so it is entered once at most, whatever a forged file says, and nothing recurses.
 *
 * The replay gives each process a script of what it did: it worked for a time, started a child, waited until a number of
 * its children had ended, ended. Which children they are is left open: a make that runs two commands at a time starts
 * the next one when any of them ends. Processes run by their scripts in order of the new time; a replay in which nothing
 * is left out gives the old times.
 */
#include "daemon/query/processes/chain.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "proto/base/memory.h"

enum step_kind {
	STEP_AWAIT,       /* until one child more has ended */
	STEP_START,       /* a child */
	STEP_AWAIT_BRIEF, /* the same, of a child that ended as it started */
	STEP_END,
};

/* A step of a process, in the order of time, and at one moment of kinds. */
struct step {
	int64_t time_ns;
	uint32_t process, child;
	enum step_kind kind;
};

/* A process of the replay. */
struct player {
	uint32_t at;                /* its next step */
	int64_t old_ns;             /* of its last step */
	uint32_t n_ended, n_wanted; /* children that have ended, and that it has waited for */
	bool waits;
};

/* When a process takes its next step. */
struct turn {
	int64_t time_ns;
	uint32_t process;
};

struct chain {
	const struct chain_process *process;
	uint32_t n;
	uint32_t *child; /* those of a process side by side, the last to end first */
	uint32_t *first; /* by process, and one more: where its children begin */
	bool *reached;   /* by process: it descends from the first */
	uint32_t n_reached;
	struct chain_part *part;
	uint32_t n_parts;
	struct step *step; /* of each process, side by side */
	uint32_t *script;  /* by process, and one more: where its steps begin */
	struct player *player;
	struct turn *turn; /* a heap, the next one first */
	uint32_t n_turns;
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

/* queue has room for all. */
static void find_reached(struct chain *c, uint32_t *queue)
{
	queue[c->n_reached++] = 0;
	for (uint32_t at = 0; at < c->n_reached; at++) {
		const uint32_t p = queue[at];
		c->reached[p] = true;
		for (uint32_t k = c->first[p]; k < c->first[p + 1]; k++)
			queue[c->n_reached++] = c->child[k];
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

/* --- scripts ---------------------------------------------------------------------------------- */

static int by_process_and_time(const void *a, const void *b)
{
	const struct step *x = a, *y = b;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->child > y->child) - (x->child < y->child);
}

/* Does the parent wait for it, as far as times tell? */
static bool is_awaited(const struct chain *c, uint32_t child)
{
	return c->process[child].end_ns <= c->process[c->process[child].parent].end_ns;
}

static void find_scripts(struct chain *c)
{
	uint32_t n = 0, at = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct chain_process *p = &c->process[i];
		if (!c->reached[i])
			continue;
		c->step[n++] = (struct step){p->end_ns, i, i, STEP_END};
		if (i == 0)
			continue;
		c->step[n++] = (struct step){p->start_ns, p->parent, i, STEP_START};
		if (is_awaited(c, i))
			c->step[n++] = (struct step){p->end_ns, p->parent, i,
				p->end_ns > p->start_ns ? STEP_AWAIT : STEP_AWAIT_BRIEF};
	}
	qsort(c->step, n, sizeof(*c->step), by_process_and_time);
	for (uint32_t i = 0; i <= c->n; i++) {
		while (at < n && c->step[at].process < i)
			at++;
		c->script[i] = at;
	}
}

/* --- turns ------------------------------------------------------------------------------------ */

static bool comes_first(const struct turn *a, const struct turn *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->process < b->process;
}

/* A process has one turn at most. */
static void add_turn(struct chain *c, uint32_t process, int64_t time_ns)
{
	const struct turn added = {time_ns, process};
	uint32_t i = c->n_turns++;
	for (; i > 0 && comes_first(&added, &c->turn[(i - 1) / 2]); i = (i - 1) / 2)
		c->turn[i] = c->turn[(i - 1) / 2];
	c->turn[i] = added;
}

static struct turn take_turn(struct chain *c)
{
	const struct turn first = c->turn[0], last = c->turn[--c->n_turns];
	uint32_t i = 0;
	for (uint32_t next; (next = 2 * i + 1) < c->n_turns; i = next) {
		next += next + 1 < c->n_turns && comes_first(&c->turn[next + 1], &c->turn[next]);
		if (!comes_first(&c->turn[next], &last))
			break;
		c->turn[i] = c->turn[next];
	}
	c->turn[i] = last;
	return first;
}

/* --- the replay ------------------------------------------------------------------------------- */

/* Let a process that has done its last step work until its next one, or wait. */
static void go_on(struct chain *c, uint32_t p, int64_t now_ns, uint32_t without)
{
	struct player *player = &c->player[p];
	for (; player->at < c->script[p + 1]; player->at++) {
		const struct step *step = &c->step[player->at];
		const int64_t old_ns = player->old_ns;
		if (step->time_ns > old_ns)
			player->old_ns = step->time_ns;
		if (step->kind == STEP_START || step->kind == STEP_END) {
			const bool works = c->process[p].program != without;
			add_turn(c, p, now_ns + (works ? player->old_ns - old_ns : 0));
			return;
		}
		player->n_wanted++;
		if (player->n_ended < player->n_wanted) {
			player->waits = true;
			return;
		}
	}
}

static void begin(struct chain *c, uint32_t p, int64_t now_ns, uint32_t without)
{
	c->player[p] = (struct player){.at = c->script[p], .old_ns = c->process[p].start_ns};
	go_on(c, p, now_ns, without);
}

static void end(struct chain *c, uint32_t p, int64_t now_ns, uint32_t without)
{
	const uint32_t parent = p ? c->process[p].parent : CHAIN_NONE;
	if (parent == CHAIN_NONE || !is_awaited(c, p))
		return;
	struct player *player = &c->player[parent];
	player->n_ended++;
	if (!player->waits || player->n_ended < player->n_wanted)
		return;
	player->waits = false;
	player->at++;
	go_on(c, parent, now_ns, without);
}

int64_t chain_without_ns(struct chain *c, uint32_t program)
{
	const int64_t start_ns = c->process[0].start_ns;
	c->n_turns = 0;
	begin(c, 0, start_ns, program);
	while (c->n_turns > 0) {
		const struct turn now = take_turn(c);
		struct player *player = &c->player[now.process];
		const struct step *step = &c->step[player->at++];
		if (step->kind == STEP_END && now.process == 0)
			return now.time_ns - start_ns;
		if (step->kind == STEP_START)
			begin(c, step->child, now.time_ns, program);
		else
			end(c, now.process, now.time_ns, program);
		go_on(c, now.process, now.time_ns, program);
	}
	return c->process[0].end_ns - start_ns; /* not reached: all that is waited for ends */
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
	c->reached = calloc((size_t)n + 1, sizeof(*c->reached));
	c->script = calloc((size_t)n + 1, sizeof(*c->script));
	c->player = calloc((size_t)n + 1, sizeof(*c->player));
	c->turn = calloc((size_t)n + 1, sizeof(*c->turn));
	/* a process has a stretch before each child on the chain, and one behind the last */
	c->part = calloc(2 * (size_t)n + 1, sizeof(*c->part));
	c->step = calloc(3 * (size_t)n + 1, sizeof(*c->step));
	if (!c->child || !c->first || !c->reached || !c->script || !c->player || !c->turn ||
		!c->part || !c->step) {
		chain_free(c);
		return -ENOMEM;
	}
	find_children(c);
	find_reached(c, spare);
	for (uint32_t i = 0; i < n; i++)
		spare[i] = c->first[i];
	find_parts(c, spare);
	find_scripts(c);
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
	return c->n - c->n_reached;
}

struct chain *chain_free(struct chain *c)
{
	if (!c)
		return NULL;
	free(c->child);
	free(c->first);
	free(c->reached);
	free(c->script);
	free(c->player);
	free(c->turn);
	free(c->part);
	free(c->step);
	free(c);
	return NULL;
}
