/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One metric in a third-party format. Formulas may name events of units outside the core, so their
 * names are not checked here. A row with an event's name and a formula is a metric by that name.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "platform-db/foreign.h"

struct platform_metric *foreign_metric_find(const struct list *metrics, const char *name)
{
	struct platform_metric *m = metrics->items;
	for (size_t i = 0; i < metrics->n; i++)
		if (strcasecmp(m[i].name, name) == 0)
			return &m[i];
	return NULL;
}

static int take_texts(const struct reader *r, const struct node *row, struct platform_metric *m)
{
	const struct metric_texts texts = {
		foreign_text(row, "MetricExpr"),
		foreign_text(row, "MetricGroup"),
		foreign_text(row, "ScaleUnit"),
	};
	const char *name = foreign_text(row, "MetricName");
	const char *says = foreign_text(row, "BriefDescription");
	if (!name)
		name = foreign_text(row, "EventName");
	if (!says)
		says = foreign_text(row, "PublicDescription");
	if (name)
		m->name = foreign_line(r, name);
	if (says)
		m->says = foreign_line(r, says);
	if (!m->says)
		return -ENOMEM;
	if (!m->name)
		return name ? -ENOMEM : reader_wrong(r, row->line, "a metric without MetricName");
	m->origin = (struct platform_origin){r->file, "no", r->file, row->line};
	return metric_parse(r, row, &texts, m);
}

int foreign_metric(const struct reader *r, const struct node *row,
	const struct platform_metric *base, struct list *metrics)
{
	struct platform_metric m = {.says = "", .scale = 1, .unit = "", .third_party = true};
	if (base)
		m = *base;
	int error = take_texts(r, row, &m);
	if (error)
		return error;
	struct platform_metric *known = foreign_metric_find(metrics, m.name);
	if (known) {
		*known = m;
		return 0;
	}
	if (metrics->n == PLATFORM_METRICS_MAX)
		return reader_wrong(r, row->line, "more than %d metrics", PLATFORM_METRICS_MAX);
	return list_append(metrics, &m, 1);
}
