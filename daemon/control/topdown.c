/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Which way is worst and what is left of a node follow from the values; all else is data of the
 * platform.
 */
#include "daemon/control/topdown.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/memory.h"

#define RESIDUAL "residual"
#define RESIDUAL_MIN 0.05 /* %; less is what rounding to one decimal hides */
#define N(table) (sizeof(table) / sizeof((table)[0]))

/* --- the core --------------------------------------------------------------------------------- */

int topdown_send_core(const struct stat_metrics *m, const char *core, const struct answer *answer)
{
	static const struct answer_column columns[] = {
		{"core", "core", MPERF__UNIT__UNIT_NONE},
		{"levels", "levels", MPERF__UNIT__UNIT_NONE},
		{"deepest", "deepest", MPERF__UNIT__UNIT_NONE}, /* level that there is */
		{"cut", "cut",
			MPERF__UNIT__UNIT_NONE}, /* 1: more levels cannot be counted at once */
		{"passes", "passes", MPERF__UNIT__UNIT_NONE},
		{"fewest", "fewest", MPERF__UNIT__UNIT_NONE}, /* 1: fewer passes are not possible */
		{"taking_turns", "taking turns", MPERF__UNIT__UNIT_NONE},
	};
	size_t n_passes = metric_plan_n_passes(m->plan);
	const struct answer_value v[N(columns)] = {
		answer_text(core),
		answer_integer((uint64_t)m->tree->levels),
		answer_integer((uint64_t)m->tree->deepest),
		answer_integer(m->is_cut),
		answer_integer(n_passes),
		answer_integer(metric_plan_is_minimal(m->plan)),
		answer_text(n_passes > 1 ? "the kernel rotates the passes" : "no"),
	};
	int r = answer->columns(answer->userdata, columns, N(columns));
	return r == 0 ? answer->row(answer->userdata, v, N(v)) : r;
}

/* --- nodes ------------------------------------------------------------------------------------ */

enum {
	NODE_NAME,
	NODE_PARENT,
	NODE_LEVEL,
	NODE_KIND,
	NODE_VALUE,
	NODE_UNIT,
	NODE_ERROR,
	NODE_RUNNING,
	NODE_PASSES,
	NODE_WORST,
	NODE_MISSING,
	NODE_REASON,
	NODE_SAYS,
	NODE_FORMULA,
	NODE_INPUTS,
	NODE_NEXT,
	NODE_HAS_MORE,
	NODE_SOURCE,
	NODE_VERIFIED,
	N_NODE_COLUMNS
};

static const struct answer_column node_columns[N_NODE_COLUMNS] = {
	{"node", "node", MPERF__UNIT__UNIT_NONE},
	{"parent", "part of", MPERF__UNIT__UNIT_NONE}, /* absent: of all slots */
	{"level", "level", MPERF__UNIT__UNIT_NONE},
	{"kind", "kind", MPERF__UNIT__UNIT_NONE}, /* lost, useful, residual */
	{"value", "value", MPERF__UNIT__UNIT_NONE},
	{"unit", "unit", MPERF__UNIT__UNIT_NONE},   /* of value and error */
	{"error", "error", MPERF__UNIT__UNIT_NONE}, /* half of the 95 % interval */
	{"running_share", "counted", MPERF__UNIT__UNIT_SHARE},
	{"passes", "passes", MPERF__UNIT__UNIT_NONE},
	{"worst", "worst", MPERF__UNIT__UNIT_NONE}, /* 1: on the worst path */
	{"missing", "missing event", MPERF__UNIT__UNIT_NONE},
	{"reason", "not measured because", MPERF__UNIT__UNIT_NONE},
	{"says", "what it is", MPERF__UNIT__UNIT_NONE},
	{"formula", "formula", MPERF__UNIT__UNIT_NONE},
	{"inputs", "inputs", MPERF__UNIT__UNIT_NONE},     /* names of events, by ", " */
	{"next", "look next at", MPERF__UNIT__UNIT_NONE}, /* groups and metrics, by ";" */
	{"has_more", "has more", MPERF__UNIT__UNIT_NONE}, /* 1: children below the last level */
	{"source", "source", MPERF__UNIT__UNIT_NONE},
	{"verified", "verified", MPERF__UNIT__UNIT_NONE},
};

struct sending {
	const struct stat_metrics *metrics;
	const struct metric_values *values;
	const struct answer *answer;
	bool is_worst[METRICS_MAX];
};

static struct answer_value known(double v)
{
	return isfinite(v) ? answer_real(v) : (struct answer_value){.kind = ANSWER_ABSENT};
}

static struct answer_value text_or_absent(const char *text)
{
	return text && *text ? answer_text(text) : (struct answer_value){.kind = ANSWER_ABSENT};
}

/* Names with `between` between them, from each(i) until it is NULL. The caller frees. */
static char *join_names(const char *between,
	const char *(*each)(const struct sending *s, size_t node, size_t i),
	const struct sending *s, size_t node)
{
	char *text = NULL;
	size_t bytes, i = 0;
	FILE *f = open_memstream(&text, &bytes);
	if (!f)
		return NULL;
	for (const char *name; (name = each(s, node, i)); i++)
		fprintf(f, "%s%s", i ? between : "", name);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static const char *next_at(const struct sending *s, size_t node, size_t i)
{
	const struct platform_metric *m = s->metrics->tree->node[node].metric;
	return i < m->n_next ? m->next[i] : NULL;
}

static const char *input_at(const struct sending *s, size_t node, size_t i)
{
	const struct metric_plan *p = s->metrics->plan;
	return metric_plan_input(p, metric_plan_metric(p, s->metrics->of_node[node]), i);
}

static const char *parent_name(const struct sending *s, int node)
{
	return node < 0 ? NULL : s->metrics->tree->node[node].metric->name;
}

static int send_node(const struct sending *s, size_t node)
{
	const struct stat_metrics *m = s->metrics;
	const struct metric_node *n = &m->tree->node[node];
	const struct metric_value *value = &s->values->metric[m->of_node[node]];
	char passes[METRIC_PASSES_BYTES];
	_cleanup_(freep) char *inputs = join_names(", ", input_at, s, node);
	_cleanup_(freep) char *next = join_names(";", next_at, s, node);
	if (!inputs || !next)
		return -ENOMEM;
	stat_metrics_passes(m, m->of_node[node], passes);
	bool has_value = isfinite(value->value);
	const struct answer_value v[N_NODE_COLUMNS] = {
		[NODE_NAME] = answer_text(n->metric->name),
		[NODE_PARENT] = text_or_absent(parent_name(s, n->parent)),
		[NODE_LEVEL] = answer_integer((uint64_t)n->level),
		[NODE_KIND] = answer_text(
			platform_metric_is_in(n->metric, METRIC_TREE_USEFUL) ? "useful" : "lost"),
		[NODE_VALUE] = known(value->value),
		[NODE_UNIT] = answer_text(n->metric->unit),
		[NODE_ERROR] = known(has_value ? value->error : NAN),
		[NODE_RUNNING] = known(has_value ? value->running : NAN),
		[NODE_PASSES] = text_or_absent(passes),
		[NODE_WORST] = answer_integer(s->is_worst[node]),
		[NODE_MISSING] = text_or_absent(value->missing),
		[NODE_REASON] = text_or_absent(value->reason),
		[NODE_SAYS] = text_or_absent(n->metric->says),
		[NODE_FORMULA] = answer_text(n->metric->text),
		[NODE_INPUTS] = answer_text(inputs),
		[NODE_NEXT] = text_or_absent(next),
		[NODE_HAS_MORE] = answer_integer(n->has_more),
		[NODE_SOURCE] = text_or_absent(n->metric->origin.source),
		[NODE_VERIFIED] = text_or_absent(n->metric->origin.verified),
	};
	return s->answer->row(s->answer->userdata, v, N_NODE_COLUMNS);
}

/* "backend_bound - core_bound - memory_bound". The caller frees. */
static char *rest_formula(const struct sending *s, int node)
{
	const struct metric_tree *tree = s->metrics->tree;
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);
	if (!f)
		return NULL;
	fputs(node < 0 ? "1" : tree->node[node].metric->name, f);
	for (size_t i = 0; i < tree->n_nodes; i++)
		if (tree->node[i].parent == node)
			fprintf(f, " - %s", tree->node[i].metric->name);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

static int send_rest(const struct sending *s, int node)
{
	const struct metric_tree *tree = s->metrics->tree;
	const struct metric_value *rest = &s->values->rest[node < 0 ? tree->n_nodes : (size_t)node];
	const struct platform_metric *m = tree->node[node < 0 ? 0 : node].metric;
	if (!isfinite(rest->value) || fabs(rest->value) < RESIDUAL_MIN || strcmp(m->unit, "%") != 0)
		return 0;
	_cleanup_(freep) char *formula = rest_formula(s, node);
	if (!formula)
		return -ENOMEM;
	const struct answer_value v[N_NODE_COLUMNS] = {
		[NODE_NAME] = answer_text(RESIDUAL),
		[NODE_PARENT] = text_or_absent(parent_name(s, node)),
		[NODE_LEVEL] = answer_integer(node < 0 ? 1 : (uint64_t)tree->node[node].level + 1),
		[NODE_KIND] = answer_text(RESIDUAL),
		[NODE_VALUE] = answer_real(rest->value),
		[NODE_UNIT] = answer_text(m->unit),
		[NODE_ERROR] = known(rest->error),
		[NODE_RUNNING] = answer_real(rest->running),
		[NODE_WORST] = answer_integer(0),
		[NODE_SAYS] = answer_text("what the rows above do not add up to"),
		[NODE_FORMULA] = answer_text(formula),
		[NODE_HAS_MORE] = answer_integer(0),
	};
	return s->answer->row(s->answer->userdata, v, N_NODE_COLUMNS);
}

/* The children of a node, and what they leave of it. Depth is bounded by METRIC_TREE_LEVELS_MAX. */
static int send_children(const struct sending *s, int parent)
{
	const struct metric_tree *tree = s->metrics->tree;
	for (size_t i = 0; i < tree->n_nodes; i++) {
		if (tree->node[i].parent != parent)
			continue;
		int r = send_node(s, i);
		if (r == 0)
			r = send_children(s, (int)i);
		if (r != 0)
			return r;
	}
	return send_rest(s, parent);
}

int topdown_send_nodes(
	const struct stat_metrics *m, const struct metric_values *v, const struct answer *answer)
{
	struct sending s = {.metrics = m, .values = v, .answer = answer};
	double value[METRICS_MAX];
	for (size_t i = 0; i < m->tree->n_nodes; i++)
		value[i] = v->metric[m->of_node[i]].value;
	for (int at = -1; (at = metric_tree_worst(m->tree, at, value)) >= 0;)
		s.is_worst[at] = true;
	int r = answer->columns(answer->userdata, node_columns, N_NODE_COLUMNS);
	return r == 0 ? send_children(&s, -1) : r;
}

/* --- inputs ----------------------------------------------------------------------------------- */

int topdown_send_events(
	const struct stat_metrics *m, const struct stat_counts *counts, const struct answer *answer)
{
	static const struct answer_column columns[] = {
		STAT_COLUMNS,
		{"pass", "pass", MPERF__UNIT__UNIT_NONE},
	};
	int r = answer->columns(answer->userdata, columns, N(columns));
	for (int e = m->first; e < counts->counter->events.n_events && r == 0; e++) {
		char reason[STAT_REASON_BYTES];
		struct answer_value v[N(columns)] = {{.kind = ANSWER_ABSENT}};
		stat_counts_row(counts, e, reason, v);
		v[N_STAT_COLUMNS] =
			answer_integer(metric_plan_pass(m->plan, (size_t)(e - m->first)) + 1);
		r = answer->row(answer->userdata, v, N(v));
	}
	return r;
}
