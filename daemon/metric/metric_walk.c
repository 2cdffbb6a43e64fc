/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/metric/metric_walk.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proto/base/memory.h"

static bool is_chosen(const struct metric_choice *c, const struct platform_metric *m)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->metric[i] == m)
			return true;
	return false;
}

static int refuse_many(struct event_error *ret_error)
{
	snprintf(ret_error->text, sizeof(ret_error->text), "more than %d metrics", METRICS_MAX);
	return METRIC_TOO_MANY;
}

/* With the reason, if it is known. */
static int refuse_unknown(const struct platform *p, const char *name, struct event_error *ret_error)
{
	const char *why = platform_lacks(p, name);
	if (why)
		snprintf(ret_error->text, sizeof(ret_error->text), "%s has no %.64s: %.300s",
			p->title, name, why);
	else
		snprintf(ret_error->text, sizeof(ret_error->text),
			"%s knows no metric or group named '%.64s'", p->title, name);
	return METRIC_UNKNOWN;
}

static int choose_one(const struct platform *p, const char *name, struct metric_choice *c,
	struct event_error *ret_error)
{
	bool has_any = false;
	for (size_t i = 0; i < p->n_metrics; i++) {
		const struct platform_metric *m = &p->metric[i];
		if (strcasecmp(m->name, name) != 0 && !platform_metric_is_in(m, name))
			continue;
		has_any = true;
		if (is_chosen(c, m))
			continue;
		if (c->n == METRICS_MAX)
			return refuse_many(ret_error);
		c->metric[c->n++] = m;
	}
	return has_any ? 0 : refuse_unknown(p, name, ret_error);
}

int metric_choose(const struct platform *p, char *const *name, size_t n,
	struct metric_choice *ret_choice, struct event_error *ret_error)
{
	struct metric_choice c = {.n = 0};
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = choose_one(p, name[i], &c, ret_error);
	if (r == 0)
		*ret_choice = c;
	return r;
}

int metric_find_tree(const struct platform *p, const char *top, int levels,
	struct metric_tree **ret_tree, struct event_error *ret_error)
{
	_cleanup_(metric_tree_freep) struct metric_tree *tree = NULL;
	int r = metric_tree_new(p, top ? top : METRIC_TREE_TOP, levels, &tree);
	if (r == METRIC_TREE_NONE && top)
		return refuse_unknown(p, top, ret_error);
	if (r == METRIC_TREE_NONE) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			"no top-down tree is known for this core (%s)", p->title);
		return METRIC_NO_TREE;
	}
	if (r == 0 && levels > tree->levels) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			"the top-down tree of %s has %d level%s, not %d", p->title, tree->levels,
			tree->levels == 1 ? "" : "s", levels);
		return METRIC_NO_LEVEL;
	}
	if (r == 0)
		*ret_tree = TAKE_PTR(tree);
	return r;
}

int metric_choose_tree(const struct metric_tree *tree, struct metric_choice *ret_choice,
	struct event_error *ret_error)
{
	if (tree->n_nodes > METRICS_MAX)
		return refuse_many(ret_error);
	ret_choice->n = tree->n_nodes;
	for (size_t i = 0; i < tree->n_nodes; i++)
		ret_choice->metric[i] = tree->node[i].metric;
	return 0;
}

struct walking {
	const struct platform *platform;
	struct pool *pool;
	const struct expression_source *known;
	int (*take)(void *userdata, const char *name);
	void *userdata;
	const struct platform_metric *at; /* the metric of this formula */
};

static int walk(const struct walking *before, const struct platform_metric *at);

static int take_name(void *userdata, const struct expression *e)
{
	const struct walking *w = userdata;
	if (e->kind != EXPRESSION_NAME)
		return 0;
	/* an event may have the same name as the metric computed from it */
	const struct platform_metric *m = platform_metric_find(w->platform, e->name);
	return m && m != w->at ? walk(w, m) : w->take(w->userdata, e->name);
}

/* Take the names in a metric's formula. The recursion ends, since files with circles are refused. */
static int walk(const struct walking *before, const struct platform_metric *at)
{
	struct walking w = *before;
	const struct expression *folded;
	w.at = at;
	int r = expression_fold(w.pool, at->expression, w.known, &folded);
	return r == 0 ? expression_each(folded, take_name, &w) : r;
}

int metric_each_input(const struct platform *p, struct pool *pool,
	const struct platform_metric *metric, const struct expression_source *known,
	int (*take)(void *userdata, const char *name), void *userdata)
{
	const struct walking w = {p, pool, known, take, userdata, NULL};
	return walk(&w, metric);
}

void metric_spell(const char *name, char spelled[static EVENT_NAME_BYTES_MAX])
{
	snprintf(spelled, EVENT_NAME_BYTES_MAX, "%s", name);
	for (char *at = spelled; (at = strchr(at, '@'));)
		*at = '/';
}
