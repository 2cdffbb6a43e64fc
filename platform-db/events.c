/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A list of events gives its source once; an event from another source gives its own.
 */
#include "platform-db/draft.h"

#include <errno.h>

struct row {
	const char *name, *topic, *says, *source, *verified;
	uint64_t code, counters;
	struct names aliases, generics;
};

#define AT(member) offsetof(struct row, member)
static const struct field row_fields[] = {
	{"name", FIELD_NAME, AT(name), true},
	{"code", FIELD_CODE, AT(code), true},
	{"topic", FIELD_NAME, AT(topic)},
	{"says", FIELD_TEXT, AT(says)},
	{"aliases", FIELD_NAMES, AT(aliases)},
	{"generic", FIELD_NAMES, AT(generics)},
	{"counters", FIELD_CODE, AT(counters)},
	{"source", FIELD_TEXT, AT(source)},
	{"verified", FIELD_TEXT, AT(verified)},
};
#undef AT

static int check_generics(const struct reader *r, const struct node *row, const struct names *names)
{
	uint32_t type;
	uint64_t config;
	const struct node *at = names->n ? node_get(row, "generic") : NULL;
	if (names->n > GENERICS_MAX)
		return reader_wrong(r, at->line, "one event is mapped to more than %d generic ones",
			GENERICS_MAX);
	for (size_t i = 0; i < names->n; i++)
		if (!generic_find(names->name[i], &type, &config))
			return reader_wrong(r, at->line,
				"'%s' is not a generic event; they are written as perf list does, "
				"such as branch-misses or L1-dcache-load-misses",
				names->name[i]);
	return 0;
}

static int event_take(const struct reader *r, const struct node *node, const char *topic,
	const struct platform_origin *origin, struct list *events)
{
	struct row v = {.topic = topic, .source = origin->source, .verified = origin->verified};
	const struct grammar grammar = GRAMMAR("an event", row_fields);
	int error = reader_fields(r, node, &grammar, &v);
	if (!error)
		error = check_generics(r, node, &v.generics);
	if (error)
		return error;
	if (!v.topic)
		return reader_wrong(r, node->line, "the event %s lacks its 'topic'", v.name);
	if (!v.source || !v.verified)
		return reader_wrong(r, node->line, "the event %s lacks '%s', and so does its list",
			v.name, v.source ? "verified" : "source");
	if (events->n == PLATFORM_EVENTS_MAX)
		return reader_wrong(r, node->line, "more than %d events", PLATFORM_EVENTS_MAX);

	struct draft_event *e = list_add(events);
	if (!e)
		return -ENOMEM;
	e->generics = v.generics;
	e->event = (struct platform_event){
		.name = v.name,
		.topic = v.topic,
		.says = v.says ? v.says : "",
		.aliases = v.aliases.name,
		.n_aliases = v.aliases.n,
		.code = v.code,
		.counters = v.counters,
		.origin = {v.source, v.verified, r->file, node->line},
	};
	return 0;
}

int events_take(const struct reader *r, const struct node *array, const char *topic,
	const struct platform_origin *origin, struct list *events)
{
	if (array->type != NODE_ARRAY)
		return reader_wrong(r, array->line, "'events' is not a list");
	for (size_t i = 0; i < array->n_children; i++) {
		int error = event_take(r, &array->child[i], topic, origin, events);
		if (error)
			return error;
	}
	return 0;
}

struct head {
	const char *topic, *source, *verified, *note;
	const struct node *events, *metrics;
};

#define AT(member) offsetof(struct head, member)
static const struct field head_fields[] = {
	{"topic", FIELD_NAME, AT(topic), true},
	{"source", FIELD_TEXT, AT(source), true},
	{"verified", FIELD_TEXT, AT(verified), true},
	{"note", FIELD_TEXT, AT(note)},
	{"events", FIELD_NODE, AT(events)},
	{"metrics", FIELD_NODE, AT(metrics)},
};
#undef AT

int events_read(const struct reader *r, struct list *events, struct list *metrics)
{
	const struct node *root;
	const struct grammar grammar = GRAMMAR("a list of events", head_fields);
	struct head head = {0};
	int error = reader_document(r, true, &root);
	if (!error)
		error = reader_fields(r, root, &grammar, &head);
	if (error)
		return error;
	if (!head.events && !head.metrics)
		return reader_wrong(r, root->line, "the list has neither 'events' nor 'metrics'");
	const struct platform_origin origin = {head.source, head.verified, r->file, root->line};
	if (head.events)
		error = events_take(r, head.events, head.topic, &origin, events);
	if (!error && head.metrics)
		error = metrics_take(r, head.metrics, &origin, metrics);
	return error;
}
