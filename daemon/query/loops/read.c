/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The three tables of loops in a segment: sites into facts' sites, metrics into values, counts into
 * sums. A count's key must rise from row to row in the order of the table, so a file that sends the
 * reader in circles is detected.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/load_part.h"
#include "daemon/query/loops/facts_private.h"

#define METRIC_IDS_MAX 4096 /* we write a hundred */

struct count_row {
	int64_t part[5]; /* window, task, loop, region, metric */
	int64_t value;
};

/* --- sites ------------------------------------------------------------------------------------ */

static const char *column_text(const struct cursor *c, int column)
{
	const char *t = (const char *)sqlite3_column_text(c->statement, column);
	return t ? t : "";
}

static void column_hex(const struct cursor *c, int column, char ret_hex[static 2 * 64 + 1])
{
	const uint8_t *blob = sqlite3_column_blob(c->statement, column);
	int n = blob ? sqlite3_column_bytes(c->statement, column) : 0;
	n = n > 64 ? 64 : n;
	for (int i = 0; i < n; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", blob[i]);
	ret_hex[2 * n] = '\0';
}

/* Find where the site is kept that has this id in the file. Valid until the next. 0, -errno. */
static int site_at(struct facts_segment *s, int64_t id, uint32_t **ret_site)
{
	uint32_t i;
	int r = facts_outcome(key_get(&s->site_ids, &(struct key){{(uint64_t)id}}, &i));
	if (r == 0)
		r = array_grow(&s->site_of_id, &s->size_ids, i + 1, sizeof(*s->site_of_id));
	if (r == 0)
		*ret_site = &s->site_of_id[i];
	return r;
}

/* The site, index + 1; 0: there is none. 0, -errno. */
static int site_by_id(struct loop_facts *f, int64_t id, uint32_t *ret_site)
{
	uint32_t *site;
	int r = site_at(&f->segment, id, &site);
	if (r == 0)
		*ret_site = *site;
	return r;
}

static int take_site(struct loop_facts *f, const struct cursor *c)
{
	char build_id[2 * 64 + 1];
	uint32_t parent = 0, site, *at;
	int64_t kind = cursor_integer(c, 1), around = cursor_integer(c, 8);
	if (kind < LOOP_SITE_LOOP || kind > LOOP_SITE_LOCK)
		return 0; /* from a later version: skip */
	int r = around > 0 ? site_by_id(f, around, &parent) : 0;
	if (r != 0)
		return r;
	/* nests of different programs, times and files can continue each other: each is shallow, but together
	 * they are too deep. Such a site starts a nest of its own */
	if (parent && f->sites.site[parent - 1].depth + 1u >= LOOP_DEPTH_MAX)
		parent = 0;
	column_hex(c, 2, build_id);
	struct fact_site_key key = {
		.kind = (uint8_t)kind,
		.flags = (uint8_t)cursor_integer(c, 10),
		.subprogram = column_text(c, 3),
		.source = column_text(c, 4),
		.nest = column_text(c, 6),
		.inlined_at = column_text(c, 7),
		.build_id = build_id,
		.line = cursor_id(c, 5, INT32_MAX),
		.line_last = cursor_id(c, 9, INT32_MAX),
		.parent = parent,
	};
	if (loop_site_is_place(key.kind)) {
		struct place_words words;
		uint64_t offset = loop_facts_place_key(&key, &words);
		r = loop_facts_site(f, &key, &site);
		if (r == 0)
			r = loop_facts_note_place(f, site, offset, words.symbol);
	} else {
		r = loop_facts_site(f, &key, &site);
	}
	if (r == 0)
		r = site_at(&f->segment, cursor_integer(c, 0), &at);
	if (r == 0)
		*at = site;
	return r;
}

static int read_sites(struct loop_facts *f)
{
	struct cursor c;
	fact_sites_begin_segment(&f->sites);
	int r = cursor_open(&c, &f->loaded,
		"SELECT id, kind, build_id, subprogram, source, line, nest, inlined_at, parent, "
		"line_last, flags FROM loop_site ORDER BY id");
	while (r == 0 && (r = cursor_next(&c)) == 0)
		r = take_site(f, &c);
	cursor_close(&c);
	return r == CURSOR_END ? 0 : r;
}

/* --- counts ----------------------------------------------------------------------------------- */

/* The value of an event that was granted, or of its variance, by the store's name; 0: it is neither,
 * or there are too many. */
static int value_of_granted(struct loop_facts *f, const char *name, uint16_t *ret_value)
{
	bool counts = strncmp(name, LOOP_GRANTED_PREFIX, strlen(LOOP_GRANTED_PREFIX)) == 0;
	const char *prefix = counts ? LOOP_GRANTED_PREFIX : LOOP_VARIANCE_PREFIX;
	size_t n = strlen(prefix);
	unsigned at = MPERF_GRANTS_MAX;
	bool is_one = strncmp(name, prefix, n) == 0 && name[n];
	int r = is_one ? granted_add(f, name + n, &at) : 0;
	if (r == 0 && at < MPERF_GRANTS_MAX)
		*ret_value = (uint16_t)LOOP_VALUE(
			(counts ? LOOP_GRANTED : LOOP_GRANTED_VARIANCE) + at, false);
	return r;
}

/* Find the value that each metric's id means; 0: an unknown one. */
static int read_metrics(struct loop_facts *f, uint16_t value[static METRIC_IDS_MAX])
{
	struct cursor c;
	int r = cursor_open(&c, &f->loaded, "SELECT id, name FROM loop_metric ORDER BY id");
	while (r == 0 && (r = cursor_next(&c)) == 0) {
		uint32_t id = cursor_id(&c, 0, METRIC_IDS_MAX - 1);
		if (!id)
			continue;
		value[id] = (uint16_t)loop_value_find(column_text(&c, 1));
		if (value[id] == 0)
			r = value_of_granted(f, column_text(&c, 1), &value[id]);
	}
	cursor_close(&c);
	return r == CURSOR_END ? 0 : r;
}

static bool rises(const struct count_row *before, const struct count_row *row)
{
	for (int i = 0; i < 5; i++)
		if (row->part[i] != before->part[i])
			return row->part[i] > before->part[i];
	return false;
}

static uint64_t epoch_of(const struct loop_facts *f, int64_t window)
{
	if (f->q.epoch_ns == 0 || window <= 0 || window > f->loaded.n_windows)
		return 0;
	int64_t realtime_ns = f->loaded.window[window].realtime_ns;
	return realtime_ns > 0 ? (uint64_t)realtime_ns / f->q.epoch_ns * f->q.epoch_ns : 0;
}

static int who_of(struct loop_facts *f, uint32_t task, uint32_t *ret_who)
{
	*ret_who = 0;
	return f->q.by_thread ? loop_facts_task(f, task, ret_who) : 0;
}

static bool is_code(unsigned value)
{
	return value == LOOP_VALUE(LOOP_INSTRUCTIONS, false);
}

/* Note in or outside of regions a thread counted code. */
static int note_thread(struct loop_facts *f, uint32_t task, uint32_t region)
{
	uint32_t who;
	int r = task ? loop_facts_task(f, task, &who) : 0;
	if (r == 0 && task)
		loop_facts_was_in(f, who, region != 0);
	return r;
}

static bool is_asked_for(const struct loop_facts *f, uint32_t site)
{
	return loop_site_is_place(f->sites.site[site - 1].kind) ? f->q.places : !f->q.places_only;
}

static int add_count(struct loop_facts *f, const struct count_row *row, unsigned value)
{
	uint32_t site, region = 0, who, task = 0;
	struct fact *fact;
	if (row->part[1] > 0 && row->part[1] <= f->loaded.n_tasks)
		task = (uint32_t)row->part[1];
	int r = site_by_id(f, row->part[2], &site);
	if (r == 0 && row->part[3] > 0)
		r = site_by_id(f, row->part[3], &region);
	if (r == 0)
		r = who_of(f, task, &who);
	if (r == 0 && f->q.by_region && is_code(value))
		r = note_thread(f, task, region);
	if (r != 0)
		return r;
	if (site == 0)
		return query_fail_damaged(&f->loaded, "a count belongs to no loop");
	if (!is_asked_for(f, site))
		return 0;
	if (task)
		f->segment.counts[f->loaded.task[task].process] = true;
	const struct key key =
		FACT_KEY(site, f->q.by_region ? region : 0, who, epoch_of(f, row->part[0]));
	r = loop_facts_get(f, &key, &fact);
	if (r == 0)
		loop_facts_add(fact, value, (uint64_t)row->value);
	return r;
}

static int take_count(struct loop_facts *f, const struct row_filter *filter,
	const struct count_row *row, const uint16_t *value)
{
	const struct loaded *l = &f->loaded;
	int64_t window = row->part[0], task = row->part[1], metric = row->part[4];
	if (row->value < 0)
		return query_fail_damaged(l, "a loop's count is negative");
	if (window <= 0 || window > l->n_windows || !l->window[window].known ||
		!l->window[window].wanted)
		return 0;
	const uint32_t of = task > 0 && task <= l->n_tasks ? (uint32_t)task : 0;
	if (!filter->task[of] || filter_leaves_out(l, filter, of, (uint32_t)window))
		return 0;
	if (metric <= 0 || metric >= METRIC_IDS_MAX || value[metric] == 0)
		return 0;
	return add_count(f, row, value[metric]);
}

static int read_counts(struct loop_facts *f, const struct row_filter *filter)
{
	uint16_t value[METRIC_IDS_MAX] = {0};
	struct count_row before = {{INT64_MIN}, 0}, row;
	struct cursor c;
	int r = read_metrics(f, value);
	if (r == 0)
		r = cursor_open(&c, &f->loaded,
			"SELECT window, task, loop, region, metric, value FROM loop_count "
			"ORDER BY window, task, loop, region, metric");
	if (r != 0)
		return r;
	c.ties = true;
	while (r == 0 && (r = cursor_next(&c)) == 0) {
		for (int i = 0; i < 5; i++)
			row.part[i] = cursor_integer(&c, i);
		row.value = cursor_integer(&c, 5);
		if (!rises(&before, &row))
			r = query_fail_damaged(&f->loaded, "its rows are out of order");
		else
			r = take_count(f, filter, &row, value);
		before = row;
	}
	cursor_close(&c);
	return r == CURSOR_END ? 0 : r;
}

/* ---------------------------------------------------------------------------------------------- */

/* Does the segment have a selected row? If not, its samples are not used. */
static bool any_counts(const struct loop_facts *f)
{
	for (uint32_t i = 0; i <= f->loaded.n_tasks; i++)
		if (f->segment.counts[i])
			return true;
	return false;
}

static void note_cores(struct loop_facts *f)
{
	for (int hart = 0; hart < HARTS_MAX; hart++) {
		uint32_t core = f->loaded.hart[hart].core;
		f->core.differs |= core && f->core.name && core != f->core.name;
		f->core.name = f->core.name ? f->core.name : core;
	}
}

const char *loop_facts_core(const struct loop_facts *f)
{
	return f->core.differs ? NULL : text_of(&f->texts, f->core.name);
}

static int add(struct loop_facts *f, struct row_filter *filter)
{
	struct scan_notes notes = {0};
	f->segment.counts = calloc((size_t)f->loaded.n_tasks + 1, sizeof(*f->segment.counts));
	if (!f->segment.counts)
		return -ENOMEM;
	note_cores(f);
	int r = filter_make(filter, &f->loaded, f->q.filter);
	if (r == 0)
		r = read_sites(f);
	if (r == 0)
		r = read_counts(f, filter);
	if (r == 0 && f->q.samples && any_counts(f))
		r = loop_facts_add_samples(f, filter, &notes);
	return r == 0 ? provenance_segment(&f->provenance, &f->loaded, filter, &notes) : r;
}

static void forget_source(struct loop_facts *f)
{
	loaded_clear(&f->loaded);
	key_table_clear(&f->segment.site_ids);
	free(f->segment.site_of_id);
	free(f->segment.counts);
	f->segment = (struct facts_segment){.site_of_id = NULL};
	loop_frames_end(f);
	loop_callees_end(f);
}

/* As in struct source_reader. */
static int add_segment(
	void *facts, sqlite3 *db, const struct query_source *source, struct query_error *ret_error)
{
	struct loop_facts *f = facts;
	struct row_filter filter = {0};
	const struct load_wish wish = {
		.places = f->q.samples,
		.loops = true,
		.filter = f->q.filter,
		.since_ns = source->since_ns,
		.until_ns = source->until_ns,
		.pin = source->pin,
	};
	int r = load_segment(&f->loaded, db, &f->texts, &wish, ret_error);
	if (r == 0)
		r = add(f, &filter);
	if (r == -EOVERFLOW)
		r = query_fail(ret_error, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"narrow it with --since, --until or --pid",
			"more loops counted than one answer can hold");
	filter_clear(&filter);
	forget_source(f);
	return r;
}

int loop_facts_read(struct loop_facts *f, struct query_source *source, size_t n_sources,
	struct query_error *ret_error)
{
	const struct source_reader reader = {
		f, add_segment, loop_facts_keep, loop_facts_take_back, &f->provenance};
	return n_sources == 1 && source->output
		       ? loop_facts_add_file(f, source->output, ret_error)
		       : sources_read(&reader, source, n_sources, ret_error);
}
