/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Metrics: rows with the keys of Linux's pmu-events. The names in a formula are checked when the
 * platform is complete, since they may be in any of its files.
 *
 * Source: jevents.py and metricgroup.c of Linux 6.1: groups by semicolons, a scale and then a unit,
 * names of metrics before those of events.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "platform-db/draft.h"
#include "platform-db/expression.h"

#define UNIT_BYTES_MAX 31

static int line_of(const struct node *row, const char *key)
{
	const struct node *v = node_get(row, key);
	return v ? v->line : row->line;
}

/* Names with semicolons between them. */
static int take_names(const struct reader *r, const struct node *row, const char *key,
	const char *text, const char *const **ret_names, size_t *ret_n)
{
	const char *names[PLATFORM_GROUPS_MAX];
	char name[NAME_BYTES_MAX + 1];
	size_t n = 0;
	for (text += strspn(text, "; "); *text; text += strspn(text, "; ")) {
		size_t length = strcspn(text, ";");
		if (n == PLATFORM_GROUPS_MAX)
			return reader_wrong(r, line_of(row, key), "'%s' has more than %d groups",
				key, PLATFORM_GROUPS_MAX);
		if (length > NAME_BYTES_MAX)
			return reader_wrong(r, line_of(row, key),
				"a group's name is longer than %d bytes", NAME_BYTES_MAX);
		snprintf(name, sizeof(name), "%.*s", (int)length, text);
		names[n] = pool_text(r->pool, name);
		if (!names[n++])
			return -ENOMEM;
		text += length;
	}
	*ret_names = pool_copy(r->pool, names, n * sizeof(names[0]));
	*ret_n = n;
	return *ret_names ? 0 : -ENOMEM;
}

/* "100%": a number above 0, and the unit of the product. */
static int take_scale(
	const struct reader *r, const struct node *row, const char *text, struct platform_metric *m)
{
	char *unit;
	m->scale = strtod(text, &unit);
	unit += strspn(unit, " ");
	if (unit == text || !isfinite(m->scale) || m->scale <= 0)
		return reader_wrong(r, line_of(row, "ScaleUnit"),
			"'ScaleUnit' is not a number and a unit, such as 100%%: '%.32s'", text);
	if (strlen(unit) > UNIT_BYTES_MAX)
		return reader_wrong(r, line_of(row, "ScaleUnit"),
			"the unit is longer than %d bytes", UNIT_BYTES_MAX);
	m->unit = pool_text(r->pool, unit);
	return m->unit ? 0 : -ENOMEM;
}

static int take_expression(
	const struct reader *r, const struct node *row, const char *text, struct platform_metric *m)
{
	struct expression_error e;
	int error = expression_parse(r->pool, text, &m->expression, &e);
	if (error == EXPRESSION_WRONG)
		return reader_wrong(r, line_of(row, "MetricExpr"),
			"'MetricExpr' of %s, column %d: %s", m->name, e.column, e.text);
	m->text = pool_text(r->pool, text);
	return error ? error : m->text ? 0 : -ENOMEM;
}

int metric_parse(const struct reader *r, const struct node *row, const struct metric_texts *texts,
	struct platform_metric *m)
{
	int error = texts->expression ? take_expression(r, row, texts->expression, m) : 0;
	if (!error && texts->groups)
		error = take_names(r, row, "MetricGroup", texts->groups, &m->group, &m->n_groups);
	if (!error && texts->next)
		error = take_names(r, row, "next", texts->next, &m->next, &m->n_next);
	if (!error && texts->scale)
		error = take_scale(r, row, texts->scale, m);
	return error;
}

/* --- files of our own ------------------------------------------------------------------------- */

struct row {
	const char *name, *says, *source, *verified;
	struct metric_texts texts;
};

#define AT(member) offsetof(struct row, member)
static const struct field row_fields[] = {
	{"MetricName", FIELD_NAME, AT(name), true},
	{"MetricExpr", FIELD_TEXT, AT(texts.expression), true},
	{"MetricGroup", FIELD_TEXT, AT(texts.groups)},
	{"ScaleUnit", FIELD_TEXT, AT(texts.scale)},
	{"BriefDescription", FIELD_TEXT, AT(says)},
	{"next", FIELD_TEXT, AT(texts.next)},
	{"source", FIELD_TEXT, AT(source)},
	{"verified", FIELD_TEXT, AT(verified)},
};
#undef AT

static int metric_take(const struct reader *r, const struct node *node,
	const struct platform_origin *origin, struct list *metrics)
{
	struct row row = {.source = origin->source, .verified = origin->verified};
	const struct grammar grammar = GRAMMAR("a metric", row_fields);
	int error = reader_fields(r, node, &grammar, &row);
	if (error)
		return error;
	if (!row.source || !row.verified)
		return reader_wrong(r, node->line, "the metric %s lacks '%s', and so does its list",
			row.name, row.source ? "verified" : "source");
	const struct platform_metric *known = metrics->items;
	for (size_t i = 0; i < metrics->n; i++)
		if (strcasecmp(known[i].name, row.name) == 0)
			return reader_wrong(r, node->line,
				"a second metric named %s; the first is at %s:%d", row.name,
				known[i].origin.file, known[i].origin.line);
	struct platform_metric m = {
		.name = row.name,
		.says = row.says ? row.says : "",
		.scale = 1,
		.unit = "",
		.origin = {row.source, row.verified, r->file, node->line},
	};
	error = metric_parse(r, node, &row.texts, &m);
	if (error)
		return error;
	if (metrics->n == PLATFORM_METRICS_MAX)
		return reader_wrong(r, node->line, "more than %d metrics", PLATFORM_METRICS_MAX);
	return list_append(metrics, &m, 1);
}

int metrics_take(const struct reader *r, const struct node *array,
	const struct platform_origin *origin, struct list *metrics)
{
	if (array->type != NODE_ARRAY)
		return reader_wrong(r, array->line, "'metrics' is not a list");
	for (size_t i = 0; i < array->n_children; i++) {
		int error = metric_take(r, &array->child[i], origin, metrics);
		if (error)
			return error;
	}
	return 0;
}
