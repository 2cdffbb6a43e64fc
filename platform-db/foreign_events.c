/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One file of events in a third-party format. These files have keys that we do not use (about
 * eighty), so unknown ones are skipped; events without a code on the core's own PMU (metrics,
 * uncore units, events that need a second register) are skipped too. An event that refers to
 * another ("ArchStdEvent") is that one, overridden by its own keys.
 *
 * Source: jevents.py of Linux 6.12 for keys and how a code is put together; the keys of the paper
 * are from its section 3.3.
 */
#include "platform-db/foreign.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COUNTERS_MAX 64

static const char *text_of(const struct node *row, const char *key)
{
	const struct node *v = node_get(row, key);
	return v && v->type == NODE_TEXT && *v->text ? v->text : NULL;
}

static const char *either(const struct node *row, const char *key, const char *paper_key)
{
	const char *text = text_of(row, key);
	return text ? text : text_of(row, paper_key);
}

/* A number as text or as itself; of a list such as "0xD0,0xD1" the first. False: not there, or
 * not a number. */
static bool number_of(const struct node *row, const char *key, uint64_t *ret_number)
{
	char first[32];
	const struct node *v = node_get(row, key);
	if (v && v->type == NODE_WHOLE && v->whole >= 0) {
		*ret_number = (uint64_t)v->whole;
		return true;
	}
	if (!v || v->type != NODE_TEXT)
		return false;
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(v->text, ", "), v->text);
	return code_parse(first, ret_number);
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

/* The first sentence or so, on one line. */
static const char *one_line(const struct reader *r, const char *text)
{
	char line[TEXT_BYTES_MAX / 4] = "";
	size_t n = 0;
	while (*text == ' ')
		text++;
	for (; *text && n + 1 < sizeof(line); text++)
		line[n++] = (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text;
	/* Not inside a multi-byte character. */
	while (n > 0 && *text && (line[n - 1] & 0xc0) == 0x80)
		n--;
	if (n > 0 && *text && (line[n - 1] & 0x80))
		n--;
	while (n > 0 && line[n - 1] == ' ')
		n--;
	line[n] = '\0';
	return pool_text(r->pool, line);
}

static bool is_name(const char *text)
{
	return strlen(text) <= NAME_BYTES_MAX && *text != '-' && *text != '.' &&
	       !strpbrk(text, " ,{}/\"'\\\t\n\r");
}

/* Events of units outside the core, and precise ones that need another register. */
static bool is_elsewhere(const struct node *row)
{
	uint64_t number;
	const char *unit = text_of(row, "Unit");
	if (unit && strcasecmp(unit, "core") != 0 && strncasecmp(unit, "cpu", 3) != 0)
		return true;
	return number_of(row, "MSRIndex", &number) && number != 0;
}

static const struct draft_event *standard_find(const struct list *standard, const char *name)
{
	const struct draft_event *e = standard ? standard->items : NULL;
	for (size_t i = 0; e && i < standard->n; i++)
		if (strcasecmp(e[i].event.name, name) == 0)
			return &e[i];
	return NULL;
}

/* Bits of x86's event selector other than the event code. Source: Intel SDM volume 3B,
 * IA32_PERFEVTSELx; format of /sys/bus/event_source/devices/cpu. */
static uint64_t selector_bits(const struct node *row)
{
	static const struct {
		const char *key;
		uint64_t max;
		int shift;
	} bits[] = {
		{"UMask", 0xff, 8},
		{"EdgeDetect", 1, 18},
		{"AnyThread", 1, 21},
		{"Invert", 1, 23},
		{"CounterMask", 0xff, 24},
	};
	uint64_t code = 0, number;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		if (number_of(row, bits[i].key, &number))
			code |= (number & bits[i].max) << bits[i].shift;
	return code;
}

static bool take_code(const struct node *row, uint64_t *ret_code)
{
	uint64_t code;
	if (number_of(row, "ConfigCode", &code)) {
		*ret_code = code;
		return true;
	}
	if (!number_of(row, "EventCode", &code) && !number_of(row, "Event Code", &code))
		return false;
	*ret_code = code | selector_bits(row);
	return true;
}

/* Events that the same file, or another one of the core, already has: the later one wins. */
static struct draft_event *place_for(struct list *events, const char *name)
{
	struct draft_event *e = events->items;
	for (size_t i = 0; i < events->n; i++)
		if (strcasecmp(e[i].event.name, name) == 0)
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

static int take_counters(const struct reader *r, const struct node *row, uint64_t *ret_counters)
{
	const char *mask = text_of(row, "Counter Mask");
	if (!mask || inverted_mask(mask, ret_counters))
		return 0;
	return reader_wrong(r, node_get(row, "Counter Mask")->line,
		"'Counter Mask' is not a hexadecimal mask: '%.32s'", mask);
}

/* Apply the row to *e. With READ_WRONG the error is reported and the event unchanged. */
static int fill(const struct reader *r, const struct node *row, struct platform_event *e)
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
		e->says = one_line(r, says);
	e->origin = (struct platform_origin){r->file, "no", r->file, row->line};
	if (!e->name || !e->says)
		return -ENOMEM;
	return take_counters(r, row, &e->counters);
}

static int take_row(const struct reader *r, const struct node *row, const char *topic,
	const struct list *standard, struct list *events)
{
	struct platform_event e = {.says = "", .topic = topic};
	if (row->type != NODE_OBJECT)
		return reader_wrong(r, row->line, "an event must be an object in braces");
	const char *base = text_of(row, "ArchStdEvent");
	const char *name = either(row, "EventName", "Event Name");
	if ((!base && !name) || is_elsewhere(row))
		return 0;
	if (base) {
		const struct draft_event *found = standard_find(standard, base);
		if (!found)
			return reader_wrong(r, row->line,
				"no file next to mapfile.csv has the standard event %.64s", base);
		e = found->event;
		e.topic = topic;
	}
	if (!take_code(row, &e.code) && !base)
		return name && !text_of(row, "MetricExpr")
			       ? reader_wrong(r, row->line,
					 "the event %.64s has no EventCode or ConfigCode", name)
			       : 0;
	int error = fill(r, row, &e);
	if (error)
		return error;

	struct draft_event *to = place_for(events, e.name);
	if (!to)
		return events->n < PLATFORM_EVENTS_MAX
			       ? -ENOMEM
			       : reader_wrong(
					 r, row->line, "more than %d events", PLATFORM_EVENTS_MAX);
	to->event = e;
	return 0;
}

int foreign_events(const struct reader *r, const struct node *root, const struct list *standard,
	struct list *events)
{
	const char *topic = topic_of(r);
	if (!topic)
		return -ENOMEM;
	if (root->type != NODE_ARRAY)
		/* The paper shows a single event without an array. */
		return take_row(r, root, topic, standard, events);
	for (size_t i = 0; i < root->n_children; i++) {
		int error = take_row(r, &root->child[i], topic, standard, events);
		if (error)
			return error;
	}
	return 0;
}
