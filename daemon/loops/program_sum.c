/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A sum has the counts of one thread in one module and region. It has a row for each scope that was ever counted; rows
 * stay from round to round, with their negative counts. Rows that a round touched are on a list, so the cost of a round
 * is that of its changes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/loops/program_private.h"
#include "proto/base/memory.h"

/* --- sums ------------------------------------------------------------------------------------- */

static int sum_new(struct program *p, const struct sum_key *key, struct program_module *module,
	struct program_sum **ret_sum)
{
	size_t memory = sizeof(**ret_sum) + module->n_scopes * sizeof(struct sum_row *);
	if (program_charge(p, memory) != 0)
		return FEED_ROWS; /* existing sums continue */
	struct program_sum *sum = calloc(1, sizeof(*sum));
	if (sum)
		sum->row = calloc((size_t)module->n_scopes + 1, sizeof(*sum->row));
	if (!sum || !sum->row) {
		free(sum);
		program_discharge(p, memory);
		return -ENOMEM;
	}
	sum->key = *key;
	sum->module = module;
	sum->memory = memory;
	HASH_FIND(hh, p->threads, &key->thread, sizeof(key->thread), sum->thread);
	if (key->region)
		HASH_FIND(hh, p->regions, &key->region, sizeof(key->region), sum->region);
	HASH_ADD(hh, p->sums, key, sizeof(sum->key), sum);
	if (!sum->hh.tbl) {
		free(sum->row);
		free(sum);
		program_discharge(p, memory);
		return -ENOMEM;
	}
	*ret_sum = sum;
	return 0;
}

static void sum_free(struct program *p, struct program_sum *sum)
{
	for (struct sum_row *row = sum->rows, *next; row; row = next) {
		next = row->next;
		free(row);
	}
	HASH_DEL(p->sums, sum);
	program_discharge(p, sum->memory);
	free(sum->row);
	free(sum);
}

static int sum_get(struct program *p, const struct mperf_feed_deltas *sent,
	const struct program_object *o, struct program_module *module, struct program_sum **ret_sum)
{
	const struct sum_key key = {.thread = sent->thread,
		.region = sent->region,
		.object = sent->object,
		.module = (uint32_t)(module - o->tables->module)};
	struct program_sum *sum;
	HASH_FIND(hh, p->sums, &key, sizeof(key), sum);
	int r = sum ? 0 : sum_new(p, &key, module, &sum);
	if (r != 0)
		return r;
	if (sent->until_ns > sum->until_ns)
		sum->until_ns = sent->until_ns;
	*ret_sum = sum;
	return 0;
}

static int row_get(
	struct program *p, struct program_sum *sum, uint32_t scope, struct sum_row **ret_row)
{
	struct sum_row *row = sum->row[scope];
	if (!row) {
		if (program_charge(p, sizeof(*row)) != 0)
			return FEED_ROWS;
		row = calloc(1, sizeof(*row));
		if (!row) {
			program_discharge(p, sizeof(*row));
			return -ENOMEM;
		}
		sum->memory += sizeof(*row);
		row->scope = scope;
		row->next = sum->rows;
		sum->rows = sum->row[scope] = row;
	}
	if (!row->touched) {
		row->touched = true;
		row->next_touched = sum->touched;
		sum->touched = row;
	}
	*ret_row = row;
	return 0;
}

/* --- deltas ----------------------------------------------------------------------------------- */

/* factor × delta (× vscale), all modulo 2^64. */
static int add_terms(struct program *p, struct program_sum *sum, uint32_t counter, uint64_t delta)
{
	const struct loop_table *t = &sum->module->table;
	struct sum_row *row = NULL;
	for (uint32_t i = t->first[counter]; i < t->first[counter + 1]; i++) {
		const struct loop_term *term = &t->term[i];
		int r = row && row->scope == term->scope ? 0 : row_get(p, sum, term->scope, &row);
		if (r != 0)
			return r;
		uint64_t amount = (uint64_t)term->factor * delta;
		if (term->scalable)
			amount *= p->vscale;
		row->value[term->value] = (int64_t)((uint64_t)row->value[term->value] + amount);
	}
	return 0;
}

static bool is_in(const struct program_module *module, uint32_t counter)
{
	return module && counter >= module->counter_first &&
	       counter - module->counter_first < module->n_counters;
}

/* All deltas of a message are of one thread, object and region; by rising counter, so of one module
 * after the other. */
static int add_deltas(
	struct program *p, const struct feed_message *m, const struct program_object *o)
{
	struct program_module *module = NULL;
	struct program_sum *sum = NULL;
	uint64_t above = 0; /* the least counter that may come next */
	int r = 0, lost = 0;
	for (uint32_t i = 0; i < m->deltas.n && r == 0; i++) {
		struct mperf_delta delta = feed_message_delta(m, i);
		if (delta.counter < above || delta.counter >= o->tables->key.n_counters)
			return FEED_COUNTER;
		above = (uint64_t)delta.counter + 1;
		if (!is_in(module, delta.counter)) {
			module = program_module_find(o, delta.counter);
			sum = NULL;
			r = module ? sum_get(p, &m->deltas, o, module, &sum) : FEED_UNANNOUNCED;
		}
		if (r == 0 && sum)
			r = add_terms(p, sum, delta.counter - module->counter_first, delta.delta);
		/* a table that was refused, or no room: other counters continue */
		if (r == FEED_UNANNOUNCED || r == FEED_ROWS) {
			lost = r;
			r = 0;
		}
	}
	return r != 0 ? r : lost;
}

int program_take_deltas(struct program *p, const struct feed_message *m)
{
	const struct mperf_feed_deltas *sent = &m->deltas;
	struct program_thread *thread;
	struct program_object *o;
	struct program_region *region = NULL;
	HASH_FIND(hh, p->threads, &sent->thread, sizeof(sent->thread), thread);
	HASH_FIND(hh, p->objects, &sent->object, sizeof(sent->object), o);
	if (sent->region)
		HASH_FIND(hh, p->regions, &sent->region, sizeof(sent->region), region);
	if (!thread || !o || (sent->region && !region))
		return FEED_UNANNOUNCED;
	if (sent->from_ns > sent->until_ns)
		return FEED_TIME;
	return add_deltas(p, m, o);
}

/* --- out -------------------------------------------------------------------------------------- */

/* Is the site a callee that we have not looked for since new functions became known? */
static bool is_unknown(
	const struct program *p, const struct loop_site *site, const struct sum_row *row)
{
	return site->key.kind == LOOP_SITE_CALLEE && row->looked_up != p->n_tables;
}

/* Is the site a callee that another module of the program defines? Then that module counts it, or leaves it out on
 * purpose. */
static bool is_elsewhere(struct program *p, const struct loop_site *site, struct sum_row *row)
{
	if (!is_unknown(p, site, row))
		return row->is_elsewhere;
	const char *name = site->key.subprogram;
	uint64_t hash = mperf_name_hash(name, strlen(name));
	row->looked_up = p->n_tables;
	row->is_elsewhere = false;
	for (struct program_object *o = p->objects; o && !row->is_elsewhere; o = o->hh.next)
		row->is_elsewhere = name_set_has(&o->tables->defined, hash);
	return row->is_elsewhere;
}

/* Drop the entries of a callee that another module counts, but not the bytes that a copy moves. */
static void drop_calls(struct sum_row *row)
{
	row->value[LOOP_VALUE(LOOP_ENTRIES, false)] = 0;
}

static int hand_out_row(struct program *p, struct program_sum *sum, struct sum_row *row)
{
	uint64_t value[N_LOOP_VALUES] = {0};
	struct loop_site *site = sum->module->site[row->scope];
	bool any = false;
	if (is_elsewhere(p, site, row))
		drop_calls(row);
	for (unsigned i = 0; i < 2 * LOOP_METRICS_OF_PROGRAMS; i++) {
		if (row->value[i] <= 0)
			continue;
		value[i] = (uint64_t)row->value[i];
		row->value[i] = 0;
		any = true;
	}
	if (!any)
		return 0;
	sum->thread->counted = true;
	const struct loop_counts counts = {
		.thread = sum->thread,
		.site = site,
		.region = sum->region ? sum->region->site : NULL,
		.value = value,
		.until_ns = sum->until_ns,
	};
	return p->o.take(p->o.userdata, &counts);
}

/* Hand out at most *n rows. Subtract from *n these rows, and for a search of all objects the number
 * of rows that take as long. */
static int hand_out_rows(struct program *p, struct program_sum *sum, uint32_t *n)
{
	uint32_t looking = HASH_COUNT(p->objects) / PROGRAM_OBJECTS_A_ROW;
	int r = 0;
	for (; sum->touched && *n > 0 && r == 0; --*n) {
		struct sum_row *row = sum->touched;
		sum->touched = row->next_touched;
		row->touched = false;
		row->next_touched = NULL;
		if (is_unknown(p, sum->module->site[row->scope], row))
			*n -= *n / 2 < looking ? *n / 2 : looking;
		r = hand_out_row(p, sum, row);
	}
	return r;
}

/* Get the site that represents "in no region"; it is made when it is first needed. */
static int outside(struct program *p)
{
	const struct loop_site_key key = {.kind = LOOP_SITE_REGION,
		.owner = (uint64_t)p->o.uid + 1,
		.subprogram = "",
		.source = "",
		.nest = "",
		.inlined_at = ""};
	const struct loop_site_more more = {0};
	return p->outside ? 0 : loop_site_get(p->o.sites, &key, NULL, &more, &p->outside);
}

/* Hand out the time in which the thread's counts gathered. */
static int hand_out_span(struct program *p, struct program_thread *t, uint64_t until_ns)
{
	uint64_t from_ns = t->until_ns > p->begin_ns ? t->until_ns : p->begin_ns;
	bool counted = t->counted;
	t->counted = false;
	if (until_ns <= from_ns)
		return 0;
	t->until_ns = until_ns;
	int r = counted ? outside(p) : 0;
	if (r != 0 || !counted)
		return r;
	uint64_t value[N_LOOP_VALUES] = {0};
	value[LOOP_VALUE(LOOP_SPAN_NS, false)] = until_ns - from_ns;
	const struct loop_counts counts = {
		.thread = t, .site = p->outside, .value = value, .until_ns = until_ns};
	return p->o.take(p->o.userdata, &counts);
}

int program_hand_out(struct program *p)
{
	uint32_t n = PROGRAM_SLICE_ROWS;
	int r = 0;
	for (struct program_sum *sum = p->sums; sum && r == 0; sum = sum->hh.next)
		r = hand_out_rows(p, sum, &n);
	p->work.round = r == 0 && n == 0;
	if (p->work.round)
		return 0;
	for (struct program_thread *t = p->threads; t && r == 0; t = t->hh.next)
		r = hand_out_span(p, t, p->until_ns);
	return r;
}

int program_end_sums(struct program *p, bool *ret_more)
{
	struct program_work *w = &p->work;
	struct program_sum *sum, *next;
	uint32_t n = PROGRAM_SLICE_ROWS;
	int r = 0;
	HASH_ITER (hh, p->sums, sum, next) {
		if (w->ended ? sum->thread != w->ended : sum->key.object != w->gone->id)
			continue;
		w->until_ns = sum->until_ns > w->until_ns ? sum->until_ns : w->until_ns;
		r = r == 0 ? hand_out_rows(p, sum, &n) : r;
		*ret_more = r == 0 && sum->touched;
		if (*ret_more)
			return 0;
		sum_free(p, sum);
	}
	return r == 0 && w->ended ? hand_out_span(p, w->ended, w->until_ns) : r;
}

void program_sums_clear(struct program *p)
{
	struct program_sum *sum, *next;
	HASH_ITER (hh, p->sums, sum, next) {
		sum_free(p, sum);
	}
}

/* Put the words of a thread's granted events at the events' indices; ignore other words, which are
 * invalid. Returns which events these are. */
static uint8_t put_granted(
	const struct program_thread *t, const struct mperf_feed_spent *sent, uint64_t *value)
{
	const uint64_t word[MPERF_GRANTS_MAX] = {
		sent->granted, sent->granted_1, sent->granted_2, sent->granted_3};
	const uint64_t variance[MPERF_GRANTS_MAX] = {sent->granted_variance,
		sent->granted_variance_1, sent->granted_variance_2, sent->granted_variance_3};
	uint8_t which = 0;
	for (unsigned i = 0; i < MPERF_GRANTS_MAX && sent->granted_ns > 0; i++) {
		if (!t->granted[i])
			continue;
		value[LOOP_VALUE(LOOP_GRANTED + t->granted[i] - 1, false)] = word[i];
		value[LOOP_VALUE(LOOP_GRANTED_VARIANCE + t->granted[i] - 1, false)] = variance[i];
		which |= (uint8_t)(1u << (t->granted[i] - 1));
	}
	if (which)
		value[LOOP_VALUE(LOOP_GRANTED_NS, false)] = sent->granted_ns;
	return which;
}

int program_take_spent(struct program *p, const struct feed_message *m)
{
	const struct mperf_feed_spent *sent = &m->spent;
	struct program_thread *thread;
	struct program_region *region;
	HASH_FIND(hh, p->threads, &sent->thread, sizeof(sent->thread), thread);
	HASH_FIND(hh, p->regions, &sent->region, sizeof(sent->region), region);
	if (!thread || !region)
		return FEED_UNANNOUNCED;
	if (sent->from_ns > sent->until_ns)
		return FEED_TIME;
	uint64_t value[N_LOOP_VALUES] = {0};
	value[LOOP_VALUE(LOOP_ENTRIES, false)] = sent->entries;
	value[LOOP_VALUE(LOOP_TIME_NS, false)] = sent->time_ns;
	value[LOOP_VALUE(LOOP_COUNTED_ENTRIES, false)] = sent->counted_entries;
	value[LOOP_VALUE(LOOP_COUNTED_NS, false)] = sent->counted_ns;
	value[LOOP_VALUE(LOOP_SPAN_NS, false)] = sent->until_ns - sent->from_ns;
	value[LOOP_VALUE(LOOP_TIMED_ENTRIES, false)] = sent->measured_entries;
	value[LOOP_VALUE(LOOP_REPRESENTED, false)] = sent->represented;
	value[LOOP_VALUE(LOOP_INNER_ENTRIES, false)] = sent->inner_entries;
	value[LOOP_VALUE(LOOP_TIME_VARIANCE, false)] = sent->time_variance;
	uint8_t granted = put_granted(thread, sent, value);
	const struct loop_counts counts = {
		.thread = thread,
		.site = region->site,
		.region = region->site,
		.value = value,
		.until_ns = sent->until_ns,
		.granted = p->o.granted,
		.was_granted = granted,
	};
	return p->o.take(p->o.userdata, &counts);
}
