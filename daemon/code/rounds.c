/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Edges back to the head end a round, those out of the loop end the last one, of which there are few:
 * they are left out. What remains has no circle, so one pass in reverse post-order hands the times
 * on from the head. A branch divides them by the heat of what it leads to; where others lead there
 * too, by its part of that, which the pass before has found.
 */
#include "daemon/code/rounds.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/memory.h"

#define PASSES 8 /* from the second on, parts are known; the last change less than 0.1 % */

struct edge {
	uint32_t to;
	double times;
	bool back;
};

/* A block, or a loop inside. */
struct node {
	uint32_t block; /* of a loop inside, its head */
	bool is_loop;
	uint32_t first, n;  /* edges that leave it */
	double times, into; /* into: by edges, in the pass before */
	double back_into;
	uint32_t n_into;
};

struct rounds {
	const struct graph *g;
	struct node *node; /* in reverse post-order */
	struct edge *edge;
	uint32_t *node_of; /* by block; GRAPH_NONE: not in the loop */
	uint32_t *block;   /* own ones */
	uint32_t *place;   /* node of each of them */
	uint32_t n_nodes, n_edges, n_blocks;
	uint32_t head; /* node */
};

/* The node that a block of the loop belongs to: itself, or the head of the loop inside that it is
 * in. */
static uint32_t representative(const struct graph *g, uint32_t loop, uint32_t b)
{
	uint32_t at = g->block[b].loop, inner = GRAPH_NONE;
	while (at != GRAPH_NONE && at != loop) {
		inner = at;
		at = g->loop[at].parent;
	}
	if (at == GRAPH_NONE)
		return GRAPH_NONE;
	return inner == GRAPH_NONE ? b : g->loop[inner].head;
}

static int compare_nodes(const void *a, const void *b, void *userdata)
{
	const struct node *x = a, *y = b;
	const struct graph *g = userdata;
	uint32_t p = g->block[x->block].order, q = g->block[y->block].order;
	return (p > q) - (p < q);
}

static void make_nodes(struct rounds *r, uint32_t loop)
{
	const struct graph *g = r->g;
	for (uint32_t b = 0; b < g->n_blocks; b++) {
		uint32_t stands = representative(g, loop, b);
		if (stands == b)
			r->node[r->n_nodes++] =
				(struct node){.block = b, .is_loop = g->block[b].loop != loop};
	}
	qsort_r(r->node, r->n_nodes, sizeof(*r->node), compare_nodes, (void *)g);
	for (uint32_t b = 0; b < g->n_blocks; b++)
		r->node_of[b] = GRAPH_NONE;
	for (uint32_t i = 0; i < r->n_nodes; i++) {
		r->node_of[r->node[i].block] = i;
		if (!r->node[i].is_loop) {
			r->place[r->n_blocks] = i;
			r->block[r->n_blocks++] = r->node[i].block;
		}
	}
	for (uint32_t b = 0; b < g->n_blocks; b++) {
		uint32_t stands = representative(g, loop, b);
		if (stands != GRAPH_NONE)
			r->node_of[b] = r->node_of[stands];
	}
}

/* Edges from b to another node of the loop. */
static uint32_t edges_of(const struct rounds *r, uint32_t head, uint32_t b, struct edge *ret_edge)
{
	uint32_t n = 0, from = r->node_of[b];
	for (int k = 0; k < 2; k++) {
		uint32_t to = r->g->block[b].next[k];
		bool back = to == head;
		if (to == GRAPH_NONE || r->node_of[to] == GRAPH_NONE)
			continue;
		if (back || r->node_of[to] > from)
			ret_edge[n++] = (struct edge){.to = r->node_of[to], .back = back};
	}
	return n;
}

static void make_edges(struct rounds *r, uint32_t head)
{
	const struct graph *g = r->g;
	struct edge edge[2];
	for (uint32_t b = 0; b < g->n_blocks; b++)
		if (r->node_of[b] != GRAPH_NONE)
			r->node[r->node_of[b]].n += edges_of(r, head, b, edge);
	for (uint32_t i = 0; i < r->n_nodes; i++) {
		r->node[i].first = r->n_edges;
		r->n_edges += r->node[i].n;
		r->node[i].n = 0;
	}
	for (uint32_t b = 0; b < g->n_blocks; b++) {
		uint32_t i = r->node_of[b];
		uint32_t n = i == GRAPH_NONE ? 0 : edges_of(r, head, b, edge);
		for (uint32_t k = 0; k < n; k++) {
			r->edge[r->node[i].first + r->node[i].n++] = edge[k];
			r->node[edge[k].to].n_into += edge[k].back ? 0 : 1;
		}
	}
}

int rounds_make(struct rounds **ret_rounds, const struct graph *g, uint32_t loop,
	const uint32_t **ret_block, uint32_t *ret_n, bool *ret_branches)
{
	size_t n = (size_t)g->n_blocks + 1;
	struct rounds *r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->g = g;
	r->node = calloc(n, sizeof(*r->node));
	r->edge = calloc(2 * n, sizeof(*r->edge));
	r->node_of = calloc(n, sizeof(*r->node_of));
	r->block = calloc(n, sizeof(*r->block));
	r->place = calloc(n, sizeof(*r->place));
	if (!r->node || !r->edge || !r->node_of || !r->block || !r->place) {
		rounds_free(r);
		return -ENOMEM;
	}
	make_nodes(r, loop);
	r->head = r->node_of[g->loop[loop].head];
	make_edges(r, g->loop[loop].head);
	*ret_branches = false;
	for (uint32_t i = 0; i < r->n_blocks; i++)
		*ret_branches |= !g->block[r->block[i]].each_round;
	*ret_block = r->block;
	*ret_n = r->n_blocks;
	*ret_rounds = r;
	return 0;
}

/* How warm the way through this edge is; of a loop inside, whose samples do not say how often it is
 * entered, negative. */
static double heat_of(const struct rounds *r, const struct edge *e, const double *heat)
{
	const struct node *to = &r->node[e->to];
	if (to->is_loop)
		return -1;
	double into = e->back ? to->back_into : to->into;
	double part = into > 0                     ? e->times / into
		      : to->n_into > 0 && !e->back ? 1.0 / to->n_into
						   : 1;
	return heat[to->block] * part;
}

/* Divide a node's times among its edges. */
static void divide(struct rounds *r, struct node *from, const double *heat, double *next_into,
	double *back_into)
{
	double sum = 0;
	uint32_t n_loops = 0;
	for (uint32_t i = from->first; i < from->first + from->n; i++) {
		double h = heat_of(r, &r->edge[i], heat);
		sum += h > 0 ? h : 0;
		n_loops += h < 0 ? 1 : 0;
	}
	/* what the block has more than it hands to blocks goes to loops */
	double own = from->is_loop ? 0 : heat[from->block];
	double rest = own > sum ? own - sum : 0;
	double each = n_loops ? (rest > 0 ? rest : sum > 0 ? 0 : 1) / n_loops : 0;
	double all = sum + each * n_loops;
	for (uint32_t i = from->first; i < from->first + from->n; i++) {
		struct edge *e = &r->edge[i];
		double h = heat_of(r, e, heat);
		double share = all > 0 ? (h < 0 ? each : h) / all : 1.0 / from->n;
		e->times = from->times * share;
		if (e->back)
			*back_into += e->times;
		else
			next_into[e->to] += e->times;
	}
}

/* Blocks that no edge of the loop leads to (cases of a switch) run as often as they are warm, by the
 * head's measure. */
static void pass(struct rounds *r, const double *heat, double *into)
{
	double back_into = 0, head = heat[r->node[r->head].block];
	for (uint32_t i = 0; i < r->n_nodes; i++)
		into[i] = 0;
	for (uint32_t i = 0; i < r->n_nodes; i++) {
		struct node *node = &r->node[i];
		node->times = into[i];
		if (i == r->head)
			node->times = 1;
		else if (node->n_into == 0 && !node->is_loop && head > 0)
			node->times = heat[node->block] / head;
	}
	for (uint32_t i = 0; i < r->n_nodes; i++) {
		struct node *node = &r->node[i];
		if (i != r->head && node->n_into > 0)
			node->times = into[i];
		divide(r, node, heat, into, &back_into);
	}
	for (uint32_t i = 0; i < r->n_nodes; i++)
		r->node[i].into = into[i];
	r->node[r->head].back_into = back_into;
}

void rounds_find(struct rounds *r, const double *heat, double *ret_times)
{
	_cleanup_(freep) double *into = calloc((size_t)r->n_nodes + 1, sizeof(*into));
	for (uint32_t i = 0; i < r->n_nodes; i++)
		r->node[i].into = r->node[i].back_into = 0;
	for (int k = 0; k < PASSES && into; k++)
		pass(r, heat, into);
	for (uint32_t i = 0; i < r->n_blocks; i++)
		ret_times[i] = r->node[r->place[i]].times;
}

struct rounds *rounds_free(struct rounds *r)
{
	if (r) {
		free(r->node);
		free(r->edge);
		free(r->node_of);
		free(r->block);
		free(r->place);
		free(r);
	}
	return NULL;
}
