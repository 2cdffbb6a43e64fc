/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Kernels of graph benchmarks: breadth-first search, PageRank, connected
 * components, triangles, shortest paths. Each works on a chunk of nodes at a time, and each chunk is an
 * entry into the kernel's region; so entries are short and many, and differ, since few nodes have most
 * of the edges.
 *
 *      graph KERNEL [ROUNDS [NODES [DEGREE]]]
 *      graph -KERNEL …         the same without its chunks: what is around them, to be subtracted
 *
 * Printed are the kernel, the seconds of all rounds by its own clock, and what it computed, which no
 * counting may change.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mperf.h"

#define KERNEL __attribute__((noinline))
#define CHUNK 64
#define DAMPING 0.85
#define RANK_STEPS 5
#define FAR INT32_MAX

struct graph {
	int32_t n_nodes;
	int64_t n_edges;
	int64_t *first;  /* of each node's edges, and one more */
	int32_t *to;     /* sorted by node, and rising */
	int32_t *weight; /* 1 to 16 */
	int32_t *node;   /* what kernels compute for each node */
	double *rank, *share;
};

static uint64_t chance(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Low numbers are chosen more often: the product of two chances. */
static int32_t skewed(uint64_t *state, int32_t n)
{
	uint64_t a = chance(state) % (uint64_t)n, b = chance(state) % (uint64_t)n;
	return (int32_t)(a * b / (uint64_t)n);
}

static int by_number(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void *memory(size_t n, size_t bytes)
{
	void *p = calloc(n, bytes);
	if (!p)
		exit(1);
	return p;
}

/* Edges both ways, without loops; some may be twice. */
static struct graph graph_make(int32_t n_nodes, int32_t degree)
{
	struct graph g = {.n_nodes = n_nodes, .n_edges = (int64_t)n_nodes * degree / 2 * 2};
	int64_t *edges = memory((size_t)g.n_edges, sizeof(*edges));
	uint64_t state = 88172645463325252u;
	for (int64_t i = 0; i < g.n_edges; i += 2) {
		int64_t a = (int64_t)(chance(&state) % (uint64_t)n_nodes);
		int64_t b = skewed(&state, n_nodes);
		b = a == b ? (b + 1) % n_nodes : b;
		edges[i] = a << 32 | b;
		edges[i + 1] = b << 32 | a;
	}
	qsort(edges, (size_t)g.n_edges, sizeof(*edges), by_number);
	g.first = memory((size_t)n_nodes + 1, sizeof(*g.first));
	g.to = memory((size_t)g.n_edges, sizeof(*g.to));
	g.weight = memory((size_t)g.n_edges, sizeof(*g.weight));
	g.node = memory((size_t)n_nodes, sizeof(*g.node));
	g.rank = memory((size_t)n_nodes, sizeof(*g.rank));
	g.share = memory((size_t)n_nodes, sizeof(*g.share));
	for (int64_t i = 0; i < g.n_edges; i++) {
		g.first[(edges[i] >> 32) + 1]++;
		g.to[i] = (int32_t)edges[i];
		g.weight[i] = 1 + (int32_t)(chance(&state) % 16);
	}
	for (int32_t v = 0; v < n_nodes; v++)
		g.first[v + 1] += g.first[v];
	free(edges);
	return g;
}

static void graph_free(struct graph *g)
{
	free(g->first);
	free(g->to);
	free(g->weight);
	free(g->node);
	free(g->rank);
	free(g->share);
}

/* --- kernels: a chunk each; how many nodes changed -------------------------------------------- */

/* One level more of a breadth-first search from below: a node that is not reached looks for a
 * neighbour that is. */
KERNEL static int64_t bfs_chunk(struct graph *g, int32_t from, int32_t level)
{
	int64_t n = 0;
	for (int32_t v = from; v < from + CHUNK; v++) {
		if (g->node[v] != FAR)
			continue;
		for (int64_t e = g->first[v]; e < g->first[v + 1]; e++)
			if (g->node[g->to[e]] == level - 1) {
				g->node[v] = level;
				n++;
				break;
			}
	}
	return n;
}

KERNEL static int64_t rank_chunk(struct graph *g, int32_t from, int32_t step)
{
	(void)step;
	for (int32_t v = from; v < from + CHUNK; v++) {
		double sum = 0;
		for (int64_t e = g->first[v]; e < g->first[v + 1]; e++)
			sum += g->share[g->to[e]];
		g->rank[v] = (1 - DAMPING) / g->n_nodes + DAMPING * sum;
	}
	return 1;
}

/* Labels go to neighbours, the least wins. */
KERNEL static int64_t components_chunk(struct graph *g, int32_t from, int32_t step)
{
	int64_t n = 0;
	(void)step;
	for (int32_t v = from; v < from + CHUNK; v++) {
		int32_t least = g->node[v];
		for (int64_t e = g->first[v]; e < g->first[v + 1]; e++)
			least = g->node[g->to[e]] < least ? g->node[g->to[e]] : least;
		n += least < g->node[v];
		g->node[v] = least;
	}
	return n;
}

/* Common neighbours of both ends of each edge, by merging what is sorted; stores nothing. */
KERNEL static int64_t triangles_chunk(struct graph *g, int32_t from, int32_t step)
{
	int64_t n = 0;
	(void)step;
	for (int32_t v = from; v < from + CHUNK; v++)
		for (int64_t e = g->first[v]; e < g->first[v + 1] && g->to[e] < v; e++) {
			int64_t a = g->first[v], b = g->first[g->to[e]];
			const int64_t b_end = g->first[g->to[e] + 1];
			while (a < e && b < b_end && g->to[b] < g->to[e]) {
				const int32_t x = g->to[a], y = g->to[b];
				n += x == y;
				a += x <= y;
				b += y <= x;
			}
		}
	return n;
}

/* Bellman and Ford's: distances by way of neighbours. */
KERNEL static int64_t paths_chunk(struct graph *g, int32_t from, int32_t step)
{
	int64_t n = 0;
	(void)step;
	for (int32_t v = from; v < from + CHUNK; v++) {
		int32_t best = g->node[v];
		for (int64_t e = g->first[v]; e < g->first[v + 1]; e++) {
			const int32_t there = g->node[g->to[e]];
			if (there != FAR && there + g->weight[e] < best)
				best = there + g->weight[e];
		}
		n += best < g->node[v];
		g->node[v] = best;
	}
	return n;
}

/* --- rounds ----------------------------------------------------------------------------------- */

static void begin_from_one(struct graph *g)
{
	for (int32_t v = 0; v < g->n_nodes; v++)
		g->node[v] = v == 0 ? 0 : FAR;
}

static void begin_apart(struct graph *g)
{
	for (int32_t v = 0; v < g->n_nodes; v++)
		g->node[v] = v;
}

static void begin_even(struct graph *g)
{
	for (int32_t v = 0; v < g->n_nodes; v++)
		g->rank[v] = 1.0 / g->n_nodes;
}

static void share_out(struct graph *g)
{
	for (int32_t v = 0; v < g->n_nodes; v++)
		g->share[v] = g->rank[v] / (double)(g->first[v + 1] - g->first[v] + 1);
}

static void nothing(struct graph *g)
{
	(void)g;
}

static const struct kernel {
	const char *name;
	void (*begin)(struct graph *);
	void (*step)(struct graph *);
	int64_t (*chunk)(struct graph *, int32_t from, int32_t step);
	int32_t n_steps; /* 0: until nothing changes */
} kernels[] = {
	{"bfs", begin_from_one, nothing, bfs_chunk, 0},
	{"pr", begin_even, share_out, rank_chunk, RANK_STEPS},
	{"cc", begin_apart, nothing, components_chunk, 0},
	{"tc", nothing, nothing, triangles_chunk, 1},
	{"sssp", begin_from_one, nothing, paths_chunk, 0},
};

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The seconds of its chunks. */
static double run_round(const struct kernel *k, struct graph *g, bool chunks, int64_t *ret_changed)
{
	double seconds = 0;
	int64_t changed = 1;
	k->begin(g);
	for (int32_t step = 1; k->n_steps ? step <= k->n_steps : changed > 0; step++) {
		changed = 0;
		k->step(g);
		const double begin_s = now_s();
		for (int32_t v = 0; chunks && v < g->n_nodes; v += CHUNK) {
			MPERF_REGION_BEGIN("chunk");
			changed += k->chunk(g, v, step);
			MPERF_REGION_END("chunk");
		}
		seconds += now_s() - begin_s;
		*ret_changed += changed;
	}
	return seconds;
}

int main(int argc, char **argv)
{
	const long n_rounds = argc > 2 ? atol(argv[2]) : 1;
	const int32_t n_nodes = argc > 3 ? atoi(argv[3]) : 2048;
	const int32_t degree = argc > 4 ? atoi(argv[4]) : 16;
	const bool chunks = argc < 2 || argv[1][0] != '-';
	const char *wanted = argc < 2 ? "" : argv[1] + (chunks ? 0 : 1);
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++) {
		if (strcmp(wanted, kernels[i].name) != 0)
			continue;
		if (n_nodes < CHUNK || n_nodes % CHUNK != 0 || degree < 2)
			return 2;
		static struct graph g; /* not among locals, whose accesses are told apart */
		g = graph_make(n_nodes, degree);
		double seconds = 0;
		int64_t changed = 0;
		for (long round = 0; round < n_rounds; round++)
			seconds += run_round(&kernels[i], &g, chunks, &changed);
		printf("%s %.9f %lld\n", kernels[i].name, seconds, (long long)changed);
		graph_free(&g);
		return 0;
	}
	return 2;
}
