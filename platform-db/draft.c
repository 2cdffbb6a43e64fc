/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Reading and merging drafts. An event in a later file replaces the event; a kind of quirk in a
 * later file replaces all quirks of that kind, so that an override that lists two caches does not
 * inherit a third.
 */
#include "platform-db/draft.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CPUS_MAX 64 /* patterns of one platform */

struct draft *draft_new(void)
{
	struct draft *d = calloc(1, sizeof(*d));
	if (d)
		*d = (struct draft){
			.cpus = LIST_OF(struct pattern),
			.events = LIST_OF(struct draft_event),
			.metrics = LIST_OF(struct platform_metric),
			.quirks = LIST_OF(struct quirk),
		};
	return d;
}

struct draft *draft_free(struct draft *d)
{
	if (!d)
		return NULL;
	list_clear(&d->cpus);
	list_clear(&d->events);
	list_clear(&d->metrics);
	list_clear(&d->quirks);
	free(d);
	return NULL;
}

/* --- files of our own ------------------------------------------------------------------------- */

struct row {
	const char *name, *title, *source, *verified;
	int arch;
	struct names lists;
	const struct node *cpus, *events, *metrics, *quirks;
};

#define AT(member) offsetof(struct row, member)
static const struct field row_fields[] = {
	{"platform", FIELD_NAME, AT(name), true},
	{"title", FIELD_TEXT, AT(title)},
	{"arch", FIELD_CHOICE, AT(arch), false, 0, platform_arch_names},
	{"source", FIELD_TEXT, AT(source), true},
	{"verified", FIELD_TEXT, AT(verified), true},
	{"cpus", FIELD_NODE, AT(cpus)},
	{"lists", FIELD_NAMES, AT(lists)},
	{"events", FIELD_NODE, AT(events)},
	{"metrics", FIELD_NODE, AT(metrics)},
	{"quirks", FIELD_NODE, AT(quirks)},
};

static int take_cpus(const struct reader *r, const struct node *array, struct draft *d)
{
	if (array->type != NODE_ARRAY || array->n_children > CPUS_MAX)
		return reader_wrong(r, array->line, "'cpus' is not a list of at most %d", CPUS_MAX);
	for (size_t i = 0; i < array->n_children; i++) {
		struct pattern p;
		int error = pattern_take(r, &array->child[i], &p);
		if (error)
			return error;
		if (p.arch != d->arch)
			return reader_wrong(r, array->child[i].line,
				"the row has another 'arch' than the platform");
		struct pattern *to = list_add(&d->cpus);
		if (!to)
			return -ENOMEM;
		*to = p;
	}
	return 0;
}

static int take_file(const struct reader *r, void *draft)
{
	struct draft *d = draft;
	return events_read(r, &d->events, &d->metrics);
}

static int take_lists(const struct reader *r, const struct node *root, const char *folder,
	const struct names *lists, struct draft *d)
{
	for (size_t i = 0; i < lists->n; i++) {
		int line = node_get(root, "lists")->line;
		_cleanup_(freep) char *path = NULL;
		if (!folder)
			return reader_wrong(r, line, "this file cannot name a folder of events");
		if (asprintf(&path, "%s/%s", folder, lists->name[i]) < 0)
			return -ENOMEM;
		size_t before = d->events.n + d->metrics.n;
		int error = folder_each(r, path, take_file, d);
		if (error == -ENOMEM || error > 0)
			return error;
		if (error)
			return reader_wrong(r, line, "the folder %s cannot be read: %s", path,
				strerror(-error));
		if (d->events.n + d->metrics.n == before)
			return reader_wrong(
				r, line, "the folder %s has neither events nor metrics", path);
	}
	return 0;
}

int draft_read(const struct reader *r, const struct node *root, const char *folder,
	struct draft **ret_draft)
{
	_cleanup_(draft_freep) struct draft *d = draft_new();
	struct row v = {.arch = -1};
	if (!d)
		return -ENOMEM;
	const struct grammar grammar = GRAMMAR("a platform", row_fields);
	int error = reader_fields(r, root, &grammar, &v);
	if (error)
		return error;
	d->name = v.name;
	d->title = v.title;
	d->arch = (enum platform_arch)(v.arch + 1);
	d->origin = (struct platform_origin){v.source, v.verified, r->file, root->line};

	const struct platform_origin nowhere = {0};
	if (v.cpus && v.arch < 0)
		return reader_wrong(r, v.cpus->line, "a platform with 'cpus' needs an 'arch'");
	error = v.cpus ? take_cpus(r, v.cpus, d) : 0;
	if (!error)
		error = take_lists(r, root, folder, &v.lists, d);
	if (!error && v.events)
		error = events_take(r, v.events, NULL, &nowhere, &d->events);
	if (!error && v.metrics)
		error = metrics_take(r, v.metrics, &nowhere, &d->metrics);
	if (!error && v.quirks)
		error = quirks_take(r, v.quirks, &d->quirks);
	if (error)
		return error;
	*ret_draft = TAKE_PTR(d);
	return 0;
}

/* --- one over the other ----------------------------------------------------------------------- */

static bool has_name(const struct platform_event *e, const char *name)
{
	bool found = strcasecmp(e->name, name) == 0;
	for (size_t i = 0; i < e->n_aliases && !found; i++)
		found = strcasecmp(e->aliases[i], name) == 0;
	return found;
}

/* Do they share a name? */
static bool replaces(const struct draft *over, const struct platform_event *e)
{
	const struct draft_event *with = over->events.items;
	for (size_t i = 0; i < over->events.n; i++) {
		if (has_name(e, with[i].event.name))
			return true;
		for (size_t j = 0; j < with[i].event.n_aliases; j++)
			if (has_name(e, with[i].event.aliases[j]))
				return true;
	}
	return false;
}

static bool claims_generic(const struct draft *over, const char *name)
{
	const struct draft_event *with = over->events.items;
	for (size_t i = 0; i < over->events.n; i++)
		for (size_t j = 0; j < with[i].generics.n; j++)
			if (strcmp(with[i].generics.name[j], name) == 0)
				return true;
	return false;
}

/* An event no longer replaces a generic event if a later event does. */
static bool loses_generic(const struct draft *over, const struct draft_event *e)
{
	for (size_t i = 0; i < e->generics.n; i++)
		if (claims_generic(over, e->generics.name[i]))
			return true;
	return false;
}

static bool states_kind(const struct draft *over, int kind)
{
	const struct quirk *q = over->quirks.items;
	for (size_t i = 0; i < over->quirks.n; i++)
		if (q[i].kind == kind)
			return true;
	return false;
}

static int keep_events(const struct draft *base, const struct draft *over, struct draft *to)
{
	const struct draft_event *e = base->events.items;
	for (size_t i = 0; i < base->events.n; i++) {
		if (replaces(over, &e[i].event))
			continue;
		if (list_append(&to->events, &e[i], 1) < 0)
			return -ENOMEM;
		struct draft_event *kept = (struct draft_event *)to->events.items;
		if (loses_generic(over, &e[i]))
			kept[to->events.n - 1].generics = (struct names){0};
	}
	return list_append(&to->events, over->events.items, over->events.n);
}

static const struct platform_metric *metric_find(const struct draft *d, const char *name)
{
	const struct platform_metric *m = d->metrics.items;
	for (size_t i = 0; i < d->metrics.n; i++)
		if (strcasecmp(m[i].name, name) == 0)
			return &m[i];
	return NULL;
}

/* A third party's metric replaces ours and keeps our groups, since it does not know our tree. */
static struct platform_metric in_place_of(
	const struct platform_metric *with, const struct platform_metric *ours)
{
	struct platform_metric m = *with;
	if (!ours || !m.third_party || ours->third_party)
		return m;
	m.kept_group = ours->group;
	m.n_kept_groups = ours->n_groups;
	m.next = ours->next;
	m.n_next = ours->n_next;
	return m;
}

static int keep_metrics(const struct draft *base, const struct draft *over, struct draft *to)
{
	const struct platform_metric *m = base->metrics.items, *with = over->metrics.items;
	for (size_t i = 0; i < base->metrics.n; i++)
		if (!metric_find(over, m[i].name) && list_append(&to->metrics, &m[i], 1) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < over->metrics.n; i++) {
		const struct platform_metric one =
			in_place_of(&with[i], metric_find(base, with[i].name));
		if (list_append(&to->metrics, &one, 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int keep_quirks(const struct draft *base, const struct draft *over, struct draft *to)
{
	const struct quirk *q = base->quirks.items;
	for (size_t i = 0; i < base->quirks.n; i++)
		if (!states_kind(over, q[i].kind) && list_append(&to->quirks, &q[i], 1) < 0)
			return -ENOMEM;
	return list_append(&to->quirks, over->quirks.items, over->quirks.n);
}

static bool is_of_pmu(const char *of, const char *pmu)
{
	return !of || strcasecmp(of, *pmu ? pmu : "cpu_core") == 0;
}

int draft_of_pmu(const struct draft *from, const char *pmu, struct draft **ret_draft)
{
	_cleanup_(draft_freep) struct draft *d = draft_new();
	const struct draft_event *event = from->events.items;
	const struct platform_metric *metric = from->metrics.items;
	if (!d)
		return -ENOMEM;
	d->name = from->name;
	d->title = from->title;
	d->arch = from->arch;
	d->origin = from->origin;
	d->layer = from->layer;
	for (size_t i = 0; i < from->events.n; i++)
		if (is_of_pmu(event[i].pmu, pmu) && list_append(&d->events, &event[i], 1) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < from->metrics.n; i++)
		if (is_of_pmu(metric[i].pmu, pmu) && list_append(&d->metrics, &metric[i], 1) < 0)
			return -ENOMEM;
	*ret_draft = TAKE_PTR(d);
	return 0;
}

int draft_merge(const struct draft *base, const struct draft *over, struct draft **ret_draft)
{
	_cleanup_(draft_freep) struct draft *d = draft_new();
	if (!d)
		return -ENOMEM;
	d->name = base->name;
	d->title = over->title ? over->title : base->title;
	d->arch = over->arch ? over->arch : base->arch;
	d->origin = over->origin;
	d->layer = over->layer;
	if (list_append(&d->cpus, base->cpus.items, base->cpus.n) < 0 ||
		list_append(&d->cpus, over->cpus.items, over->cpus.n) < 0 ||
		keep_events(base, over, d) < 0 || keep_metrics(base, over, d) < 0 ||
		keep_quirks(base, over, d) < 0)
		return -ENOMEM;
	*ret_draft = TAKE_PTR(d);
	return 0;
}
