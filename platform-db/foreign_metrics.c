/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One metric in a third-party format. Formulas may name events of units outside the core, so their
 * names are not checked here. A row with an event's name and a formula is a metric by that name.
 */
#include <ctype.h>
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

/* The existing metric of that name, for the same kind of hart. */
static struct platform_metric *known_metric(
	const struct list *metrics, const char *name, const char *pmu)
{
	struct platform_metric *m = metrics->items;
	for (size_t i = 0; i < metrics->n; i++)
		if (strcasecmp(m[i].name, name) == 0 && foreign_same_pmu(m[i].pmu, pmu))
			return &m[i];
	return NULL;
}

/* The length of "cpu_core@NAME@" at that place, where NAME is an event without terms; 0: not
 * there. */
static size_t named_for(const char *at, const char *pmu)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-\\";
	size_t n_pmu = strlen(pmu);
	if (strncasecmp(at, pmu, n_pmu) != 0 || at[n_pmu] != '@')
		return 0;
	size_t n = strspn(at + n_pmu + 1, plain);
	const char *end = at + n_pmu + 1 + n;
	/* a letter behind it is a modifier */
	return n > 0 && *end == '@' && !isalpha((unsigned char)end[1]) ? n_pmu + n + 2 : 0;
}

/* The formula, without the PMU in events of the row's own PMU: newer files name it there. */
static const char *without_pmu(const struct reader *r, const char *text, const char *pmu)
{
	char *made = pool_text(r->pool, text), *to = made;
	if (!made)
		return NULL;
	for (const char *at = text; *at;) {
		size_t n = named_for(at, pmu), n_pmu = strlen(pmu);
		if (n == 0) {
			*to++ = *at++;
			continue;
		}
		memcpy(to, at + n_pmu + 1, n - n_pmu - 2);
		to += n - n_pmu - 2;
		at += n;
	}
	*to = '\0';
	return made;
}

static int take_texts(const struct reader *r, const struct node *row, struct platform_metric *m)
{
	const char *formula = foreign_text(row, "MetricExpr");
	if (formula && m->pmu && !(formula = without_pmu(r, formula, m->pmu)))
		return -ENOMEM;
	const struct metric_texts texts = {
		formula,
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
	const struct platform_metric *base, const char *pmu, struct list *metrics)
{
	struct platform_metric m = {.says = "", .scale = 1, .unit = "", .third_party = true};
	if (base)
		m = *base;
	m.pmu = pmu;
	int error = take_texts(r, row, &m);
	if (error)
		return error;
	struct platform_metric *known = known_metric(metrics, m.name, pmu);
	if (known) {
		*known = m;
		return 0;
	}
	if (metrics->n == PLATFORM_METRICS_MAX)
		return reader_wrong(r, row->line, "more than %d metrics", PLATFORM_METRICS_MAX);
	return list_append(metrics, &m, 1);
}
