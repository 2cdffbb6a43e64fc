/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The worst path and the residual of a node follow from the values; all other columns are data of
 * the platform.
 */
#include "daemon/control/topdown.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/request.h"
#include "proto/base/memory.h"

#define RESIDUAL "residual"
#define RESIDUAL_MIN 0.05 /* %: smaller residuals disappear in rounding to one decimal */
#define N(table) (sizeof(table) / sizeof((table)[0]))

/* --- the cores -------------------------------------------------------------------------------- */

int topdown_send_cores(const struct topdown_tree *tree, size_t n, const struct answer *answer)
{
	static const struct answer_column columns[] = {
		{"core", "core", MPERF__UNIT__UNIT_NONE},
		{"levels", "levels", MPERF__UNIT__UNIT_NONE},
		{"deepest", "deepest", MPERF__UNIT__UNIT_NONE}, /* existing levels */
		{"cut", "cut",
			MPERF__UNIT__UNIT_NONE}, /* 1: more levels cannot be counted at once */
		{"passes", "passes", MPERF__UNIT__UNIT_NONE},
		{"fewest", "fewest", MPERF__UNIT__UNIT_NONE}, /* 1: fewer passes are not possible */
		{"taking_turns", "taking turns", MPERF__UNIT__UNIT_NONE},
		{"harts", "harts", MPERF__UNIT__UNIT_NONE}, /* "0-3", as in the other tables */
	};
	int r = answer->columns(answer->userdata, columns, N(columns));
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct topdown_tree *t = &tree[i];
		const struct answer_value v[N(columns)] = {
			answer_text(t->core),
			answer_integer((uint64_t)t->tree->levels),
			answer_integer((uint64_t)t->tree->deepest),
			answer_integer(t->is_cut),
			answer_integer(t->n_passes),
			answer_integer(t->is_fewest),
			answer_text(t->turns),
			answer_text(t->harts),
		};
		r = answer->row(answer->userdata, v, N(v));
	}
	return r;
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
	NODE_HARTS,
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
	{"harts", "harts", MPERF__UNIT__UNIT_NONE},
};

struct sending {
	const struct topdown_tree *t;
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

/* Join the names that each(i) returns until NULL, with `between` between them. The caller frees. */
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
	const struct platform_metric *m = s->t->tree->node[node].metric;
	return i < m->n_next ? m->next[i] : NULL;
}

static const char *input_at(const struct sending *s, size_t node, size_t i)
{
	const struct metric_needs needs = metric_inputs_needs(s->t->inputs, node);
	return i < needs.n ? metric_inputs_name(s->t->inputs, needs.input[i]) : NULL;
}

static const char *parent_name(const struct sending *s, int node)
{
	return node < 0 ? NULL : s->t->tree->node[node].metric->name;
}

static int send_node(const struct sending *s, size_t node)
{
	const struct metric_node *n = &s->t->tree->node[node];
	const struct metric_value *value = &s->t->value[node];
	char passes[METRIC_PASSES_BYTES];
	_cleanup_(freep) char *inputs = join_names(", ", input_at, s, node);
	_cleanup_(freep) char *next = join_names(";", next_at, s, node);
	if (!inputs || !next)
		return -ENOMEM;
	s->t->passes(s->t, node, passes);
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
		[NODE_HARTS] = answer_text(s->t->harts),
	};
	return s->answer->row(s->answer->userdata, v, N_NODE_COLUMNS);
}

/* "backend_bound - core_bound - memory_bound". The caller frees. */
static char *residual_formula(const struct sending *s, int node)
{
	const struct metric_tree *tree = s->t->tree;
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

static int send_residual(const struct sending *s, int node)
{
	const struct metric_tree *tree = s->t->tree;
	const struct metric_value *residual =
		&s->t->residual[node < 0 ? tree->n_nodes : (size_t)node];
	const struct platform_metric *m = tree->node[node < 0 ? 0 : node].metric;
	if (!isfinite(residual->value) || fabs(residual->value) < RESIDUAL_MIN ||
		strcmp(m->unit, "%") != 0)
		return 0;
	_cleanup_(freep) char *formula = residual_formula(s, node);
	if (!formula)
		return -ENOMEM;
	const struct answer_value v[N_NODE_COLUMNS] = {
		[NODE_NAME] = answer_text(RESIDUAL),
		[NODE_PARENT] = text_or_absent(parent_name(s, node)),
		[NODE_LEVEL] = answer_integer(node < 0 ? 1 : (uint64_t)tree->node[node].level + 1),
		[NODE_KIND] = answer_text(RESIDUAL),
		[NODE_VALUE] = answer_real(residual->value),
		[NODE_UNIT] = answer_text(m->unit),
		[NODE_ERROR] = known(residual->error),
		[NODE_RUNNING] = answer_real(residual->running),
		[NODE_WORST] = answer_integer(0),
		[NODE_SAYS] = answer_text("the remainder that the rows above do not cover"),
		[NODE_FORMULA] = answer_text(formula),
		[NODE_HAS_MORE] = answer_integer(0),
		[NODE_HARTS] = answer_text(s->t->harts),
	};
	return s->answer->row(s->answer->userdata, v, N_NODE_COLUMNS);
}

/* Send the children of a node, and its residual. Depth is bounded by METRIC_TREE_LEVELS_MAX. */
static int send_children(const struct sending *s, int parent)
{
	const struct metric_tree *tree = s->t->tree;
	for (size_t i = 0; i < tree->n_nodes; i++) {
		if (tree->node[i].parent != parent)
			continue;
		int r = send_node(s, i);
		if (r == 0)
			r = send_children(s, (int)i);
		if (r != 0)
			return r;
	}
	return send_residual(s, parent);
}

static int send_tree(const struct topdown_tree *t, const struct answer *answer)
{
	struct sending s = {.t = t, .answer = answer};
	double value[METRICS_MAX];
	for (size_t i = 0; i < t->tree->n_nodes; i++)
		value[i] = t->value[i].value;
	for (int at = -1; (at = metric_tree_worst(t->tree, at, value)) >= 0;)
		s.is_worst[at] = true;
	return send_children(&s, -1);
}

int topdown_send_nodes(const struct topdown_tree *tree, size_t n, const struct answer *answer)
{
	int r = answer->columns(answer->userdata, node_columns, N_NODE_COLUMNS);
	for (size_t i = 0; i < n && r == 0; i++)
		r = send_tree(&tree[i], answer);
	return r;
}

/* --- inputs ----------------------------------------------------------------------------------- */

static const struct answer_column event_columns[] = {
	STAT_COLUMNS,
	{"pass", "pass", MPERF__UNIT__UNIT_NONE},
	{"harts", "harts", MPERF__UNIT__UNIT_NONE},
};

int topdown_send_event(const struct topdown_tree *t,
	const struct answer_value value[static N_STAT_COLUMNS], size_t pass,
	const struct answer *answer)
{
	struct answer_value v[N(event_columns)];
	memcpy(v, value, N_STAT_COLUMNS * sizeof(*v));
	v[N_STAT_COLUMNS] = answer_integer(pass);
	v[N_STAT_COLUMNS + 1] = answer_text(t->harts);
	return answer->row(answer->userdata, v, N(v));
}

int topdown_send_events(const struct topdown_tree *tree, size_t n, const struct answer *answer)
{
	int r = answer->columns(answer->userdata, event_columns, N(event_columns));
	for (size_t i = 0; i < n && r == 0; i++)
		r = tree[i].send_events(&tree[i], answer);
	return r;
}

int topdown_send(const struct topdown_tree *tree, size_t n, struct row_stream *stream,
	const struct answer *answer)
{
	int r = row_stream_table(stream, "core");
	if (r == 0)
		r = topdown_send_cores(tree, n, answer);
	if (r == 0)
		r = row_stream_table(stream, "node");
	if (r == 0)
		r = topdown_send_nodes(tree, n, answer);
	if (r == 0)
		r = row_stream_table(stream, "event");
	return r == 0 ? topdown_send_events(tree, n, answer) : r;
}

/* --- one that was counted --------------------------------------------------------------------- */

static void counted_passes(
	const struct topdown_tree *t, size_t node, char text[static METRIC_PASSES_BYTES])
{
	const struct topdown_counted *c = t->userdata;
	live_metrics_passes(c->metrics, node, text);
}

static int send_counted(const struct topdown_tree *t, const struct answer *answer)
{
	const struct topdown_counted *c = t->userdata;
	const struct live_metrics *m = c->metrics;
	int r = 0;
	for (int e = m->first; e < c->counts->counter->events.n_events && r == 0; e++) {
		char reason[COUNTS_REASON_BYTES];
		struct answer_value v[N_STAT_COLUMNS] = {{.kind = ANSWER_ABSENT}};
		stat_row_fill(c->counts, e, reason, v);
		r = topdown_send_event(
			t, v, metric_plan_pass(m->plan, (size_t)(e - m->first)) + 1, answer);
	}
	return r;
}

struct topdown_tree topdown_of_counted(const struct topdown_counted *c)
{
	const struct live_metrics *m = c->metrics;
	size_t n_passes = metric_plan_n_passes(m->plan);
	return (struct topdown_tree){
		.core = c->core,
		.harts = c->harts,
		.tree = m->tree,
		.is_cut = m->is_cut,
		.n_passes = n_passes,
		.is_fewest = metric_plan_is_minimal(m->plan),
		.turns = n_passes > 1 ? "the kernel rotates the passes" : "no",
		.value = c->values->metric,
		.residual = c->values->residual,
		.inputs = metric_plan_inputs(m->plan),
		.passes = counted_passes,
		.send_events = send_counted,
		.userdata = c,
	};
}
