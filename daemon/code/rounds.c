/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The loop becomes an acyclic graph. Edges back to the head end a round, and lead nowhere. A nested loop is one node,
 * which is left by any of its exits; samples within it do not show how often it was entered. The outer loop is left as
 * often as it is entered: that share of all rounds is given, and the exits share it equally.
 *
 * The chances of a node's edges are exp(choice) over their sum; a block that nothing leads to runs
 * exp(choice) times. From the head, which runs once, one pass gives the times of all nodes. We seek the
 * choices that minimise
 *
 *      sum over blocks   weight * (log times + scale - log rate)²  +  sum over choices  (choice - believed)² / BELIEF²
 *
 * with the best scale for these times. A pass backwards gives its slope by each choice, which steps of
 * Adam follow. Source: Kingma, Ba, "Adam: A Method for Stochastic Optimization", 2014.
 */
#include "daemon/code/rounds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/code/chance.h"
#include "proto/base/memory.h"

/* Standard deviation of a choice before any sample: in half of all cases, one way of two has 98 % or more. */
#define BELIEF 4.0
#define STEP 0.15         /* of a choice; smaller towards the end of a fit */
#define LEAST_TIMES 1e-12 /* in a round: log of it is finite */

struct choice {
	double value, believed, mean, square; /* mean, square: of past slopes */
};

struct edge {
	uint32_t to; /* node; GRAPH_NONE: it ends the round */
	struct choice choice;
	double part;
};

/* A block, or an inner loop. */
struct node {
	uint32_t place;    /* in block[]; GRAPH_NONE: it is a loop inside */
	uint32_t first, n; /* edges that leave it */
	uint32_t n_into;
	bool exits;           /* it also leads out of the loop */
	struct choice choice; /* times of a node that no edge leads to */
	double times, slope;  /* slope: by the logarithm of times */
};

struct rounds {
	const struct graph *g;
	struct node *node;
	struct edge *edge;
	uint32_t *order;   /* nodes, each after its predecessors */
	uint32_t *node_of; /* by block; GRAPH_NONE: not in the loop */
	uint32_t *block;   /* own ones */
	uint32_t n_nodes, n_edges, n_blocks;
	uint32_t head, n_exits;
	double leaving;   /* share of rounds that leave by each exit */
	uint64_t n_steps; /* of the fit */
};

/* --- nodes and edges -------------------------------------------------------------------------- */

/* The block that identifies b's node: b itself, or the head of the inner loop around it. */
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

static void make_nodes(struct rounds *r, uint32_t loop)
{
	const struct graph *g = r->g;
	for (uint32_t b = 0; b < g->n_blocks; b++) {
		r->node_of[b] = GRAPH_NONE;
		if (representative(g, loop, b) != b)
			continue;
		bool own = g->block[b].loop == loop;
		r->node_of[b] = r->n_nodes;
		r->node[r->n_nodes++] = (struct node){.place = own ? r->n_blocks : GRAPH_NONE};
		if (own)
			r->block[r->n_blocks++] = b;
	}
	for (uint32_t b = 0; b < g->n_blocks; b++) {
		uint32_t stands = representative(g, loop, b);
		if (stands != GRAPH_NONE)
			r->node_of[b] = r->node_of[stands];
	}
}

static void add_edge(struct rounds *r, uint32_t to)
{
	r->edge[r->n_edges++] = (struct edge){.to = to};
	if (to != GRAPH_NONE)
		r->node[to].n_into++;
}

/* Edges of a node to others of the loop. A nested loop has the edges of all its blocks. */
static void make_edges(struct rounds *r, uint32_t head, uint32_t *first_of, uint32_t *next_of)
{
	const struct graph *g = r->g;
	for (uint32_t i = 0; i < r->n_nodes; i++)
		first_of[i] = GRAPH_NONE;
	for (uint32_t b = g->n_blocks; b-- > 0;)
		if (r->node_of[b] != GRAPH_NONE) {
			next_of[b] = first_of[r->node_of[b]];
			first_of[r->node_of[b]] = b;
		}
	for (uint32_t i = 0; i < r->n_nodes; i++) {
		r->node[i].first = r->n_edges;
		for (uint32_t b = first_of[i]; b != GRAPH_NONE; b = next_of[b])
			for (int k = 0; k < 2; k++) {
				uint32_t to = g->block[b].next[k];
				if (to == head)
					add_edge(r, GRAPH_NONE);
				else if (to != GRAPH_NONE && r->node_of[to] == GRAPH_NONE)
					r->node[i].exits = true;
				else if (to != GRAPH_NONE && r->node_of[to] != i)
					add_edge(r, r->node_of[to]);
			}
		r->node[i].n = r->n_edges - r->node[i].first;
		r->n_exits += r->node[i].exits ? 1 : 0;
	}
}

/* Sort nodes so that each comes after its predecessors. Returns the number of sorted nodes: not all
 * if there is a cycle. waits: scratch, per node. */
static uint32_t sort_nodes(struct rounds *r, uint32_t *waits)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < r->n_nodes; i++) {
		waits[i] = r->node[i].n_into;
		if (waits[i] == 0)
			r->order[n++] = i;
	}
	for (uint32_t k = 0; k < n; k++) {
		const struct node *from = &r->node[r->order[k]];
		for (uint32_t i = from->first; i < from->first + from->n; i++) {
			uint32_t to = r->edge[i].to;
			if (to != GRAPH_NONE && --waits[to] == 0)
				r->order[n++] = to;
		}
	}
	return n;
}

/* Cut the cycles that are left (of a loop with two entries): drop edges to a block at a lower address. */
static void cut_circles(struct rounds *r)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < r->n_nodes; i++) {
		uint32_t first = r->node[i].first, end = first + r->node[i].n;
		r->node[i].first = n;
		for (uint32_t k = first; k < end; k++) {
			uint32_t to = r->edge[k].to;
			if (to == GRAPH_NONE || to > i)
				r->edge[n++] = r->edge[k];
			else
				r->node[to].n_into--;
		}
		r->node[i].n = n - r->node[i].first;
	}
	r->n_edges = n;
}

static int make_graph(struct rounds *r, uint32_t loop)
{
	uint32_t head = r->g->loop[loop].head, n = r->g->n_blocks + 2;
	_cleanup_(freep) uint32_t *first_of = calloc(n, sizeof(*first_of));
	_cleanup_(freep) uint32_t *next_of = calloc(n, sizeof(*next_of));
	if (!first_of || !next_of)
		return -ENOMEM;
	make_nodes(r, loop);
	r->head = r->node_of[head];
	make_edges(r, head, first_of, next_of);
	if (sort_nodes(r, first_of) < r->n_nodes) {
		cut_circles(r);
		sort_nodes(r, first_of);
	}
	return 0;
}

/* To more of the loop, in the same round. */
static bool leads_on(const struct rounds *r, const struct node *node)
{
	for (uint32_t i = node->first; i < node->first + node->n; i++)
		if (r->edge[i].to != GRAPH_NONE)
			return true;
	return false;
}

int rounds_make(struct rounds **ret_rounds, const struct graph *g, uint32_t loop,
	const uint32_t **ret_block, uint32_t *ret_n, bool *ret_branches)
{
	size_t n = (size_t)g->n_blocks + 2;
	struct rounds *r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->g = g;
	r->node = calloc(n, sizeof(*r->node));
	r->edge = calloc(2 * n, sizeof(*r->edge));
	r->node_of = calloc(n, sizeof(*r->node_of));
	r->block = calloc(n, sizeof(*r->block));
	r->order = calloc(n, sizeof(*r->order));
	if (!r->node || !r->edge || !r->node_of || !r->block || !r->order ||
		make_graph(r, loop) < 0) {
		rounds_free(r);
		return -ENOMEM;
	}
	*ret_branches = false;
	for (uint32_t i = 0; i < r->n_blocks; i++)
		*ret_branches |= !g->block[r->block[i]].each_round;
	for (uint32_t i = 0; i < r->n_nodes; i++)
		*ret_branches |= r->node[i].exits && leads_on(r, &r->node[i]);
	*ret_block = r->block;
	*ret_n = r->n_blocks;
	*ret_rounds = r;
	return 0;
}

void rounds_leave(struct rounds *r, double part)
{
	r->leaving = r->n_exits > 0 ? part / r->n_exits : 0;
}

uint32_t rounds_nodes(const struct rounds *r)
{
	return r->n_nodes;
}

/* --- the fit ---------------------------------------------------------------------------------- */

static bool is_root(const struct rounds *r, uint32_t node)
{
	return r->node[node].n_into == 0 && node != r->head;
}

/* Divide a node's times among its edges. */
static void hand_on(struct rounds *r, const struct node *from)
{
	double sum = 0, most = -INFINITY;
	double times = fmax(from->times - (from->exits ? r->leaving : 0), LEAST_TIMES);
	struct edge *edge = &r->edge[from->first];
	for (uint32_t i = 0; i < from->n; i++)
		most = fmax(most, edge[i].choice.value);
	for (uint32_t i = 0; i < from->n; i++)
		sum += edge[i].part = exp(edge[i].choice.value - most);
	for (uint32_t i = 0; i < from->n; i++) {
		edge[i].part /= sum;
		if (edge[i].to != GRAPH_NONE)
			r->node[edge[i].to].times += times * edge[i].part;
	}
}

static void forward(struct rounds *r)
{
	for (uint32_t i = 0; i < r->n_nodes; i++)
		r->node[i].times = 0;
	for (uint32_t k = 0; k < r->n_nodes; k++) {
		struct node *node = &r->node[r->order[k]];
		if (r->order[k] == r->head)
			node->times = 1;
		else if (is_root(r, r->order[k]))
			node->times = exp(node->choice.value);
		node->times = fmax(node->times, LEAST_TIMES);
		hand_on(r, node);
	}
}

/* The weighted mean of log rate - log times. */
static double scale_of(const struct rounds *r, const struct heat *heat)
{
	double sum = 0, weight = 0;
	for (uint32_t i = 0; i < r->n_nodes; i++) {
		const struct node *node = &r->node[i];
		if (node->place == GRAPH_NONE)
			continue;
		const struct heat *h = &heat[node->place];
		sum += h->weight * (h->log_rate - log(node->times));
		weight += h->weight;
	}
	return weight > 0 ? sum / weight : 0;
}

/* Pace of one step of Adam: its size, and the corrections of its two means for their start at 0. */
struct pace {
	double size, mean, square;
};

static void step(struct choice *c, double slope, const struct pace *pace)
{
	slope += (c->value - c->believed) / (BELIEF * BELIEF);
	c->mean = 0.9 * c->mean + 0.1 * slope;
	c->square = 0.99 * c->square + 0.01 * slope * slope;
	c->value -= pace->size * pace->mean * c->mean / (sqrt(pace->square * c->square) + 1e-8);
	c->value = fmin(fmax(c->value, -20), 20); /* practically never, and always */
}

static void backward(struct rounds *r, const struct heat *heat, double scale, double size)
{
	double n = (double)++r->n_steps;
	const struct pace pace = {size, 1 / (1 - pow(0.9, n)), 1 / (1 - pow(0.99, n))};
	for (uint32_t k = r->n_nodes; k-- > 0;) {
		struct node *node = &r->node[r->order[k]];
		double behind = 0; /* slope from the nodes that it leads to */
		node->slope = 0;
		if (node->place != GRAPH_NONE) {
			const struct heat *h = &heat[node->place];
			node->slope = h->weight * (log(node->times) + scale - h->log_rate);
		}
		struct edge *edge = &r->edge[node->first];
		for (uint32_t i = 0; i < node->n; i++)
			if (edge[i].to != GRAPH_NONE) {
				const struct node *to = &r->node[edge[i].to];
				behind += edge[i].part * to->slope / to->times;
			}
		for (uint32_t i = 0; i < node->n && node->n > 1; i++) {
			double into = edge[i].to == GRAPH_NONE ? 0
							       : r->node[edge[i].to].slope /
									 r->node[edge[i].to].times;
			step(&edge[i].choice, node->times * edge[i].part * (into - behind), &pace);
		}
		node->slope += node->times * behind;
		if (is_root(r, r->order[k]))
			step(&node->choice, node->slope, &pace);
	}
}

void rounds_doubt(struct rounds *r, uint64_t *state)
{
	for (uint32_t i = 0; i < r->n_edges; i++)
		r->edge[i].choice.believed = BELIEF * chance_normal(state);
	for (uint32_t i = 0; i < r->n_nodes; i++)
		r->node[i].choice.believed = BELIEF * chance_normal(state);
}

void rounds_fit(struct rounds *r, const struct heat *heat, uint32_t steps, double *ret_times)
{
	r->n_steps = 0;
	for (uint32_t i = 0; i < r->n_edges; i++)
		r->edge[i].choice.mean = r->edge[i].choice.square = 0;
	for (uint32_t i = 0; i < r->n_nodes; i++)
		r->node[i].choice.mean = r->node[i].choice.square = 0;
	forward(r);
	for (uint32_t k = 0; k < steps; k++) {
		double size = STEP * (1 - 0.95 * k / steps);
		backward(r, heat, scale_of(r, heat), size);
		forward(r);
	}
	for (uint32_t i = 0; i < r->n_nodes; i++)
		if (r->node[i].place != GRAPH_NONE)
			ret_times[r->node[i].place] = r->node[i].times;
}

struct rounds *rounds_free(struct rounds *r)
{
	if (r) {
		free(r->node);
		free(r->edge);
		free(r->order);
		free(r->node_of);
		free(r->block);
		free(r);
	}
	return NULL;
}
