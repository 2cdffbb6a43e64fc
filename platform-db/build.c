/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * From a draft to a platform: sort events, check that names are unique, find generic events, apply
 * quirks. Errors that show only when all files are read are found here.
 */
#include "platform-db/draft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int wrong_at(const struct reader *r, const struct platform_origin *at, const char *format,
	const char *name, const struct platform_origin *other)
{
	struct reader there = *r;
	there.file = at->file;
	return reader_wrong(&there, at->line, format, name, other->file, other->line);
}

/* --- events ----------------------------------------------------------------------------------- */

static int by_topic(const void *a, const void *b)
{
	const struct draft_event *const *x = a, *const *y = b;
	int order = strcmp((*x)->event.topic, (*y)->event.topic);
	return order ? order : (*x > *y) - (*x < *y); /* as in the files */
}

static int place_events(struct build *b, const struct draft *d)
{
	const struct draft_event *from = d->events.items;
	const size_t n = d->events.n;
	if (n == 0)
		return 0;
	_cleanup_(freep) const struct draft_event **order = calloc(n, sizeof(*order));
	struct platform_event *event = pool_take(b->reader->pool, n * sizeof(*event));
	if (!order || !event)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = &from[i];
	qsort(order, n, sizeof(*order), by_topic);
	for (size_t i = 0; i < n; i++)
		event[i] = order[i]->event;
	b->event = event;
	b->platform->event = event;
	b->platform->n_events = n;
	return 0;
}

struct named {
	const char *name;
	const struct platform_origin *origin;
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = strcasecmp(x->name, y->name);
	return order ? order : x->origin->line - y->origin->line;
}

static int check_names(const struct reader *r, const struct platform *p)
{
	struct list names = LIST_OF(struct named);
	int error = 0;
	for (size_t i = 0; i < p->n_events && !error; i++) {
		const struct platform_event *e = &p->event[i];
		for (size_t j = 0; j <= e->n_aliases && !error; j++) {
			const struct named one = {j ? e->aliases[j - 1] : e->name, &e->origin};
			error = list_append(&names, &one, 1);
		}
	}
	if (!error && names.n > 0)
		qsort(names.items, names.n, names.each, by_name);
	const struct named *name = names.items;
	for (size_t i = 1; i < names.n && !error; i++)
		if (strcasecmp(name[i].name, name[i - 1].name) == 0)
			error = wrong_at(r, name[i].origin,
				"a second event named %s; the first is at %s:%d", name[i].name,
				name[i - 1].origin);
	list_clear(&names);
	return error;
}

/* --- generic events --------------------------------------------------------------------------- */

static int add_generic(struct build *b, const struct platform_event *e, const char *name)
{
	struct platform_generic g = {.event = e};
	if (!generic_find(name, &g.type, &g.config))
		return -EINVAL; /* checked when it was read */
	const struct platform_generic *have = b->generics.items;
	for (size_t i = 0; i < b->generics.n; i++)
		if (have[i].type == g.type && have[i].config == g.config)
			return wrong_at(b->reader, &e->origin,
				"a second event is mapped to the generic %s; the first is at %s:%d",
				name, &have[i].event->origin);
	return list_append(&b->generics, &g, 1);
}

static int place_generics(struct build *b, const struct draft *d)
{
	const struct draft_event *from = d->events.items;
	for (size_t i = 0; i < d->events.n; i++) {
		if (from[i].generics.n == 0)
			continue;
		const struct platform_event *e =
			platform_event_find(b->platform, from[i].event.name);
		for (size_t j = 0; j < from[i].generics.n; j++) {
			int error = add_generic(b, e, from[i].generics.name[j]);
			if (error)
				return error;
		}
	}
	return 0;
}

/* --- quirks ----------------------------------------------------------------------------------- */

/* Apply the rules on ranges of codes to each event. */
static void apply_ranges(const struct platform *p, struct platform_event *event)
{
	for (size_t i = 0; i < p->n_events; i++) {
		if (!event[i].counters)
			event[i].counters = platform_counters(p, event[i].code);
		event[i].ignores_exclude_kernel = platform_unfiltered(p, event[i].code) != NULL;
	}
}

/* Copy a list to the pool. */
static int place(const struct reader *r, const struct list *l, void *ret_pointer, size_t *ret_n)
{
	void *items = pool_copy(r->pool, l->items, l->n * l->each);
	if (!items)
		return -ENOMEM;
	memcpy(ret_pointer, &items, sizeof(items));
	*ret_n = l->n;
	return 0;
}

static int place_all(struct build *b, const struct draft *d)
{
	struct platform *p = b->platform;
	const struct reader *r = b->reader;
	if (place(r, &b->generics, &p->generics, &p->n_generics) < 0 ||
		place(r, &d->metrics, &p->metric, &p->n_metrics) < 0 ||
		place(r, &b->ranges, &p->counter_rule, &p->n_counter_rules) < 0 ||
		place(r, &b->unfiltered, &p->unfiltered, &p->n_unfiltered) < 0 ||
		place(r, &b->caches, &p->cache, &p->n_caches) < 0 ||
		place(r, &b->peaks, &p->peak, &p->n_peaks) < 0 ||
		place(r, &b->fields, &p->field, &p->n_fields) < 0 ||
		place(r, &b->lacks, &p->lack, &p->n_lacks) < 0 ||
		place(r, &b->notes, &p->note, &p->n_notes) < 0)
		return -ENOMEM;
	apply_ranges(p, b->event);
	return 0;
}

/* A core cannot both lack a metric and have it, except that a third party may define one that we
 * say it lacks. */
static int check_lacks(const struct build *b)
{
	const struct platform *p = b->platform;
	for (size_t i = 0; i < p->n_lacks; i++) {
		const struct platform_lack *lack = &p->lack[i];
		const struct platform_metric *m = platform_metric_find(p, lack->metric);
		struct reader there = *b->reader;
		there.file = lack->origin.file;
		if (m && !m->third_party)
			return reader_wrong(&there, lack->origin.line,
				"%s lacks the metric %s, and has it", p->name, m->name);
	}
	return 0;
}

static int build(struct build *b, const struct draft *d)
{
	int error = place_events(b, d);
	if (!error)
		error = check_names(b->reader, b->platform);
	if (!error)
		error = place_generics(b, d);
	const struct quirk *q = d->quirks.items;
	for (size_t i = 0; i < d->quirks.n && !error; i++)
		error = quirk_apply(b, &q[i]);
	if (!error)
		error = fields_check(b);
	if (!error)
		error = place_all(b, d);
	if (!error)
		error = check_lacks(b);
	return error ? error : metrics_check(b->reader, b->platform);
}

int draft_build(const struct reader *r, const struct draft *d, const struct platform **ret_platform)
{
	if (!d->title || !d->arch)
		return reader_wrong(r, d->origin.line,
			"'%s' is not a known platform; a new one needs a 'title' and an "
			"'arch'",
			d->name);
	struct platform *p = pool_take(r->pool, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct platform){
		.name = d->name,
		.title = d->title,
		.arch = d->arch,
		.origin = d->origin,
		.vector_says = "",
		.selector = "",
	};
	struct build b = {
		.reader = r,
		.platform = p,
		.ranges = LIST_OF(struct platform_range),
		.unfiltered = LIST_OF(struct platform_range),
		.caches = LIST_OF(struct platform_cache),
		.peaks = LIST_OF(struct platform_peak),
		.lacks = LIST_OF(struct platform_lack),
		.notes = LIST_OF(struct platform_note),
		.fields = LIST_OF(struct platform_field),
		.generics = LIST_OF(struct platform_generic),
	};
	int error = build(&b, d);
	list_clear(&b.ranges);
	list_clear(&b.unfiltered);
	list_clear(&b.caches);
	list_clear(&b.peaks);
	list_clear(&b.lacks);
	list_clear(&b.notes);
	list_clear(&b.fields);
	list_clear(&b.generics);
	if (error == 0)
		*ret_platform = p;
	return error;
}
