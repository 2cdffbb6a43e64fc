/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A stack is a path in a tree of call sites. Looking one up walks from the outermost caller to the
 * leaf: the key of a node is (parent, frame), so stacks that share their outer callers share their
 * nodes, and a stack is then one number.
 *
 *      main ─▶ parse ─▶ malloc        node 1: (0, main)  2: (1, parse)  3: (2, malloc)
 *                 └───▶ strcmp        node 4: (2, strcmp)
 *
 * The walk is the hot path of a busy recording. Its cost is cache misses, since the daemon runs
 * only a few times a second. So the table uses open addressing with the keys in its slots: one
 * cache line per frame. Recent paths are also kept whole: most stacks share their outer frames with
 * an earlier one, and that part is compared in one pass. A frame is the same object for its
 * lifetime, so keys use its address.
 */

#include "daemon/aggregate/window.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/attribute/sweep.h"
#include "proto/base/hash.h"

/* a power of two, like all sizes; doubled when three quarters are taken */
#define SLOTS_FIRST 1024u
#define CHUNK_NODES 512u /* nodes in one allocation */

/* The last part of the room is reserved for leaves without callers: stacks that no longer fit are
 * reduced to their leaf. */
#define NODES_WITH_CALLERS_MAX (STACK_NODES_MAX - STACK_NODES_MAX / 8)

/* Recent paths, by their two outermost frames: enough for the kernel's entry and a few programs
 * that alternate. 12 KB, which stay in the cache during a drain. */
#define PATHS 16u
#define PATH_FRAMES 64u

struct stack_slot {
	uint32_t id; /* of the node; 0: free */
	uint32_t parent;
	const struct frame *frame;
};

/* Outermost first: node[i] is that of the first i + 1 frames. */
struct stack_path {
	const struct frame *frame[PATH_FRAMES];
	uint32_t node[PATH_FRAMES];
	uint32_t n;
};

struct stack_chunk {
	struct stack_chunk *next;
	uint32_t n_used;
	struct stack_node node[CHUNK_NODES];
};

static size_t hash_key(uint32_t parent, const struct frame *frame)
{
	return (size_t)hash_words(parent, (uintptr_t)frame);
}

/* The slot of the key, or the free one where it belongs. */
static struct stack_slot *find_slot(
	const struct stack_tree *t, uint32_t parent, const struct frame *frame)
{
	size_t mask = t->n_slots - 1, at = hash_key(parent, frame) & mask;
	while (t->slot[at].id && (t->slot[at].parent != parent || t->slot[at].frame != frame))
		at = (at + 1) & mask;
	return &t->slot[at];
}

static int reserve_slots(struct stack_tree *t)
{
	if (t->n_slots && t->n_nodes < t->n_slots / 4 * 3)
		return 0;

	struct stack_tree grown = *t;
	grown.n_slots = t->n_slots ? t->n_slots * 2 : SLOTS_FIRST;
	grown.slot = calloc(grown.n_slots, sizeof(*grown.slot));
	if (!grown.slot)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_slots; i++)
		if (t->slot[i].id)
			*find_slot(&grown, t->slot[i].parent, t->slot[i].frame) = t->slot[i];
	free(t->slot);
	*t = grown;
	return 0;
}

static int reserve_nodes(struct stack_tree *t)
{
	if (t->n_nodes == t->size) {
		uint32_t size = t->size ? t->size * 2 : SLOTS_FIRST;
		struct stack_node **node = reallocarray(t->node, size, sizeof(*node));
		if (!node)
			return -ENOMEM;
		t->node = node;
		t->size = size;
	}
	if (t->chunk && t->chunk->n_used < CHUNK_NODES)
		return 0;
	struct stack_chunk *chunk = calloc(1, sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	chunk->next = t->chunk;
	t->chunk = chunk;
	return 0;
}

static bool take_node(struct stack_tree *t, uint32_t limit)
{
	if (!quota_take(&t->of, t->uid, limit, 1))
		return false;
	if (!t->pool || quota_take(t->pool, t->pool_uid, POOL_BYTES_MAX, STACK_NODE_BYTES))
		return true;
	quota_give(&t->of, t->uid, 1);
	return false;
}

static int add_node(struct stack_tree *t, uint32_t parent, struct frame *frame, uint32_t limit,
	uint32_t *ret_node)
{
	int r = reserve_slots(t);
	if (!r)
		r = reserve_nodes(t);
	if (!r && !take_node(t, limit))
		r = STACK_TREE_FULL;
	if (r)
		return r;

	struct stack_node *node = &t->chunk->node[t->chunk->n_used++];
	*node = (struct stack_node){.id = t->n_nodes + 1, .parent = parent, .frame = frame};
	*find_slot(t, parent, frame) = (struct stack_slot){node->id, parent, frame};
	t->node[t->n_nodes++] = node;
	*ret_node = node->id;
	return 0;
}

static int get_node(struct stack_tree *t, uint32_t parent, struct frame *frame, uint32_t limit,
	uint32_t *ret_node)
{
	uint32_t id = t->n_slots ? find_slot(t, parent, frame)->id : 0;
	if (!id && t->n_nodes >= limit)
		return STACK_TREE_FULL;
	if (!id)
		return add_node(t, parent, frame, limit, ret_node);
	*ret_node = id;
	return 0;
}

/* The path that may begin like this stack. NULL: no memory, so every frame is looked up. */
static struct stack_path *find_path(struct stack_tree *t, struct frame *const *frame, uint32_t n)
{
	if (!t->path)
		t->path = calloc(PATHS, sizeof(*t->path));
	if (!t->path || n < 2)
		return NULL;
	uint32_t low = (uint32_t)((uintptr_t)frame[n - 1] >> 4);
	return &t->path[hash_key(low, frame[n - 2]) % PATHS];
}

/* How many frames of the stack, outermost first, are on the path. */
static uint32_t common(const struct stack_path *p, struct frame *const *frame, uint32_t n_frames)
{
	uint32_t n = p->n < n_frames ? p->n : n_frames, i = 0;
	while (i < n && p->frame[i] == frame[n_frames - 1 - i])
		i++;
	return i;
}

int stack_get(
	struct stack_tree *t, struct frame *const *frame, uint32_t n_frames, uint32_t *ret_node)
{
	uint32_t limit = n_frames > 1 ? NODES_WITH_CALLERS_MAX : STACK_NODES_MAX;
	struct stack_path *path = find_path(t, frame, n_frames);
	uint32_t i = path ? common(path, frame, n_frames) : 0;
	uint32_t parent = i ? path->node[i - 1] : 0;

	if (path && i < n_frames)
		path->n = i; /* what follows belonged to another caller */
	for (; i < n_frames; i++) {
		struct frame *next = frame[n_frames - 1 - i];
		int r = get_node(t, parent, next, limit, &parent);
		if (r)
			return r;
		if (path && i < PATH_FRAMES) {
			path->frame[i] = next;
			path->node[i] = parent;
			path->n = i + 1;
		}
	}
	*ret_node = parent;
	return 0;
}

void stack_tree_clear(struct stack_tree *t)
{
	for (struct stack_chunk *chunk = t->chunk, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(t->node);
	free(t->slot);
	free(t->path);
	if (t->pool)
		quota_give(t->pool, t->pool_uid, (uint64_t)t->n_nodes * STACK_NODE_BYTES);
	quota_clear(&t->of);
	*t = (struct stack_tree){.pool = t->pool, .pool_uid = t->pool_uid};
}

void stack_tree_keep(const struct stack_tree *t, struct sweep *s)
{
	for (uint32_t i = 0; i < t->n_nodes; i++)
		if (t->node[i])
			sweep_keep_frame(s, t->node[i]->frame);
}
