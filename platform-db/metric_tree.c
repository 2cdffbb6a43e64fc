/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A metric may be in the groups of several others, or by mistake in its own; it becomes a node once,
 * where it is met first.
 */
#include "platform-db/metric_tree.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "platform-db/reader.h"

struct growing {
	const struct platform *platform;
	struct metric_tree *tree;
	bool *is_taken; /* those of the platform's metrics that are in the tree */
	int levels;     /* levels to take; deeper ones are only counted */
};

static bool is_child(const struct platform_metric *m, const struct platform_metric *parent)
{
	char group[NAME_BYTES_MAX + sizeof("_group")];
	snprintf(group, sizeof(group), "%s_group", parent->name);
	return platform_metric_is_in(m, group);
}

static int grow(struct growing *g, size_t metric, int parent, int level)
{
	struct metric_tree *tree = g->tree;
	const struct platform_metric *m = &g->platform->metric[metric];
	bool is_kept = level <= g->levels;
	int at = is_kept ? (int)tree->n_nodes : -1;

	g->is_taken[metric] = true;
	tree->deepest = level > tree->deepest ? level : tree->deepest;
	if (is_kept) {
		tree->node[tree->n_nodes++] =
			(struct metric_node){.metric = m, .parent = parent, .level = level};
		tree->levels = level > tree->levels ? level : tree->levels;
	}
	for (size_t i = 0; i < g->platform->n_metrics && level < METRIC_TREE_LEVELS_MAX; i++) {
		if (g->is_taken[i] || !is_child(&g->platform->metric[i], m))
			continue;
		if (at >= 0 && level == g->levels)
			tree->node[at].has_more = true;
		grow(g, i, at, level + 1);
	}
	return at;
}

int metric_tree_new(
	const struct platform *p, const char *top, int levels, struct metric_tree **ret_tree)
{
	_cleanup_(metric_tree_freep) struct metric_tree *tree = calloc(1, sizeof(*tree));
	_cleanup_(freep) bool *is_taken = calloc(p->n_metrics + 1, sizeof(*is_taken));
	if (!tree || !is_taken)
		return -ENOMEM;
	tree->node = calloc(p->n_metrics + 1, sizeof(*tree->node));
	if (!tree->node)
		return -ENOMEM;
	tree->is_whole = strcasecmp(top, METRIC_TREE_TOP) == 0 ||
			 strncasecmp(top, METRIC_TREE_WHOLE, strlen(METRIC_TREE_WHOLE)) == 0;
	struct growing g = {p, tree, is_taken, levels > 0 ? levels : METRIC_TREE_LEVELS_MAX};
	for (size_t i = 0; i < p->n_metrics; i++)
		if (!is_taken[i] && (platform_metric_is_in(&p->metric[i], top) ||
					    strcasecmp(p->metric[i].name, top) == 0))
			grow(&g, i, -1, 1);
	if (tree->n_nodes == 0)
		return METRIC_TREE_NONE;
	*ret_tree = TAKE_PTR(tree);
	return 0;
}

struct metric_tree *metric_tree_free(struct metric_tree *tree)
{
	if (tree)
		free(tree->node);
	free(tree);
	return NULL;
}

/* Value of all slots: 100 if the first level has shares of slots. Other units have no such total:
 * NAN. */
static double whole_of(const struct metric_tree *tree)
{
	return tree->is_whole && strcmp(tree->node[0].metric->unit, "%") == 0 ? 100 : NAN;
}

double metric_tree_rest(const struct metric_tree *tree, int node, const double *value)
{
	const char *unit = tree->node[node < 0 ? 0 : node].metric->unit;
	double rest = node < 0 ? whole_of(tree) : value[node];
	bool has_children = false;
	for (size_t i = 0; i < tree->n_nodes; i++) {
		if (tree->node[i].parent != node)
			continue;
		rest -= strcmp(tree->node[i].metric->unit, unit) == 0 ? value[i] : NAN;
		has_children = true;
	}
	return has_children ? rest : NAN;
}

/* Is the tree a whole method, or one metric with all that is below it? */
static bool is_one(const struct metric_tree *tree)
{
	size_t n_roots = 0;
	for (size_t i = 0; i < tree->n_nodes; i++)
		n_roots += tree->node[i].parent < 0;
	return tree->is_whole || n_roots == 1;
}

int metric_tree_worst(const struct metric_tree *tree, int node, const double *value)
{
	if (node < 0 && !is_one(tree))
		return -1;
	double rest = metric_tree_rest(tree, node, value);
	int worst = -1;
	for (size_t i = 0; i < tree->n_nodes; i++)
		if (tree->node[i].parent == node && value[i] > (worst < 0 ? 0 : value[worst]) &&
			!platform_metric_is_in(tree->node[i].metric, METRIC_TREE_USEFUL))
			worst = (int)i;
	return worst >= 0 && node >= 0 && rest > value[worst] ? -1 : worst;
}
