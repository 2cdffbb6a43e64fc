/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Graph: the basic blocks of a function, and its natural loops
 *
 * Blocks begin at the target of each branch, and behind every jump. A jump with a computed target, as in
 * a switch, is assumed to lead to the blocks that nothing else leads to, found by their addresses
 * (graph.c), through empty blocks that lead to two each. Blocks that are still not entered from anywhere
 * (handlers of exceptions) do not count as predecessors when dominators are found. A loop is an edge back
 * to a block that dominates the edge's origin, with all blocks that lead to the origin without passing
 * through that block; edges to the same block are one loop.
 *
 * Source: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
 */

#include "daemon/code/instruction.h"

#define GRAPH_BLOCKS_MAX 32768u
#define GRAPH_NONE UINT32_MAX

enum { GRAPH_TOO_LARGE = 1 };

struct block {
	uint32_t first, n; /* instructions; n is 0 in an empty block of a computed jump */
	uint32_t next[2];  /* GRAPH_NONE: leads nowhere in the function */
	uint32_t dominator;
	uint32_t order;  /* in reverse post-order */
	uint32_t loop;   /* the innermost that it is in; GRAPH_NONE */
	bool each_round; /* it runs once in every iteration of that loop */
	bool filler;     /* padding behind a jump, which never runs */
	bool computed;   /* it ends with a jump whose target is computed */
};

struct loop {
	uint32_t head;
	uint32_t parent;   /* loop around it; GRAPH_NONE */
	uint32_t depth;    /* 1: outermost */
	uint32_t n_blocks; /* with those of loops inside */
};

struct graph {
	struct block *block; /* n_code by address, then the empty ones */
	struct loop *loop;   /* outer before inner */
	uint32_t n_code, n_blocks, n_loops;
	bool indirect; /* a jump's target is computed */
};

/* Make the graph of the n instructions of a function, by rising address. 0, GRAPH_TOO_LARGE,
 * -ENOMEM. */
int graph_make(struct graph *g, const struct instruction *i, uint32_t n);
void graph_clear(struct graph *g);
/* The block that has the n-th instruction. */
uint32_t graph_block_of(const struct graph *g, uint32_t n);
