/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The grammar of quirks: one row per kind, with its keys and its effect on the platform. A quirk is
 * a fact about a core that the kernel does not provide and that changes what mperf does or may
 * claim.
 */
#include "platform-db/draft.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define N(table) (sizeof(table) / sizeof(table[0]))
#define AT(member) offsetof(struct quirk, member)

static const char *const overflow_names[] = {"all", "programmable", "none", NULL};
enum { FILTER_FIXED_NONE, FILTER_NONE };
static const char *const filter_names[] = {"fixed-none", "none", NULL};
static const char *const cache_names[] = {"data", "instruction", "unified", NULL};
/* In the order of enum platform_field_kind. */
static const char *const holds_names[] = {"number", "event", "set", "operation", "inhibit", NULL};
static const char *const kind_names[] = {"leader", "overflow", "mode-filter", "counters", "vector",
	"cache", "peak", "issue", "selector", "field", "missing", "note", NULL};
_Static_assert(N(kind_names) == N_QUIRKS + 1, "a name for each kind");

#define EVERY_QUIRK                                                                                \
	{"quirk", FIELD_CHOICE, AT(kind), true, 0, kind_names},                                    \
		{"source", FIELD_TEXT, AT(origin.source), true},                                   \
	{                                                                                          \
		"verified", FIELD_TEXT, AT(origin.verified), true                                  \
	}

static const struct field leader_fields[] = {
	EVERY_QUIRK,
	{"user", FIELD_NAME, AT(leader[0])},
	{"kernel", FIELD_NAME, AT(leader[1])},
	{"machine", FIELD_NAME, AT(leader[2])},
	{"says", FIELD_TEXT, AT(says)},
};
static const struct field overflow_fields[] = {
	EVERY_QUIRK,
	{"counters", FIELD_CHOICE, AT(overflow), true, 0, overflow_names},
	{"says", FIELD_TEXT, AT(says)},
};
static const struct field mode_filter_fields[] = {
	EVERY_QUIRK,
	{"filter", FIELD_CHOICE, AT(filter), true, 0, filter_names},
	{"events", FIELD_RANGE, AT(events)},
	{"says", FIELD_TEXT, AT(says), true},
};
static const struct field counters_fields[] = {
	EVERY_QUIRK,
	{"events", FIELD_RANGE, AT(events)},
	{"mask", FIELD_CODE, AT(mask)},
	{"event_plus", FIELD_CODE, AT(n_counter_offset)},
	{"says", FIELD_TEXT, AT(says)},
};
static const struct field vector_fields[] = {
	EVERY_QUIRK,
	{"bits", FIELD_COUNT, AT(bits), true, 65536},
	{"says", FIELD_TEXT, AT(says)},
};
static const struct field cache_fields[] = {
	EVERY_QUIRK,
	{"level", FIELD_COUNT, AT(level), true, 5},
	{"kind", FIELD_CHOICE, AT(cache_kind), true, 0, cache_names},
	{"kib", FIELD_COUNT, AT(kib), true, 1u << 21},
	{"line_bytes", FIELD_COUNT, AT(line_bytes), false, 4096},
	{"shared_by", FIELD_COUNT, AT(shared_by), false, 4096},
};
static const struct field peak_fields[] = {
	EVERY_QUIRK,
	{"precision", FIELD_NAME, AT(precision), true},
	{"unit", FIELD_NAME, AT(unit), true},
	{"ops_per_cycle", FIELD_REAL, AT(ops_per_cycle), true},
};
static const struct field issue_fields[] = {
	EVERY_QUIRK,
	{"width", FIELD_COUNT, AT(width), false, 64},
	{"slots", FIELD_COUNT, AT(slots), false, 64},
};
static const struct field selector_fields[] = {
	EVERY_QUIRK,
	{"name", FIELD_NAME, AT(name), true},
	{"says", FIELD_TEXT, AT(says)},
};
static const struct field field_fields[] = {
	EVERY_QUIRK,
	{"name", FIELD_NAME, AT(name), true},
	{"bits", FIELD_TEXT, AT(bits_text), true},
	{"holds", FIELD_CHOICE, AT(holds), false, 0, holds_names},
	{"joins", FIELD_NAMES, AT(joins)},
	{"values", FIELD_NAMES, AT(values)},
	{"says", FIELD_TEXT, AT(says)},
};
static const struct field missing_fields[] = {
	EVERY_QUIRK,
	{"metrics", FIELD_NAMES, AT(metrics), true},
	{"says", FIELD_TEXT, AT(says), true},
};
static const struct field note_fields[] = {
	EVERY_QUIRK,
	{"says", FIELD_TEXT, AT(says), true},
};

/* --- what each does --------------------------------------------------------------------------- */

static int wrong_at(const struct build *b, const struct quirk *q, const char *text)
{
	struct reader r = *b->reader;
	r.file = q->origin.file;
	return reader_wrong(&r, q->origin.line, "%s", text);
}

static int add_note(struct build *b, const struct quirk *q)
{
	if (!q->says)
		return 0;
	struct platform_note *note = list_add(&b->notes);
	if (!note)
		return -ENOMEM;
	*note = (struct platform_note){q->says, q->origin};
	return 0;
}

/* "r22", as in -e: an event that is not listed. */
static int raw_event(struct build *b, const struct quirk *q, const char *name,
	const struct platform_event **ret_event)
{
	char code[32];
	uint64_t number;
	if (name[0] != 'r' || snprintf(code, sizeof(code), "0x%s", name + 1) >= (int)sizeof(code) ||
		!code_parse(code, &number)) {
		struct reader r = *b->reader;
		r.file = q->origin.file;
		return reader_wrong(&r, q->origin.line,
			"the leader '%s' is neither an event of %s nor a raw code such as r22",
			name, b->platform->name);
	}
	struct platform_event *e = pool_take(b->reader->pool, sizeof(*e));
	if (!e)
		return -ENOMEM;
	*e = (struct platform_event){
		.name = name, .topic = "leader", .says = "", .code = number, .origin = q->origin};
	*ret_event = e;
	return 0;
}

static int apply_leader(struct build *b, const struct quirk *q)
{
	const struct platform_event **to[] = {&b->platform->leader_user,
		&b->platform->leader_kernel, &b->platform->leader_machine};
	for (size_t i = 0; i < N(to); i++) {
		if (!q->leader[i])
			continue;
		if (*to[i])
			return wrong_at(b, q, "a second leader for the same mode");
		*to[i] = platform_event_find(b->platform, q->leader[i]);
		int error = *to[i] ? 0 : raw_event(b, q, q->leader[i], to[i]);
		if (error)
			return error;
	}
	return add_note(b, q);
}

static int apply_overflow(struct build *b, const struct quirk *q)
{
	static const enum platform_overflow means[] = {
		PLATFORM_OVERFLOW_ALL, PLATFORM_OVERFLOW_PROGRAMMABLE, PLATFORM_OVERFLOW_NONE};
	if (b->platform->overflow)
		return wrong_at(b, q, "a second statement about overflow");
	b->platform->overflow = means[q->overflow];
	return add_note(b, q);
}

static struct platform_range range_of(const struct quirk *q)
{
	return (struct platform_range){
		.first = q->events.first,
		.last = q->events.last,
		.counters = q->mask,
		.offset = (int)q->n_counter_offset,
		.says = q->says ? q->says : "",
		.origin = q->origin,
	};
}

static int add_range(struct build *b, const struct quirk *q, struct list *to)
{
	if (to->n == PLATFORM_RANGES_MAX)
		return wrong_at(b, q, "more ranges of events than a core has");
	struct platform_range *range = list_add(to);
	if (!range)
		return -ENOMEM;
	*range = range_of(q);
	return 0;
}

static int apply_mode_filter(struct build *b, const struct quirk *q)
{
	if (q->filter == FILTER_FIXED_NONE && !q->has_events) {
		b->platform->fixed_unfiltered = true;
		return add_note(b, q);
	}
	if (q->filter == FILTER_FIXED_NONE || !q->has_events)
		return wrong_at(b, q,
			"a mode-filter needs 'fixed-none' without 'events', or 'none' with "
			"'events'");
	int error = add_range(b, q, &b->unfiltered);
	return error ? error : add_note(b, q);
}

static int apply_counters(struct build *b, const struct quirk *q)
{
	if ((q->mask != 0) == q->has_offset)
		return wrong_at(b, q, "a counters quirk needs either 'mask' or 'event_plus'");
	if (q->has_offset && !q->has_events)
		return wrong_at(b, q, "'event_plus' needs a range of 'events'");
	if (q->n_counter_offset > 63)
		return wrong_at(b, q, "'event_plus' is beyond the last counter");
	if (q->has_events) {
		int error = add_range(b, q, &b->ranges);
		return error ? error : add_note(b, q);
	}
	if (b->platform->counters)
		return wrong_at(b, q, "a second mask for all events");
	b->platform->counters = q->mask;
	return add_note(b, q);
}

static int apply_vector(struct build *b, const struct quirk *q)
{
	if (b->platform->vector_bits)
		return wrong_at(b, q, "a second vector length");
	b->platform->vector_bits = q->bits;
	b->platform->vector_says = q->says ? q->says : "";
	return 0;
}

static int apply_cache(struct build *b, const struct quirk *q)
{
	const struct platform_cache *have = b->caches.items;
	const char kind = "diu"[q->cache_kind];
	if (b->caches.n == PLATFORM_CACHES_MAX)
		return wrong_at(b, q, "more caches than a core has");
	for (size_t i = 0; i < b->caches.n; i++)
		if (have[i].level == (int)q->level && have[i].kind == kind)
			return wrong_at(b, q, "a second cache of that level and kind");
	struct platform_cache *cache = list_add(&b->caches);
	if (!cache)
		return -ENOMEM;
	*cache = (struct platform_cache){
		.level = (int)q->level,
		.kind = kind,
		.bytes = (uint64_t)q->kib << 10,
		.line_bytes = q->line_bytes,
		.shared_by = q->shared_by,
		.origin = q->origin,
	};
	return 0;
}

static int apply_peak(struct build *b, const struct quirk *q)
{
	const struct platform_peak *have = b->peaks.items;
	if (b->peaks.n == PLATFORM_PEAKS_MAX)
		return wrong_at(b, q, "more peaks than a core has");
	if (strcmp(q->unit, "scalar") != 0 && strcmp(q->unit, "vector") != 0)
		return wrong_at(b, q, "'unit' is scalar or vector");
	for (size_t i = 0; i < b->peaks.n; i++)
		if (strcmp(have[i].precision, q->precision) == 0 &&
			strcmp(have[i].unit, q->unit) == 0)
			return wrong_at(b, q, "a second peak of that precision and unit");
	struct platform_peak *peak = list_add(&b->peaks);
	if (!peak)
		return -ENOMEM;
	*peak = (struct platform_peak){q->precision, q->unit, q->ops_per_cycle, q->origin};
	return 0;
}

static int apply_issue(struct build *b, const struct quirk *q)
{
	if (!q->width && !q->slots)
		return wrong_at(b, q, "an issue quirk needs 'width', 'slots' or both");
	if ((q->width && b->platform->issue_width) || (q->slots && b->platform->slots))
		return wrong_at(b, q, "a second statement about issue");
	if (q->width)
		b->platform->issue_width = q->width;
	if (q->slots)
		b->platform->slots = q->slots;
	return 0;
}

static int apply_selector(struct build *b, const struct quirk *q)
{
	if (*b->platform->selector)
		return wrong_at(b, q, "a second selector");
	b->platform->selector = q->name;
	return add_note(b, q);
}

static int apply_missing(struct build *b, const struct quirk *q)
{
	for (size_t i = 0; i < q->metrics.n; i++) {
		struct platform_lack *lack = list_add(&b->lacks);
		if (!lack)
			return -ENOMEM;
		*lack = (struct platform_lack){q->metrics.name[i], q->says, q->origin};
	}
	return 0;
}

static const struct {
	const struct field *fields;
	size_t n_fields;
	int (*apply)(struct build *b, const struct quirk *q);
} kinds[N_QUIRKS] = {
	[QUIRK_LEADER] = {leader_fields, N(leader_fields), apply_leader},
	[QUIRK_OVERFLOW] = {overflow_fields, N(overflow_fields), apply_overflow},
	[QUIRK_MODE_FILTER] = {mode_filter_fields, N(mode_filter_fields), apply_mode_filter},
	[QUIRK_COUNTERS] = {counters_fields, N(counters_fields), apply_counters},
	[QUIRK_VECTOR] = {vector_fields, N(vector_fields), apply_vector},
	[QUIRK_CACHE] = {cache_fields, N(cache_fields), apply_cache},
	[QUIRK_PEAK] = {peak_fields, N(peak_fields), apply_peak},
	[QUIRK_ISSUE] = {issue_fields, N(issue_fields), apply_issue},
	[QUIRK_SELECTOR] = {selector_fields, N(selector_fields), apply_selector},
	[QUIRK_FIELD] = {field_fields, N(field_fields), field_apply},
	[QUIRK_MISSING] = {missing_fields, N(missing_fields), apply_missing},
	[QUIRK_NOTE] = {note_fields, N(note_fields), add_note},
};

int quirk_apply(struct build *b, const struct quirk *q)
{
	return kinds[q->kind].apply(b, q);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* The position in `kinds`, or -1. */
static int kind_find(const struct node *row)
{
	const struct node *name = row->type == NODE_OBJECT ? node_get(row, "quirk") : NULL;
	for (int kind = 0; name && name->type == NODE_TEXT && kind < N_QUIRKS; kind++)
		if (strcmp(name->text, kind_names[kind]) == 0)
			return kind;
	return -1;
}

static int quirk_take(const struct reader *r, const struct node *row, struct list *quirks)
{
	char what[64];
	int kind = kind_find(row);
	struct quirk v = {.origin = {.file = r->file, .line = row->line}};
	if (kind < 0)
		return reader_wrong(r, row->line,
			"a quirk needs a 'quirk' that is one of: leader, overflow, mode-filter, "
			"counters, vector, cache, peak, issue, selector, field, missing, note");
	snprintf(what, sizeof(what), "a quirk of kind %s", kind_names[kind]);
	const struct grammar grammar = {what, kinds[kind].fields, kinds[kind].n_fields};
	int error = reader_fields(r, row, &grammar, &v);
	if (error)
		return error;
	v.has_events = node_get(row, "events") != NULL;
	v.has_offset = node_get(row, "event_plus") != NULL;

	struct quirk *q = list_add(quirks);
	if (!q)
		return -ENOMEM;
	*q = v;
	return 0;
}

int quirks_take(const struct reader *r, const struct node *array, struct list *quirks)
{
	if (array->type != NODE_ARRAY)
		return reader_wrong(r, array->line, "'quirks' is not a list");
	for (size_t i = 0; i < array->n_children; i++) {
		int error = quirk_take(r, &array->child[i], quirks);
		if (error)
			return error;
	}
	return 0;
}
