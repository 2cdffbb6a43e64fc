/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A stack is a path in a tree of call sites. Looking one up walks from the outermost caller to the
 * leaf, one hash look-up per frame: the key is (parent id, frame id), so stacks that share their
 * outer callers share their nodes, and a stack is then one number.
 *
 *      main ─▶ parse ─▶ malloc        node 1: (0, main)  2: (1, parse)  3: (2, malloc)
 *                 └───▶ strcmp        node 4: (2, strcmp)
 *
 * The walk is the hot path of a busy recording, so it brings its own hash of the two numbers. A
 * frame is one object for life, and its address stands for its id where keys are compared.
 */

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->hh.tbl = NULL)

#include "daemon/aggregate/window.h"

#include <errno.h>
#include <stdlib.h>

#define NODES_FIRST 1024u /* room at the first need; doubled from there */

/* The last part of the room is kept for leaves without callers, which is what is left of stacks
 * that do not fit any more. */
#define NODES_WITH_CALLERS_MAX (STACK_NODES_MAX - STACK_NODES_MAX / 8)

/* uthash compares the key as one stretch of bytes: parent, and the frame's address behind it. */
#define KEY_BYTES                                                                                  \
	(offsetof(struct stack_node, frame) + sizeof(struct frame *) -                             \
		offsetof(struct stack_node, parent))
_Static_assert(KEY_BYTES == sizeof(uint32_t) + sizeof(struct frame *),
	"parent and frame lie side by side, without padding between them");

/* Multiply and fold: neighbouring ids must not land in neighbouring buckets only.
 * Source of the constant: 2^64 divided by the golden ratio, odd. */
static unsigned int hash_key(uint32_t parent, uint32_t frame)
{
	uint64_t x = ((uint64_t)parent << 32 | frame) * 0x9e3779b97f4a7c15u;
	x ^= x >> 32;
	return (unsigned int)(x * 0x9e3779b97f4a7c15u >> 32);
}

static struct stack_node *find_node(
	const struct stack_tree *t, unsigned int hash, uint32_t parent, struct frame *frame)
{
	struct stack_node key = {.parent = parent, .frame = frame}, *node = NULL;
	HASH_FIND_BYHASHVALUE(hh, t->nodes, &key.parent, KEY_BYTES, hash, node);
	return node;
}

static int reserve(struct stack_tree *t)
{
	if (t->n_nodes < t->size)
		return 0;

	uint32_t size = t->size ? t->size * 2 : NODES_FIRST;
	struct stack_node **node = reallocarray(t->node, size, sizeof(*node));
	if (!node)
		return -ENOMEM;
	t->node = node;
	t->size = size;
	return 0;
}

static int add_node(struct stack_tree *t, unsigned int hash, uint32_t parent, struct frame *frame,
	struct stack_node **ret_node)
{
	int r = reserve(t);
	if (r)
		return r;

	struct stack_node *node = calloc(1, sizeof(*node));
	if (!node)
		return -ENOMEM;
	node->id = t->n_nodes + 1;
	node->parent = parent;
	node->frame = frame;
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, t->nodes, &node->parent, KEY_BYTES, hash, node);
	if (!node->hh.tbl) {
		free(node);
		return -ENOMEM;
	}
	t->node[t->n_nodes++] = node;
	*ret_node = node;
	return 0;
}

int stack_get(
	struct stack_tree *t, struct frame *const *frame, uint32_t n_frames, uint32_t *ret_node)
{
	uint32_t limit = n_frames > 1 ? NODES_WITH_CALLERS_MAX : STACK_NODES_MAX;
	uint32_t parent = 0;

	for (uint32_t i = n_frames; i-- > 0;) {
		unsigned int hash = hash_key(parent, frame[i]->id);
		struct stack_node *node = find_node(t, hash, parent, frame[i]);
		if (!node) {
			if (t->n_nodes >= limit)
				return STACK_TREE_FULL;
			int r = add_node(t, hash, parent, frame[i], &node);
			if (r)
				return r;
		}
		parent = node->id;
	}
	*ret_node = parent;
	return 0;
}

void stack_tree_clear(struct stack_tree *t)
{
	HASH_CLEAR(hh, t->nodes);
	for (uint32_t i = 0; i < t->n_nodes; i++)
		free(t->node[i]);
	free(t->node);
	*t = (struct stack_tree){};
}
