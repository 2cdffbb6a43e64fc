/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/query/counted.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"

/* --- sums ------------------------------------------------------------------------------------- */

static int find_core(struct counted *c, uint32_t hart, unsigned *ret_core)
{
	uint32_t name = c->loaded.hart[hart].core;
	unsigned i = 0;
	while (i < c->n_cores && c->core[i].name != name)
		i++;
	if (i == COUNTED_CORES_MAX)
		return query_fail(c->loaded.error, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"narrow it with --since or --cpu",
			"more than %d kinds of core were counted", COUNTED_CORES_MAX);
	if (i == c->n_cores)
		c->core[c->n_cores++] = (struct counted_core){.name = name};
	if (hart < HARTS_MAX)
		hart_set_add(&c->core[i].harts, (int)hart);
	*ret_core = i;
	return 0;
}

static int find_event(struct counted *c, unsigned core, unsigned pass, uint32_t event,
	struct counted_event **ret_event)
{
	const struct loaded_event *e = &c->loaded.event[event];
	for (size_t i = 0; i < c->n_events; i++) {
		struct counted_event *at = &c->event[i];
		if (at->core == core && at->pass == pass && at->name == e->name &&
			at->type == e->type && at->config == e->config) {
			*ret_event = at;
			return 0;
		}
	}
	if (c->n_events == COUNTED_EVENTS_MAX)
		return query_fail(c->loaded.error, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"narrow it with --since or --cpu", "more than %d events were counted",
			COUNTED_EVENTS_MAX);
	int r = array_grow(
		&c->event, &c->size_events, (uint32_t)c->n_events + 1, sizeof(*c->event));
	if (r < 0)
		return r;
	c->event[c->n_events] = (struct counted_event){
		.core = core, .pass = pass, .name = e->name, .type = e->type, .config = e->config};
	*ret_event = &c->event[c->n_events++];
	return 0;
}

static void add_to(struct counted_sum *s, const struct scan_reading *r)
{
	s->value += r->value;
	s->enabled_ns += r->enabled_ns;
	s->running_ns += r->running_ns;
}

static int add(struct counted *c, uint32_t hart, unsigned pass, uint32_t window,
	const struct scan_reading *reading)
{
	unsigned core = 0;
	struct counted_event *e = NULL;
	if (!c->loaded.event[reading->event].known || reading->value < 0)
		return 0;
	int r = find_core(c, hart, &core);
	if (r == 0)
		r = find_event(c, core, pass, reading->event, &e);
	if (r != 0)
		return r;
	add_to(&e->all, reading);
	add_to(&e->stretch[(c->n_windows + window) % COUNTED_STRETCHES], reading);
	return 0;
}

static int take_counted(void *userdata, const struct scan_counted *row)
{
	return add(userdata, row->hart, row->pass, row->window, &row->read);
}

static int take_sample(void *userdata, const struct scan_row *row)
{
	struct counted *c = userdata;
	int r = 0;
	provenance_row(&c->provenance, &c->loaded, row);
	for (size_t i = 0; i < row->n_reads && r == 0; i++)
		r = add(c, row->hart, 0, row->window, &row->read[i]);
	return r;
}

/* --- files ------------------------------------------------------------------------------------ */

static void add_rotations(struct counted *c)
{
	for (uint32_t i = 0; i < c->loaded.n_turns; i++) {
		const struct loaded_turn *t = &c->loaded.turn[i];
		for (size_t k = 0; k < c->n_cores; k++)
			for (int hart = 0; hart < HARTS_MAX; hart++)
				if (hart_set_has(&t->harts, hart) &&
					c->loaded.hart[hart].core == c->core[k].name)
					c->core[k].rotation[t->pass] =
						fmax(c->core[k].rotation[t->pass], t->part);
	}
}

static int add_file(
	void *query, sqlite3 *db, const struct query_source *source, struct query_error *ret_error)
{
	struct counted *c = query;
	struct row_filter filter = {0};
	struct scan_notes notes = {0};
	const struct load_wish wish = {
		.filter = c->filter, .since_ns = source->since_ns, .until_ns = source->until_ns};
	int r = load_segment(&c->loaded, db, &c->texts, &wish, ret_error);
	if (r == 0)
		r = filter_make(&filter, &c->loaded, c->filter);
	filter.every = true;
	size_t before = c->n_events;
	const struct query_filter *f = c->filter;
	bool of_tasks = f && (f->n_pids || f->n_comms || f->n_cgroups || f->n_labels);
	if (r == 0 && !c->of_samples && !of_tasks)
		r = scan_counted(&c->loaded, &filter, take_counted, c);
	/* a client's own file may have only the counts of its samples */
	if (r == 0 && c->n_events == before && source_is_named(source)) {
		c->of_samples = true;
		r = scan_samples(&c->loaded, &filter, &notes, take_sample, c);
	}
	if (r == 0)
		add_rotations(c);
	if (r == 0)
		r = provenance_segment(&c->provenance, &c->loaded, &filter, &notes);
	c->n_windows += c->loaded.n_windows;
	filter_clear(&filter);
	loaded_clear(&c->loaded);
	return r;
}

static int keep(void *query)
{
	struct counted *c = query;
	struct counted_event *kept = reallocarray(c->kept, c->n_events + 1, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	c->kept = kept;
	if (c->n_events > 0)
		memcpy(kept, c->event, c->n_events * sizeof(*kept));
	c->n_kept = c->n_events;
	c->n_cores_kept = c->n_cores;
	memcpy(c->core_kept, c->core, sizeof(c->core));
	c->n_windows_kept = c->n_windows;
	c->provenance_kept = c->provenance;
	return 0;
}

static void take_back(void *query)
{
	struct counted *c = query;
	if (c->n_kept > 0)
		memcpy(c->event, c->kept, c->n_kept * sizeof(*c->kept));
	c->n_events = c->n_kept;
	c->n_cores = c->n_cores_kept;
	memcpy(c->core, c->core_kept, sizeof(c->core));
	c->n_windows = c->n_windows_kept;
	c->provenance = c->provenance_kept;
}

int query_counted(struct query_source *source, size_t n_sources, const struct query_filter *filter,
	struct counted **ret_counted, struct query_error *ret_error)
{
	_cleanup_(counted_freep) struct counted *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	const struct query_question question = {.by = QUERY_BY_HART, .filter = filter};
	c->filter = filter;
	provenance_expect(&c->provenance, &question);
	const struct source_reader reader = {c, add_file, keep, take_back, &c->provenance};
	int r = sources_read(&reader, source, n_sources, ret_error);
	if (r == 0)
		*ret_counted = TAKE_PTR(c);
	return r;
}

struct counted *counted_free(struct counted *c)
{
	if (!c)
		return NULL;
	loaded_clear(&c->loaded);
	text_table_clear(&c->texts);
	free(c->event);
	free(c->kept);
	free(c);
	return NULL;
}

/* --- values ----------------------------------------------------------------------------------- */

double counted_scaled(const struct counted_sum *s)
{
	if (s->enabled_ns <= 0)
		return s->value;
	return s->running_ns > 0 ? s->value * (s->enabled_ns / s->running_ns) : NAN;
}

double counted_without(const struct counted_event *e, size_t stretch)
{
	const struct counted_sum rest = {
		.value = e->all.value - e->stretch[stretch].value,
		.enabled_ns = e->all.enabled_ns - e->stretch[stretch].enabled_ns,
		.running_ns = e->all.running_ns - e->stretch[stretch].running_ns,
	};
	return counted_scaled(&rest);
}

double counted_part(const struct counted_sum *s)
{
	return s->enabled_ns > 0 ? fmin(s->running_ns / s->enabled_ns, 1) : 1;
}
