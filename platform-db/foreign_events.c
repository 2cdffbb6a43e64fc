/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One file of events and metrics in a third-party format. These files have keys that we do not use
 * (about eighty), so unknown ones are skipped; events of units outside the core are skipped too. An
 * event that refers to another ("ArchStdEvent") is a copy of it, overridden by the event's own
 * keys.
 *
 * Source: jevents.py of Linux 6.12 for keys; the keys of the paper are from its section 3.3.
 */
#include "platform-db/foreign.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COUNTERS_MAX 64
#define FIXED_COUNTERS                                                                             \
	32 /* Source: INTEL_PMC_IDX_FIXED, arch/x86/include/asm/perf_event.h of Linux 6.12 */

static const char *either(const struct node *row, const char *key, const char *paper_key)
{
	const char *text = foreign_text(row, key);
	return text ? text : foreign_text(row, paper_key);
}

/* A set bit forbids a counter; the mask covers as many counters as it has bits, since the paper's
 * 0xF8FF allows 8, 9 and 10, but not 16 and above. */
static bool inverted_mask(const char *text, uint64_t *ret_counters)
{
	uint64_t forbidden;
	size_t n = strlen(text);
	if (n < 3 || strncasecmp(text, "0x", 2) != 0 || !code_parse(text, &forbidden))
		return false;
	unsigned n_counters = (unsigned)(n - 2) * 4;
	uint64_t all = n_counters < COUNTERS_MAX ? (UINT64_C(1) << n_counters) - 1 : UINT64_MAX;
	*ret_counters = ~forbidden & all;
	return true;
}

static bool is_name(const char *text)
{
	return strlen(text) <= NAME_BYTES_MAX && *text != '-' && *text != '.' &&
	       !strpbrk(text, " ,{}/\"'\\\t\n\r");
}

/* Events of units outside the core. */
static bool is_elsewhere(const struct node *row)
{
	const char *unit = foreign_text(row, "Unit");
	return unit && strcasecmp(unit, "core") != 0 && strncasecmp(unit, "cpu", 3) != 0;
}

static const struct draft_event *standard_find(
	const struct foreign_rows *standard, const char *name)
{
	const struct draft_event *e = standard ? standard->events->items : NULL;
	for (size_t i = 0; e && i < standard->events->n; i++)
		if (strcasecmp(e[i].event.name, name) == 0)
			return &e[i];
	return NULL;
}

/* "cpu_atom": rows of one kind of hart, in a pool. NULL: of all. */
static int pmu_of(const struct reader *r, const struct node *row, const char **ret_pmu)
{
	const char *unit = foreign_text(row, "Unit");
	bool is_kind = unit && strncasecmp(unit, "cpu_", 4) == 0;
	*ret_pmu = is_kind ? pool_text(r->pool, unit) : NULL;
	return is_kind && !*ret_pmu ? -ENOMEM : 0;
}

/* Events that the same file, or another one of the core, already has: the later one wins. */
static struct draft_event *place_for(struct list *events, const char *name, const char *pmu)
{
	struct draft_event *e = events->items;
	for (size_t i = 0; i < events->n; i++)
		if (strcasecmp(e[i].event.name, name) == 0 && foreign_same_pmu(e[i].pmu, pmu))
			return &e[i];
	return events->n < PLATFORM_EVENTS_MAX ? list_add(events) : NULL;
}

/* "floating-point" of ".../floating-point.json". */
static const char *topic_of(const struct reader *r)
{
	char topic[64];
	const char *slash = strrchr(r->file, '/');
	snprintf(topic, sizeof(topic), "%s", slash ? slash + 1 : r->file);
	char *dot = strrchr(topic, '.');
	if (dot)
		*dot = '\0';
	return pool_text(r->pool, topic);
}

/* Intel's "0,1,2,3" and "Fixed counter 1"; fixed counters begin at bit 32, as in perf. Other texts
 * are of units outside the core, or mean no limit. */
static bool counter_list(const char *text, uint64_t *ret_counters)
{
	static const char fixed[] = "Fixed counter ";
	uint64_t counters = 0;
	unsigned from = 0;
	if (strncasecmp(text, fixed, strlen(fixed)) == 0) {
		from = FIXED_COUNTERS;
		text += strlen(fixed);
	}
	for (;; text++) {
		char *end;
		unsigned long counter = strtoul(text, &end, 10);
		if (end == text || !isdigit((unsigned char)*text) || counter + from >= COUNTERS_MAX)
			return false;
		counters |= UINT64_C(1) << (counter + from);
		text = end;
		if (*text != ',')
			break;
	}
	if (*text)
		return false;
	*ret_counters = counters;
	return true;
}

static int take_counters(const struct reader *r, const struct node *row, enum platform_arch arch,
	uint64_t *ret_counters)
{
	const char *mask = foreign_text(row, "Counter Mask");
	const char *list = arch == PLATFORM_ARCH_X86 ? foreign_text(row, "Counter") : NULL;
	if (list)
		counter_list(list, ret_counters);
	if (!mask || inverted_mask(mask, ret_counters))
		return 0;
	return reader_wrong(r, node_get(row, "Counter Mask")->line,
		"'Counter Mask' is not a hexadecimal mask: '%.32s'", mask);
}

/* Apply the row to *e. With READ_WRONG the error is reported and the event unchanged. */
static int fill(const struct reader *r, const struct node *row, enum platform_arch arch,
	struct platform_event *e)
{
	const char *name = either(row, "EventName", "Event Name");
	const char *says = either(row, "BriefDescription", "Brief Description");
	if (!says)
		says = either(row, "PublicDescription", "Public Description");
	if (name && !is_name(name))
		return reader_wrong(r, row->line, "'%.64s' is not an event name", name);
	if (name)
		e->name = pool_text(r->pool, name);
	if (says)
		e->says = foreign_line(r, says);
	e->origin = (struct platform_origin){r->file, "no", r->file, row->line};
	if (!e->name || !e->says)
		return -ENOMEM;
	return take_counters(r, row, arch, &e->counters);
}

static int take_event(const struct reader *r, const struct node *row, const char *topic,
	const struct draft_event *base, const struct foreign_rows *to)
{
	struct platform_event e = {.says = ""};
	const char *name = either(row, "EventName", "Event Name"), *pmu;
	if (!base && !name)
		return 0;
	if (base)
		e = base->event;
	e.topic = topic;
	int error = foreign_code(r, row, to->arch, !base, &e);
	if (!error)
		error = fill(r, row, to->arch, &e);
	if (!error)
		error = pmu_of(r, row, &pmu);
	if (error)
		return error;

	struct draft_event *place = place_for(to->events, e.name, pmu);
	if (!place)
		return to->events->n < PLATFORM_EVENTS_MAX
			       ? -ENOMEM
			       : reader_wrong(
					 r, row->line, "more than %d events", PLATFORM_EVENTS_MAX);
	place->event = e;
	place->pmu = pmu;
	return 0;
}

static int take_row(const struct reader *r, const struct node *row, const char *topic,
	const struct foreign_rows *standard, const struct foreign_rows *to)
{
	if (row->type != NODE_OBJECT)
		return reader_wrong(r, row->line, "an event must be an object in braces");
	if (is_elsewhere(row))
		return 0;
	const char *base_name = foreign_text(row, "ArchStdEvent");
	const struct draft_event *event = base_name ? standard_find(standard, base_name) : NULL;
	const struct platform_metric *metric =
		base_name && standard ? foreign_metric_find(standard->metrics, base_name) : NULL;
	if (base_name && !event && !metric)
		return reader_wrong(r, row->line,
			"no file next to mapfile.csv has the standard event %.64s", base_name);
	if (!metric && !foreign_text(row, "MetricExpr"))
		return take_event(r, row, topic, event, to);
	const char *pmu;
	int error = pmu_of(r, row, &pmu);
	return error ? error : foreign_metric(r, row, metric, pmu, to->metrics);
}

int foreign_events(const struct reader *r, const struct node *root,
	const struct foreign_rows *standard, const struct foreign_rows *to)
{
	const char *topic = topic_of(r);
	int wrong = 0;
	if (!topic)
		return -ENOMEM;
	if (root->type != NODE_ARRAY)
		/* The paper shows a single event without an array. */
		return take_row(r, root, topic, standard, to);
	for (size_t i = 0; i < root->n_children; i++) {
		int error = take_row(r, &root->child[i], topic, standard, to);
		if (error < 0)
			return error;
		wrong |= error;
	}
	return wrong;
}
