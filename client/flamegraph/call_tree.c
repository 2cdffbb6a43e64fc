/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A row stands for nodes that carry weights: going down, a node's weight is its total; going up, it is that of the call
 * from which the way began. The next rows are the callees, or callers, of all of them, by function.
 */
#include "client/flamegraph/call_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/array.h"
#include "proto/base/memory.h"

struct carried {
	const struct flame_node *node;
	double weight;
};

/* Nodes of one function. */
struct group {
	size_t first, n; /* in an array of struct carried */
	double total, self;
};

struct walk {
	struct call_tree *tree;
	const struct flame_node *node;
	size_t n_nodes;
	uint32_t *first,
		*callee; /* callees of node i: callee[first[i]] to callee[first[i + 1] - 1] */
	double least;    /* of a row */
	bool up;
};

static int compare_text(const char *a, const char *b)
{
	return !a || !b ? (a != NULL) - (b != NULL) : strcmp(a, b);
}

static int compare_functions(const struct flame_node *a, const struct flame_node *b)
{
	int r = compare_text(a->function, b->function);
	if (r == 0)
		r = compare_text(a->module, b->module);
	return r ? r : (a->kind > b->kind) - (a->kind < b->kind);
}

static int compare_carried(const void *a, const void *b)
{
	const struct carried *x = a, *y = b;
	int r = compare_functions(x->node, y->node);
	return r ? r : (x->node > y->node) - (x->node < y->node);
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	return x->total != y->total ? (x->total < y->total ? 1 : -1)
				    : (x->first > y->first) - (x->first < y->first);
}

static int find_callees(struct walk *w)
{
	w->first = calloc(w->n_nodes + 2, sizeof(*w->first));
	w->callee = calloc(w->n_nodes + 1, sizeof(*w->callee));
	if (!w->first || !w->callee)
		return -ENOMEM;
	for (size_t i = 1; i < w->n_nodes; i++)
		w->first[w->node[i].parent + 2]++;
	for (size_t i = 2; i < w->n_nodes + 2; i++)
		w->first[i] += w->first[i - 1];
	for (size_t i = 1; i < w->n_nodes; i++)
		w->callee[w->first[w->node[i].parent + 1]++] = (uint32_t)i;
	return 0;
}

/* The next nodes: callees of all carried ones, or going up their callers. The caller of this frees them. */
static int next_of(const struct walk *w, const struct carried *c, size_t n,
	struct carried **ret_next, size_t *ret_n)
{
	size_t n_next = 0;
	for (size_t i = 0; i < n; i++) {
		const size_t at = (size_t)(c[i].node - w->node);
		n_next += w->up ? c[i].node->parent != 0 : w->first[at + 1] - w->first[at];
	}
	struct carried *next = calloc(n_next + 1, sizeof(*next));
	*ret_next = next;
	*ret_n = n_next;
	if (!next)
		return -ENOMEM;
	n_next = 0;
	for (size_t i = 0; i < n; i++) {
		const size_t at = (size_t)(c[i].node - w->node);
		if (w->up && c[i].node->parent != 0)
			next[n_next++] = (struct carried){&w->node[c[i].node->parent], c[i].weight};
		for (uint32_t k = w->first[at]; !w->up && k < w->first[at + 1]; k++)
			next[n_next++] = (struct carried){
				&w->node[w->callee[k]], w->node[w->callee[k]].total};
	}
	qsort(next, n_next, sizeof(*next), compare_carried);
	return 0;
}

/* Groups of sorted nodes, the largest first. The caller frees. */
static int group(const struct walk *w, const struct carried *c, size_t n, struct group **ret_group,
	size_t *ret_n)
{
	struct group *made = calloc(n + 1, sizeof(*made));
	size_t n_made = 0;
	*ret_group = made;
	if (!made)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (n_made == 0 || compare_functions(c[i].node, c[i - 1].node) != 0)
			made[n_made++] = (struct group){.first = i};
		struct group *g = &made[n_made - 1];
		g->n++;
		g->total += c[i].weight;
		g->self += w->up ? 0 : c[i].node->self;
	}
	qsort(made, n_made, sizeof(*made), compare_groups);
	*ret_n = n_made;
	return 0;
}

static int add_row(struct call_tree *t, const struct flame_node *node, uint32_t depth, double self,
	double total)
{
	if (array_grow_long(&t->row, &t->size, t->n_rows + 1, sizeof(*t->row)) < 0)
		return -ENOMEM;
	t->row[t->n_rows++] = (struct call_tree_row){node, depth, self, total};
	return 0;
}

/* Rows below the one of these nodes. Recursion ends with the stacks, FLAME_DEPTH_MAX deep. */
static int add_below(struct walk *w, const struct carried *c, size_t n, uint32_t depth)
{
	_cleanup_(freep) struct carried *next = NULL;
	_cleanup_(freep) struct group *groups = NULL;
	size_t n_next, n_groups = 0;
	int r = next_of(w, c, n, &next, &n_next);
	if (r == 0)
		r = group(w, next, n_next, &groups, &n_groups);
	for (size_t i = 0; i < n_groups && r == 0; i++) {
		if (groups[i].total < w->least || groups[i].total <= 0) {
			w->tree->n_left_out += n_groups - i;
			break;
		}
		const struct carried *first = &next[groups[i].first];
		r = add_row(w->tree, first->node, depth, groups[i].self, groups[i].total);
		if (r == 0)
			r = add_below(w, first, groups[i].n, depth + 1);
	}
	return r;
}

static bool is_called(const struct flame_node *node, const char *function)
{
	return node->function && strcmp(node->function, function) == 0;
}

/* The outermost calls of a function. The caller frees. */
static int find_calls(
	const struct walk *w, const char *function, struct carried **ret_call, size_t *ret_n)
{
	_cleanup_(freep) bool *inside = calloc(w->n_nodes, sizeof(*inside));
	struct carried *call = calloc(w->n_nodes, sizeof(*call));
	size_t n = 0;
	*ret_call = call;
	if (!inside || !call)
		return -ENOMEM;
	for (size_t i = 1; i < w->n_nodes; i++) {
		const bool is_call = is_called(&w->node[i], function);
		inside[i] = inside[w->node[i].parent] || is_call;
		if (is_call && !inside[w->node[i].parent])
			call[n++] = (struct carried){&w->node[i], w->node[i].total};
	}
	*ret_n = n;
	return n > 0 ? 0 : -ENOENT;
}

static double self_in(const struct walk *w, const char *function)
{
	double self = 0;
	for (size_t i = 1; i < w->n_nodes; i++)
		self += is_called(&w->node[i], function) ? w->node[i].self : 0;
	return self;
}

static int add_around(struct walk *w, const char *function)
{
	_cleanup_(freep) struct carried *call = NULL;
	size_t n = 0;
	double total = 0;
	int r = find_calls(w, function, &call, &n);
	for (size_t i = 0; i < n; i++)
		total += call[i].weight;
	w->least = w->tree->whole > 0 ? w->least / w->tree->whole * total : 0;
	if (r == 0)
		r = add_row(w->tree, call[0].node, 0, self_in(w, function), total);
	return r == 0 ? add_below(w, call, n, 1) : r;
}

int call_tree_make(struct call_tree *t, const struct flame *f, enum call_tree_way way,
	const char *function, double least)
{
	struct walk w = {.tree = t, .up = way == CALL_TREE_CALLERS};
	*t = (struct call_tree){0};
	w.node = flame_nodes(f, &w.n_nodes);
	t->whole = w.node[0].total;
	w.least = least * t->whole; /* around a function: of its own total */
	int r = find_callees(&w);
	if (r == 0 && way != CALL_TREE_DOWN)
		r = add_around(&w, function);
	else if (r == 0)
		r = add_below(&w, &(struct carried){&w.node[0], w.node[0].total}, 1, 0);
	free(w.first);
	free(w.callee);
	return r;
}

void call_tree_clear(struct call_tree *t)
{
	free(t->row);
	*t = (struct call_tree){0};
}

size_t call_tree_like(const struct flame *f, const char *part, const char **ret_name, size_t n)
{
	size_t n_nodes, found = 0;
	const struct flame_node *node = flame_nodes(f, &n_nodes);
	while (found < n) { /* the largest of those not found yet */
		const struct flame_node *best = NULL;
		for (size_t i = 1; i < n_nodes; i++) {
			bool is_known = !node[i].function || !strstr(node[i].function, part);
			for (size_t k = 0; k < found && !is_known; k++)
				is_known = strcmp(ret_name[k], node[i].function) == 0;
			if (!is_known && (!best || node[i].total > best->total))
				best = &node[i];
		}
		if (!best)
			break;
		ret_name[found++] = best->function;
	}
	return found;
}
