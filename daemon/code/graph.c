/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Jump tables are not read: they are in other sections, and each compiler has its own forms. But the
 * cases of a computed jump follow it, before the next such jump. If most computed jumps are followed by
 * a single such block, the function is an interpreter whose operations each jump to the next: then each
 * jump leads to all of these blocks.
 */
#include "daemon/code/graph.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base/memory.h"

/* Scratch, by block. */
struct work {
	uint32_t *order;    /* blocks in reverse post-order; n_order of them are reached */
	uint32_t *position; /* in it, by block */
	uint32_t *stack, *mark;
	uint32_t *before, *first_before; /* predecessors: those of b start at first_before[b] */
	uint8_t *root;                   /* entered from outside */
	uint8_t *plain;                  /* reached from the entry, along edges that are known */
	uint32_t n_order;
};

/* --- blocks ----------------------------------------------------------------------------------- */

static uint32_t find_instruction(const struct instruction *i, uint32_t n, uint64_t address)
{
	uint32_t low = 0, high = n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (i[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && i[low].address == address ? low : GRAPH_NONE;
}

uint32_t graph_block_of(const struct graph *g, uint32_t n)
{
	uint32_t low = 0, high = g->n_code;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (g->block[middle].first <= n)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static bool ends_block(const struct instruction *i)
{
	return i->flow == FLOW_JUMP || i->flow == FLOW_BRANCH || i->flow == FLOW_RETURN;
}

static uint32_t add_block(struct graph *g, uint32_t first)
{
	g->block[g->n_blocks] = (struct block){.first = first,
		.next = {GRAPH_NONE, GRAPH_NONE},
		.dominator = GRAPH_NONE,
		.loop = GRAPH_NONE};
	return g->n_blocks++;
}

enum { LEADS = 1, TARGET = 2 };

/* Find the instructions that begin a block: LEADS, and TARGET where a jump of the function
 * leads. */
static void find_leads(struct graph *g, const struct instruction *i, uint32_t n, uint8_t *leads)
{
	bool behind = false; /* a jump, with nothing but padding since */
	leads[0] = TARGET;
	for (uint32_t k = 0; k < n; k++) {
		bool jumps = i[k].flow == FLOW_JUMP || i[k].flow == FLOW_BRANCH;
		uint32_t to =
			jumps && i[k].has_target ? find_instruction(i, n, i[k].target) : GRAPH_NONE;
		if (to != GRAPH_NONE)
			leads[to] |= TARGET;
		if (behind && !i[k].padding)
			leads[k] |= LEADS;
		if (ends_block(&i[k]))
			leads[k + 1] |= LEADS;
		behind = (behind && i[k].padding) || i[k].flow == FLOW_JUMP ||
			 i[k].flow == FLOW_RETURN;
		g->indirect |= i[k].flow == FLOW_JUMP && !i[k].has_target;
	}
}

static int cut_blocks(struct graph *g, const struct instruction *i, uint32_t n)
{
	_cleanup_(freep) uint8_t *leads = calloc(n + 1, 1);
	if (!leads)
		return -ENOMEM;
	find_leads(g, i, n, leads);
	uint32_t n_blocks = 0;
	for (uint32_t k = 0; k < n; k++)
		n_blocks += leads[k] ? 1 : 0;
	if (n_blocks > GRAPH_BLOCKS_MAX)
		return GRAPH_TOO_LARGE;
	g->block = calloc(2 * (size_t)n_blocks, sizeof(*g->block)); /* with empty ones */
	if (!g->block)
		return -ENOMEM;
	for (uint32_t k = 0; k < n; k++) {
		if (leads[k]) {
			bool behind = k > 0 &&
				      (i[k - 1].flow == FLOW_JUMP || i[k - 1].flow == FLOW_RETURN);
			uint32_t b = add_block(g, k);
			g->block[b].filler = behind && i[k].padding && !(leads[k] & TARGET);
		}
		g->block[g->n_blocks - 1].n++;
	}
	g->n_code = g->n_blocks;
	return 0;
}

static void link_blocks(struct graph *g, const struct instruction *i, uint32_t n)
{
	for (uint32_t b = 0; b < g->n_code; b++) {
		struct block *block = &g->block[b];
		const struct instruction *last = &i[block->first + block->n - 1];
		bool goes_on = last->flow != FLOW_JUMP && last->flow != FLOW_RETURN;
		if (goes_on && b + 1 < g->n_code && !block->filler)
			block->next[0] = b + 1;
		block->computed = last->flow == FLOW_JUMP && !last->has_target;
		uint32_t to = ends_block(last) && last->has_target
				      ? find_instruction(i, n, last->target)
				      : GRAPH_NONE;
		if (to != GRAPH_NONE)
			block->next[1] = graph_block_of(g, to);
	}
}

/* --- jumps whose targets are computed -------------------------------------------------------- */

/* Connect a jump to these n blocks through a balanced tree of empty blocks, so that none is
 * preferred. Returns the root. */
static uint32_t divide_ways(struct graph *g, const uint32_t *to, uint32_t n)
{
	if (n == 1)
		return to[0];
	uint32_t first = g->n_blocks;
	for (uint32_t k = 1; k < n; k++)
		add_block(g, g->block[g->n_code - 1].first + g->block[g->n_code - 1].n);
	for (uint32_t k = 1; k < n; k++)
		for (uint32_t side = 0; side < 2; side++) {
			uint32_t child = 2 * k + side;
			g->block[first + k - 1].next[side] =
				child < n ? first + child - 1 : to[child - n];
		}
	return first;
}

/* entered: scratch, per block of code; to: likewise. */
static void link_computed(struct graph *g, uint8_t *entered, uint32_t *to)
{
	uint32_t n_jumps = 0, n_to = 0, n = 0;
	entered[0] = 1;
	for (uint32_t b = 0; b < g->n_code; b++) {
		n_jumps += g->block[b].computed ? 1 : 0;
		for (int k = 0; k < 2; k++)
			if (g->block[b].next[k] != GRAPH_NONE)
				entered[g->block[b].next[k]] = 1;
	}
	for (uint32_t b = 0; b < g->n_code; b++) {
		entered[b] |= g->block[b].filler;
		n_to += entered[b] ? 0 : 1;
	}
	bool all_to_all = n_to < 2 * n_jumps;
	for (uint32_t b = 0; all_to_all && b < g->n_code; b++)
		if (!entered[b])
			to[n++] = b;
	uint32_t root = n > 0 ? divide_ways(g, to, n) : GRAPH_NONE;
	for (uint32_t b = 0; b < g->n_code; b++) {
		if (!g->block[b].computed)
			continue;
		n = 0;
		for (uint32_t at = b + 1; !all_to_all && at < g->n_code; at++) {
			if (!entered[at])
				to[n++] = at;
			if (g->block[at].computed)
				break;
		}
		g->block[b].next[1] = n > 0 ? divide_ways(g, to, n) : root;
	}
}

static int follow_computed(struct graph *g)
{
	_cleanup_(freep) uint8_t *entered = calloc(g->n_code, sizeof(*entered));
	_cleanup_(freep) uint32_t *to = calloc(g->n_code, sizeof(*to));
	if (!entered || !to)
		return -ENOMEM;
	link_computed(g, entered, to);
	return 0;
}

/* --- dominators ------------------------------------------------------------------------------- */

static int work_make(struct work *w, const struct graph *g)
{
	size_t n = (size_t)g->n_blocks + 1;
	*w = (struct work){
		.order = calloc(n, sizeof(uint32_t)),
		.position = calloc(n, sizeof(uint32_t)),
		.stack = calloc(n, sizeof(uint32_t)),
		.mark = calloc(n, sizeof(uint32_t)),
		.before = calloc(2 * n, sizeof(uint32_t)),
		.first_before = calloc(n + 1, sizeof(uint32_t)),
		.root = calloc(n, 1),
		.plain = calloc(n, 1),
	};
	return w->order && w->position && w->stack && w->mark && w->before && w->first_before &&
			       w->root && w->plain
		       ? 0
		       : -ENOMEM;
}

static void work_clear(struct work *w)
{
	free(w->order);
	free(w->position);
	free(w->stack);
	free(w->mark);
	free(w->before);
	free(w->first_before);
	free(w->root);
	free(w->plain);
}

static void list_before(struct work *w, const struct graph *g)
{
	uint32_t n = g->n_blocks;
	for (uint32_t b = 0; b < n; b++)
		for (int k = 0; k < 2; k++)
			if (g->block[b].next[k] != GRAPH_NONE)
				w->first_before[g->block[b].next[k] + 1]++;
	for (uint32_t b = 0; b < n; b++)
		w->first_before[b + 1] += w->first_before[b];
	for (uint32_t b = n; b-- > 0;)
		for (int k = 0; k < 2; k++) {
			uint32_t to = g->block[b].next[k];
			if (to != GRAPH_NONE)
				w->before[w->first_before[to] + w->mark[to]++] = b;
		}
}

/* Depth first from b, onto the end of order, which is in post-order then. */
static void visit(struct work *w, const struct graph *g, uint32_t b)
{
	uint32_t n = 0;
	w->stack[n++] = b;
	w->mark[b] = 1;
	while (n > 0) {
		uint32_t at = w->stack[n - 1], step = w->mark[at];
		if (step > 2) {
			w->order[w->n_order++] = at;
			n--;
			continue;
		}
		w->mark[at]++;
		uint32_t to = g->block[at].next[step - 1];
		if (to != GRAPH_NONE && w->mark[to] == 0) {
			w->mark[to] = 1;
			w->stack[n++] = to;
		}
	}
}

/* Roots are the entry, blocks without a predecessor, and the first of the remaining blocks. */
static void sort_blocks(struct work *w, const struct graph *g)
{
	uint32_t n = g->n_blocks;
	for (uint32_t b = 0; b < n; b++)
		w->mark[b] = 0;
	w->root[0] = 1;
	visit(w, g, 0);
	for (uint32_t k = 0; k < w->n_order; k++)
		w->plain[w->order[k]] = 1;
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t b = n; b-- > 0;) {
			uint32_t at = pass ? n - 1 - b : b;
			bool root = w->first_before[at + 1] == w->first_before[at];
			if (w->mark[at] == 0 && (pass || root)) {
				w->root[at] = 1;
				visit(w, g, at);
			}
		}
	for (uint32_t k = 0; k < w->n_order / 2; k++) {
		uint32_t other = w->order[w->n_order - 1 - k];
		w->order[w->n_order - 1 - k] = w->order[k];
		w->order[k] = other;
	}
	for (uint32_t k = 0; k < w->n_order; k++)
		w->position[w->order[k]] = k;
}

/* The nearest block that dominates both; GRAPH_NONE represents the point before all roots. */
static uint32_t meet(const struct graph *g, const struct work *w, uint32_t a, uint32_t b)
{
	while (a != b) {
		if (a == GRAPH_NONE || b == GRAPH_NONE)
			return GRAPH_NONE;
		if (w->position[a] > w->position[b])
			a = g->block[a].dominator;
		else
			b = g->block[b].dominator;
	}
	return a;
}

/* Edges from blocks that the entry does not reach (cases of a switch, exception handlers, padding)
 * do not count if they lead to a block that the entry reaches: control came to the unreached blocks
 * through an earlier block. */
static void find_dominators(struct graph *g, struct work *w)
{
	for (uint32_t b = 0; b < g->n_blocks; b++)
		w->mark[b] = w->root[b]; /* its dominator is known, at least provisionally */
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t k = 0; k < w->n_order; k++) {
			uint32_t b = w->order[k], dominator = GRAPH_NONE;
			bool any = false;
			for (uint32_t p = w->first_before[b]; p < w->first_before[b + 1]; p++) {
				uint32_t from = w->before[p];
				if (!w->mark[from] || w->root[b] || w->plain[from] < w->plain[b])
					continue;
				dominator = any ? meet(g, w, dominator, from) : from;
				any = true;
			}
			if (!any || (w->mark[b] && dominator == g->block[b].dominator))
				continue;
			w->mark[b] = 1;
			g->block[b].dominator = dominator;
			changed = true;
		}
	}
}

static bool dominates(const struct graph *g, const struct work *w, uint32_t a, uint32_t b)
{
	while (b != GRAPH_NONE && w->position[b] > w->position[a])
		b = g->block[b].dominator;
	return a == b;
}

/* --- loops ------------------------------------------------------------------------------------ */

static bool is_latch(const struct graph *g, const struct work *w, uint32_t from, uint32_t head)
{
	const uint32_t *next = g->block[from].next;
	return (next[0] == head || next[1] == head) && dominates(g, w, head, from);
}

/* Mark the blocks of the loop of that head with `mark`. Returns their number; 0: it heads no
 * loop. */
static uint32_t fill_loop(const struct graph *g, struct work *w, uint32_t head, uint32_t mark)
{
	uint32_t n = 0, found = 0;
	for (uint32_t p = w->first_before[head]; p < w->first_before[head + 1]; p++) {
		uint32_t from = w->before[p];
		if (w->mark[from] != mark && is_latch(g, w, from, head)) {
			w->mark[from] = mark;
			w->stack[n++] = from;
		}
	}
	if (n == 0)
		return 0;
	bool self = w->mark[head] == mark;
	w->mark[head] = mark;
	found = self ? 0 : 1;
	while (n > 0) {
		uint32_t b = w->stack[--n];
		found++;
		for (uint32_t p = w->first_before[b]; b != head && p < w->first_before[b + 1];
			p++) {
			uint32_t from = w->before[p];
			if (w->mark[from] != mark) {
				w->mark[from] = mark;
				w->stack[n++] = from;
			}
		}
	}
	return found;
}

/* Heads in reverse post-order: outer loops come first, and inner ones take their blocks over. */
static int find_loops(struct graph *g, struct work *w)
{
	g->loop = calloc((size_t)g->n_blocks + 1, sizeof(*g->loop));
	if (!g->loop)
		return -ENOMEM;
	for (uint32_t b = 0; b < g->n_blocks; b++)
		w->mark[b] = 0;
	for (uint32_t k = 0; k < w->n_order; k++) {
		uint32_t head = w->order[k], mark = g->n_loops + 1;
		uint32_t n = fill_loop(g, w, head, mark);
		if (n == 0)
			continue;
		uint32_t parent = g->block[head].loop;
		g->loop[g->n_loops] = (struct loop){.head = head,
			.parent = parent,
			.depth = parent == GRAPH_NONE ? 1 : g->loop[parent].depth + 1,
			.n_blocks = n};
		for (uint32_t b = 0; b < g->n_blocks; b++)
			if (w->mark[b] == mark)
				g->block[b].loop = g->n_loops;
		g->n_loops++;
	}
	return 0;
}

/* A block that dominates all edges back runs once in every round. */
static void find_each_round(struct graph *g, const struct work *w)
{
	for (uint32_t b = 0; b < g->n_blocks; b++) {
		struct block *block = &g->block[b];
		if (block->loop == GRAPH_NONE)
			continue;
		uint32_t head = g->loop[block->loop].head;
		block->each_round = true;
		for (uint32_t p = w->first_before[head]; p < w->first_before[head + 1]; p++)
			if (is_latch(g, w, w->before[p], head))
				block->each_round &= dominates(g, w, b, w->before[p]);
	}
}

int graph_make(struct graph *g, const struct instruction *i, uint32_t n)
{
	struct work w = {.order = NULL};
	*g = (struct graph){.block = NULL};
	int r = n > 0 ? cut_blocks(g, i, n) : 0;
	if (r == 0)
		link_blocks(g, i, n);
	if (r == 0 && g->indirect)
		r = follow_computed(g);
	if (r == 0)
		r = work_make(&w, g);
	if (r == 0) {
		list_before(&w, g);
		sort_blocks(&w, g);
		find_dominators(g, &w);
		r = find_loops(g, &w);
	}
	if (r == 0)
		find_each_round(g, &w);
	for (uint32_t b = 0; r == 0 && b < g->n_blocks; b++)
		g->block[b].order = w.position[b];
	work_clear(&w);
	if (r != 0)
		graph_clear(g);
	return r;
}

void graph_clear(struct graph *g)
{
	free(g->block);
	free(g->loop);
	*g = (struct graph){.block = NULL};
}
