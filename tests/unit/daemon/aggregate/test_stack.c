/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Frames are made by hand, without a file table: a stack needs their identity alone. */

#include <time.h>

#include "daemon/aggregate/window.h"
#include "tests/unit/test.h"

#define N_FRAMES 64

static struct stack_tree tree;
static struct frame frames[N_FRAMES];

static void setup(void)
{
	tree = (struct stack_tree){};
	for (uint32_t i = 0; i < N_FRAMES; i++)
		frames[i] = (struct frame){.id = i + 1};
}

static void teardown(void)
{
	stack_tree_clear(&tree);
}

EACH_TEST(.begin = setup, .end = teardown);

/* The stack whose frames the letters name, leaf first. */
static uint32_t get(const char *letters)
{
	struct frame *stack[STACK_FRAMES_MAX];
	uint32_t n = 0, node = 12345;

	for (; letters[n]; n++)
		stack[n] = &frames[letters[n] - 'a'];
	ck_assert_int_eq(stack_get(&tree, stack, n, &node), 0);
	return node;
}

TEST(same_stack_is_the_same_node)
{
	uint32_t node = get("cba");
	ck_assert_uint_eq(get("cba"), node);
	ck_assert_uint_eq(tree.n_nodes, 3);
}

TEST(outermost_caller_hangs_from_zero)
{
	uint32_t leaf = get("cba");
	const struct stack_node *c = tree.node[leaf - 1];
	const struct stack_node *b = tree.node[c->parent - 1];
	const struct stack_node *a = tree.node[b->parent - 1];

	ck_assert_ptr_eq(c->frame, &frames[2]);
	ck_assert_ptr_eq(b->frame, &frames[1]);
	ck_assert_ptr_eq(a->frame, &frames[0]);
	ck_assert_uint_eq(a->parent, 0);
	ck_assert_uint_eq(c->id, leaf);
}

TEST(parents_come_before_children)
{
	get("fedcba"), get("xba"), get("fedxba");
	for (uint32_t i = 0; i < tree.n_nodes; i++) {
		ck_assert_uint_eq(tree.node[i]->id, i + 1);
		ck_assert_uint_lt(tree.node[i]->parent, i + 1);
	}
}

TEST(stacks_share_their_outer_callers)
{
	uint32_t strcmp_node = get("cba"), malloc_node = get("dba");

	ck_assert_uint_ne(strcmp_node, malloc_node);
	ck_assert_uint_eq(tree.n_nodes, 4);
	ck_assert_uint_eq(tree.node[strcmp_node - 1]->parent, tree.node[malloc_node - 1]->parent);
}

TEST(order_of_frames_matters)
{
	ck_assert_uint_ne(get("ab"), get("ba"));
	ck_assert_uint_eq(tree.n_nodes, 4);
}

TEST(inner_part_of_a_stack_is_a_node_of_its_own)
{
	uint32_t deep = get("ba"), root = get("b");

	ck_assert_uint_ne(deep, root);
	ck_assert_uint_eq(tree.node[deep - 1]->parent, get("a"));
	ck_assert_uint_eq(tree.n_nodes, 3);
}

TEST(recursion_is_as_deep_as_it_was)
{
	uint32_t three = get("aaa"), four = get("aaaa");

	ck_assert_uint_ne(three, four);
	ck_assert_uint_eq(tree.node[four - 1]->parent, three);
}

TEST(deepest_stack_fits)
{
	struct frame *stack[STACK_FRAMES_MAX];
	uint32_t node;

	for (size_t i = 0; i < STACK_FRAMES_MAX; i++)
		stack[i] = &frames[i % N_FRAMES];
	ck_assert_int_eq(stack_get(&tree, stack, STACK_FRAMES_MAX, &node), 0);
	ck_assert_uint_eq(tree.n_nodes, STACK_FRAMES_MAX);
	ck_assert_uint_eq(node, STACK_FRAMES_MAX);
}

TEST(empty_stack_is_node_zero)
{
	ck_assert_uint_eq(get(""), 0);
	ck_assert_uint_eq(tree.n_nodes, 0);
}

TEST(cleared_tree_begins_anew)
{
	get("cba");
	stack_tree_clear(&tree);
	ck_assert_uint_eq(tree.n_nodes, 0);
	ck_assert_uint_eq(get("a"), 1);
	stack_tree_clear(&tree);
	stack_tree_clear(&tree);
}

TEST(many_stacks_keep_apart)
{
	static uint32_t seen[N_FRAMES * N_FRAMES * 2 + 1];
	struct frame *stack[3];

	/* Each of 4096 stacks is a node of its own, also after the table has grown often. */
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < N_FRAMES * N_FRAMES; i++) {
			uint32_t node;
			stack[0] = &frames[i % N_FRAMES];
			stack[1] = &frames[i / N_FRAMES];
			stack[2] = &frames[0];
			ck_assert_int_eq(stack_get(&tree, stack, 3, &node), 0);
			ck_assert(round ? seen[node] == i + 1 : seen[node] == 0);
			seen[node] = i + 1;
		}
	}
	ck_assert_uint_eq(tree.n_nodes, 1 + N_FRAMES + N_FRAMES * N_FRAMES);
}

/* The bound is generous: it catches a hash that puts all in one bucket, not a slow machine. */
#ifdef __SANITIZE_ADDRESS__
#define LOOK_UP_SECONDS_MAX 2e-5
#else
#define LOOK_UP_SECONDS_MAX 5e-6
#endif
TEST(look_up_is_fast_in_a_large_tree)
{
	enum { N = 200000 };
	struct frame *many = calloc(N, sizeof(*many));
	struct timespec start, end;
	uint32_t node;

	for (uint32_t i = 0; i < N; i++) {
		many[i].id = i + 1;
		struct frame *stack[2] = {&many[i], &frames[i % N_FRAMES]};
		ck_assert_int_eq(stack_get(&tree, stack, 2, &node), 0);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	for (uint32_t i = 0; i < N; i++) {
		struct frame *stack[2] = {&many[i], &frames[i % N_FRAMES]};
		ck_assert_int_eq(stack_get(&tree, stack, 2, &node), 0);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	double seconds =
		(double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
	ck_assert_double_lt(seconds / N, LOOK_UP_SECONDS_MAX);
	free(many);
}

/* --- full ------------------------------------------------------------------------------------- */

/* The count alone is what says that the tree is full. */
static void pretend_full(uint32_t n)
{
	tree.n_nodes = n;
}

TEST(full_tree_is_an_outcome)
{
	struct frame *stack[] = {&frames[0], &frames[1]};
	uint32_t node = 77;

	pretend_full(STACK_NODES_MAX);
	ck_assert_int_eq(stack_get(&tree, stack, 2, &node), STACK_TREE_FULL);
	ck_assert_int_eq(stack_get(&tree, stack, 1, &node), STACK_TREE_FULL);
	ck_assert_uint_eq(node, 77);
	pretend_full(0);
}

TEST(full_tree_still_knows_what_it_has)
{
	uint32_t node = get("cba");

	pretend_full(STACK_NODES_MAX);
	ck_assert_uint_eq(get("cba"), node);
	ck_assert_uint_eq(get("a"), 1);
	pretend_full(3);
}

TEST(leaves_alone_have_room_kept_for_them)
{
	struct frame *stack[] = {&frames[7], &frames[8]};
	uint32_t node = 77, n = STACK_NODES_MAX - STACK_NODES_MAX / 8;

	tree.node = calloc(n + 1, sizeof(*tree.node));
	tree.size = n + 1;
	pretend_full(n);
	ck_assert_int_eq(stack_get(&tree, stack, 2, &node), STACK_TREE_FULL);
	ck_assert_int_eq(stack_get(&tree, stack, 1, &node), 0);
	ck_assert_uint_eq(node, n + 1);
}
