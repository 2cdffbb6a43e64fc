/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A table comes in pieces, is parsed when it is complete, and becomes sites and terms; its names
 * are then only in the sites. The modules of an object have disjoint ranges of its counters, so the
 * module of a counter is found by bisection.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/loops/program_private.h"
#include "proto/base/memory.h"

/* Charge memory that tables need to each program that uses them. */
static int tables_charge(struct program *p, struct object_tables *t, size_t n)
{
	int r = program_charge(p, n);
	if (r == 0)
		t->memory += n;
	return r;
}

static void tables_discharge(struct program *p, struct object_tables *t, size_t n)
{
	program_discharge(p, n);
	t->memory -= n;
}

/* Get tables of an earlier program with the same user and build id, or make empty ones for those to
 * come. */
static int tables_get(
	struct program *p, const struct object_key *key, struct object_tables **ret_tables)
{
	struct object_tables *t = table_cache_get(p->o.cache, key);
	size_t n = sizeof(struct program_object) + sizeof(*t) +
		   key->n_modules * (sizeof(*t->module) + sizeof(*t->sorted));
	if (t)
		n = t->memory;
	int r = program_charge(p, n);
	if (r != 0) {
		if (t)
			table_cache_put(p->o.cache, p->o.sites, t);
		return r;
	}
	r = t ? 0 : object_tables_new(key, &t);
	if (r != 0) {
		program_discharge(p, n);
		return r;
	}
	t->memory = n;
	if (t->shared && t->scalable && p->vscale == 0)
		p->o.causes[FEED_NO_VSCALE]++;
	*ret_tables = t;
	return 0;
}

static void tables_put(struct program *p, struct object_tables *t)
{
	program_discharge(p, t->memory);
	table_cache_put(p->o.cache, p->o.sites, t);
}

static int object_new(
	struct program *p, const struct feed_message *m, struct program_object **ret_o)
{
	struct object_key key = {
		.uid = p->o.uid,
		.n_counters = m->object.n_counters,
		.n_modules = m->object.n_modules,
		.n_build_id = (uint32_t)m->n_rest,
	};
	memcpy(key.build_id, m->rest, m->n_rest);
	struct program_object *o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->id = m->object.object;
	p->n_tables++;
	int r = tables_get(p, &key, &o->tables);
	if (r != 0) {
		free(o);
		return r;
	}
	HASH_ADD(hh, p->objects, id, sizeof(o->id), o);
	if (!o->hh.tbl) {
		tables_put(p, o->tables);
		free(o);
		return -ENOMEM;
	}
	*ret_o = o;
	return 0;
}

int program_take_object(struct program *p, const struct feed_message *m)
{
	const struct mperf_feed_object *sent = &m->object;
	struct program_object *o;
	HASH_FIND(hh, p->objects, &sent->object, sizeof(sent->object), o);
	if (o)
		return FEED_TWICE;
	if (HASH_COUNT(p->objects) >= PROGRAM_OBJECTS_MAX)
		return FEED_OBJECTS;
	if (sent->n_modules > PROGRAM_MODULES_MAX)
		return FEED_MODULES;
	if (sent->n_counters > PROGRAM_COUNTERS_MAX)
		return FEED_COUNTERS;
	int r = object_new(p, m, &o);
	if (r == 0 && p->version >= MPERF_FEED_ON_REQUEST && p->o.want)
		p->o.want(p->o.userdata, o->id, !o->tables->shared);
	return r;
}

static void module_clear(struct program *p, struct object_tables *t, struct program_module *module)
{
	tables_discharge(p, t, program_module_memory(module));
	program_module_clear(p->o.sites, module);
}

void program_object_free(struct program *p, struct program_object *o)
{
	if (p->work.object == o) {
		free(TAKE_PTR(p->work.n_blocks));
		p->work.object = NULL;
	}
	HASH_DEL(p->objects, o);
	p->n_tables++;
	tables_put(p, o->tables);
	free(o);
}

/* Index in `sorted` of the first module that begins behind this counter. */
static uint32_t module_place(const struct object_tables *t, uint32_t counter)
{
	uint32_t low = 0, high = t->n_sorted;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (t->module[t->sorted[middle]].counter_first <= counter)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct program_module *program_module_find(const struct program_object *o, uint32_t counter)
{
	const struct object_tables *t = o->tables;
	uint32_t place = module_place(t, counter);
	if (place == 0)
		return NULL;
	struct program_module *module = &t->module[t->sorted[place - 1]];
	return counter - module->counter_first < module->n_counters ? module : NULL;
}

/* Reserve the module's range among the object's counters. False: another module has it. */
static bool enter_module(struct object_tables *t, struct program_module *module)
{
	uint32_t first = module->counter_first, n = module->n_counters;
	if (n == 0)
		return true; /* no counts of it will be sent */
	uint32_t place = module_place(t, first + n - 1);
	if (place > 0) {
		const struct program_module *before = &t->module[t->sorted[place - 1]];
		if (before->counter_first + before->n_counters > first)
			return false;
	}
	memmove(t->sorted + place + 1, t->sorted + place,
		(t->n_sorted - place) * sizeof(*t->sorted));
	t->sorted[place] = (uint32_t)(module - t->module);
	t->n_sorted++;
	return true;
}

/* --- scopes become sites ---------------------------------------------------------------------- */

/* Distinguish blocks of one line by their number in their scope. */
static void block_nest(const char *around, uint32_t ordinal, char *ret_text, size_t n)
{
	snprintf(ret_text, n, "%s#%u", around, ordinal);
}

static int site_of(struct program *p, const struct program_object *o, struct program_module *module,
	uint32_t i, uint32_t *n_blocks)
{
	const struct loop_table *t = &module->table;
	const struct loop_scope *s = &t->scope[i];
	char nest[LOOP_TEXT_BYTES_MAX + 16];
	struct loop_site_key key = {
		.kind = s->kind,
		.owner = (uint64_t)p->o.uid + 1,
		.n_build_id = (uint8_t)o->tables->key.n_build_id,
		.line = s->line,
		.subprogram = t->text + s->function,
		.source = t->text + s->source,
		.nest = t->text + s->nest,
		.inlined_at = t->text + s->inlined_at,
	};
	memcpy(key.build_id, o->tables->key.build_id, sizeof(key.build_id));
	struct loop_site *parent = s->parent ? module->site[s->parent - 1] : NULL;
	if (s->kind == MPERF_SCOPE_BLOCK) {
		block_nest(
			parent ? parent->key.nest : "", ++n_blocks[s->parent], nest, sizeof(nest));
		key.nest = nest;
	}
	const struct loop_site_more more = {
		.line_last = s->line_last, .column = s->column, .flags = s->flags};
	/* charge it whether shared with others or not: names may be long and many */
	size_t memory = loop_site_memory(&key);
	int r = tables_charge(p, o->tables, memory);
	if (r != 0)
		return r;
	module->site_memory += memory;
	return loop_site_get(p->o.sites, &key, parent, &more, &module->site[i]);
}

static void work_clear(struct program_work *w)
{
	free(w->n_blocks);
	w->n_blocks = NULL;
	w->object = NULL;
}

/* Make room for the sites of a table that was parsed. */
static int begin_scopes(struct program *p, struct program_object *o, struct program_module *module)
{
	uint32_t n = module->table.n_scopes;
	int r = tables_charge(
		p, o->tables, loop_table_memory(&module->table) + n * sizeof(*module->site));
	if (r != 0) {
		loop_table_clear(&module->table); /* not charged, so do not discharge */
		return r;
	}
	module->n_scopes = n;
	module->site = calloc((size_t)n + 1, sizeof(*module->site));
	p->work.n_blocks = calloc((size_t)n + 1, sizeof(*p->work.n_blocks));
	if (!module->site || !p->work.n_blocks) {
		module->n_scopes = module->site ? n : 0;
		return -ENOMEM;
	}
	p->work.object = o;
	p->work.module = (uint32_t)(module - o->tables->module);
	p->work.scope = 0;
	return 0;
}

/* Note the functions that others may call: they are counted, or left out on purpose. */
static int note_defined(struct program *p, struct object_tables *t, const struct loop_table *from)
{
	size_t before = name_set_bytes(&t->defined, 0);
	size_t after = name_set_bytes(&t->defined, from->n_defined);
	int r = tables_charge(p, t, after - before);
	return r == 0 ? name_set_add(&t->defined, from->defined, from->n_defined) : r;
}

/* Drop the parts of the table that the sites now contain. */
static void drop_names(struct program *p, struct object_tables *tables, struct loop_table *t)
{
	size_t before = loop_table_memory(t);
	free(TAKE_PTR(t->scope));
	free(TAKE_PTR(t->text));
	free(TAKE_PTR(t->defined));
	t->n_scopes = 0;
	t->n_defined = 0;
	t->n_text = 0;
	tables_discharge(p, tables, before - loop_table_memory(t));
}

/* All scopes are sites. */
static int end_table(struct program *p, struct object_tables *t, struct program_module *module)
{
	if (module->table.scalable && p->vscale == 0)
		p->o.causes[FEED_NO_VSCALE]++;
	p->o.causes[FEED_METRIC] += module->table.n_unknown;
	bool fits = module->table.n_counters == module->n_counters;
	int r = fits ? note_defined(p, t, &module->table) : 0;
	drop_names(p, t, &module->table);
	if (r != 0)
		return r;
	if (!fits || !enter_module(t, module))
		return FEED_TABLE_MALFORMED;
	module->complete = true;
	p->n_tables++;
	t->scalable |= module->table.scalable;
	if (++t->n_complete == t->key.n_modules)
		table_cache_share(p->o.cache, t);
	return 0;
}

/* Settle a table: free it if it was refused. */
static int settle_table(
	struct program *p, struct object_tables *t, struct program_module *module, int r)
{
	if (r != 0)
		work_clear(&p->work);
	if (r > 0 && !module->complete) {
		module_clear(p, t, module);
		module->refused = true;
	}
	return r;
}

int program_work_table(struct program *p)
{
	struct program_work *w = &p->work;
	struct program_object *o = w->object;
	struct program_module *module = &o->tables->module[w->module];
	int r = 0;
	for (uint32_t n = 0; w->scope < module->n_scopes && r == 0; n++) {
		if (n == PROGRAM_SLICE_SCOPES)
			return 0;
		r = site_of(p, o, module, w->scope++, w->n_blocks);
	}
	work_clear(w);
	if (r == 0)
		r = end_table(p, o->tables, module);
	return settle_table(p, o->tables, module, r);
}

/* The table is whole. */
static int finish_table(struct program *p, struct program_object *o, struct program_module *module)
{
	int r = loop_table_parse(module->bytes, module->table_bytes, &module->table);
	free(TAKE_PTR(module->bytes));
	tables_discharge(p, o->tables, module->table_bytes);
	return r != 0 ? r : begin_scopes(p, o, module);
}

static int begin_table(struct program *p, struct object_tables *t,
	const struct mperf_feed_table *sent, struct program_module *module)
{
	if (sent->table_bytes > LOOP_TABLE_BYTES_MAX)
		return FEED_TABLE_LIMIT;
	if (sent->counter_first > t->key.n_counters ||
		sent->n_counters > t->key.n_counters - sent->counter_first)
		return FEED_COUNTER;
	int r = tables_charge(p, t, sent->table_bytes);
	if (r != 0)
		return r;
	module->bytes = malloc(sent->table_bytes + 1u);
	module->table_bytes = sent->table_bytes;
	module->counter_first = sent->counter_first;
	module->n_counters = sent->n_counters;
	if (module->bytes)
		return 0;
	tables_discharge(p, t, sent->table_bytes);
	return -ENOMEM;
}

int program_take_table(struct program *p, const struct feed_message *m)
{
	const struct mperf_feed_table *sent = &m->table;
	struct program_object *o;
	HASH_FIND(hh, p->objects, &sent->object, sizeof(sent->object), o);
	if (!o || sent->module >= o->tables->key.n_modules)
		return FEED_UNANNOUNCED;
	struct program_module *module = &o->tables->module[sent->module];
	/* sent without waiting for our answer that they are known */
	if (module->complete && p->version >= MPERF_FEED_ON_REQUEST)
		return 0;
	if (module->complete)
		return FEED_TWICE;
	if (module->refused)
		return 0; /* further pieces of a table that was counted as refused */
	int r = module->bytes ? 0 : begin_table(p, o->tables, sent, module);
	if (r == 0 &&
		(sent->offset != module->n_bytes || sent->table_bytes != module->table_bytes ||
			m->n_rest > module->table_bytes - module->n_bytes))
		r = FEED_TABLE_MALFORMED;
	if (r == 0) {
		memcpy(module->bytes + module->n_bytes, m->rest, m->n_rest);
		module->n_bytes += (uint32_t)m->n_rest;
	}
	if (r == 0 && module->n_bytes == module->table_bytes) {
		r = finish_table(p, o, module);
		return r == 0 ? program_work_table(p) : settle_table(p, o->tables, module, r);
	}
	return settle_table(p, o->tables, module, r);
}
