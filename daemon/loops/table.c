/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A table is read once, from its first byte to its last, and every part is checked: a number
 * must end within ten bytes and fit its place, a string must exist, a scope may only refer to
 * earlier ones, and nothing may follow the end. An announced number of items is checked against the
 * remaining bytes before memory is allocated, so a short table cannot request much memory; unpacked
 * data may not be longer than MPERF_PACKING_RATIO_MAX times its packed bytes.
 */
#include "daemon/loops/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "daemon/loops/cause.h"
#include "proto/base/memory.h"

struct reader {
	const uint8_t *at, *end;
	struct loop_table *table;
	uint32_t *string; /* offsets in text, by number */
	uint32_t n_strings;
	uint32_t size_terms;
	uint32_t version;
	/* from version 2: the uses of counters, and the remainder of the current run */
	const uint8_t *run, *runs_end;
	uint32_t use, left;
};

/* --- numbers ---------------------------------------------------------------------------------- */

/* Source: DWARF 5, section 7.6. */
static bool take_unsigned(struct reader *r, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;
	for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
		uint8_t byte = *r->at++;
		uint64_t bits = byte & 127u;
		if (bits << shift >> shift != bits)
			return false;
		value |= bits << shift;
		if (byte < 128) {
			*ret_value = value;
			return value <= max;
		}
	}
	return false;
}

static bool take_signed(struct reader *r, int64_t *ret_value)
{
	uint64_t value = 0;
	for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
		uint8_t byte = *r->at++;
		value |= (uint64_t)(byte & 127u) << shift;
		if (byte >= 128)
			continue;
		if (shift + 7 < 64 && byte & 64)
			value |= ~0ull << (shift + 7);
		*ret_value = (int64_t)value;
		return true;
	}
	return false;
}

static bool take_u32(struct reader *r, uint32_t max, uint32_t *ret_value)
{
	uint64_t value;
	if (!take_unsigned(r, max, &value))
		return false;
	*ret_value = (uint32_t)value;
	return true;
}

/* Read a count of items, each of which has at least that many bytes. 0, FEED_*. */
static int take_count(struct reader *r, uint32_t max, size_t bytes_each, uint32_t *ret_n)
{
	uint64_t n;
	if (!take_unsigned(r, UINT64_MAX, &n) || n > (uint64_t)(r->end - r->at) / bytes_each)
		return FEED_TABLE_MALFORMED;
	if (n > max)
		return FEED_TABLE_LIMIT;
	*ret_n = (uint32_t)n;
	return 0;
}

/* --- strings ---------------------------------------------------------------------------------- */

static bool take_string(struct reader *r, uint32_t i)
{
	struct loop_table *t = r->table;
	uint64_t n;
	if (!take_unsigned(r, (uint64_t)(r->end - r->at), &n) || n > (uint64_t)(r->end - r->at) ||
		memchr(r->at, '\0', n) || (i == 0 && n > 0))
		return false;
	size_t kept = n < LOOP_TEXT_BYTES_MAX ? n : LOOP_TEXT_BYTES_MAX;
	r->string[i] = (uint32_t)t->n_text;
	memcpy(t->text + t->n_text, r->at, kept);
	t->text[t->n_text + kept] = '\0';
	t->n_text += kept + 1;
	r->at += n;
	return true;
}

/* Take the strings. The length of each takes a byte at least, which is room for its NUL. */
static int take_strings(struct reader *r)
{
	int outcome = take_count(r, LOOP_TABLE_STRINGS_MAX, 1, &r->n_strings);
	if (outcome != 0)
		return outcome;
	if (r->n_strings == 0)
		return FEED_TABLE_MALFORMED;
	r->string = calloc(r->n_strings, sizeof(*r->string));
	r->table->text = malloc((size_t)(r->end - r->at) + 1);
	if (!r->string || !r->table->text)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->n_strings; i++)
		if (!take_string(r, i))
			return FEED_TABLE_MALFORMED;
	char *fitting = realloc(r->table->text, r->table->n_text);
	if (fitting)
		r->table->text = fitting;
	return 0;
}

static bool take_text(struct reader *r, uint32_t *ret_offset)
{
	uint32_t i;
	if (!take_u32(r, r->n_strings - 1, &i))
		return false;
	*ret_offset = r->string[i];
	return true;
}

/* --- scopes ----------------------------------------------------------------------------------- */

#define SCOPE_BYTES_MIN 10 /* as many numbers */

static bool is_kind(uint32_t kind)
{
	return kind == MPERF_SCOPE_LOOP || kind == MPERF_SCOPE_FUNCTION ||
	       kind == MPERF_SCOPE_BLOCK || kind == MPERF_SCOPE_CALLEE;
}

/* A block holds only callees, a callee nothing, and the depth of nests is limited. */
static bool place_scope(const struct loop_table *t, struct loop_scope *s)
{
	bool is_callee = s->kind == MPERF_SCOPE_CALLEE;
	if (s->parent == 0)
		return !is_callee;
	const struct loop_scope *parent = &t->scope[s->parent - 1];
	s->depth = (uint8_t)(parent->depth + 1);
	return parent->kind != MPERF_SCOPE_CALLEE &&
	       (parent->kind != MPERF_SCOPE_BLOCK || is_callee) && s->depth < LOOP_DEPTH_MAX;
}

/* Callees have names, and came with version 2. */
static bool is_named(const struct reader *r, const struct loop_scope *s)
{
	return s->kind != MPERF_SCOPE_CALLEE ||
	       (r->version > MPERF_TABLE_VERSION_FIRST && r->table->text[s->function]);
}

static bool take_scope(struct reader *r, uint32_t i)
{
	struct loop_scope *s = &r->table->scope[i];
	uint32_t kind, flags;
	bool good = take_u32(r, UINT8_MAX, &kind) && is_kind(kind) && take_u32(r, i, &s->parent) &&
		    take_text(r, &s->function) && take_text(r, &s->source) &&
		    take_u32(r, UINT32_MAX, &s->line) && take_u32(r, UINT32_MAX, &s->line_last) &&
		    take_u32(r, UINT32_MAX, &s->column) && take_text(r, &s->nest) &&
		    take_text(r, &s->inlined_at) && take_u32(r, UINT8_MAX, &flags);
	if (!good)
		return false;
	s->kind = (uint8_t)kind;
	s->flags = (uint8_t)flags;
	if (s->line_last < s->line)
		s->line_last = s->line;
	return is_named(r, s) && place_scope(r->table, s);
}

static int take_scopes(struct reader *r)
{
	struct loop_table *t = r->table;
	int outcome = take_count(r, LOOP_TABLE_SCOPES_MAX, SCOPE_BYTES_MIN, &t->n_scopes);
	if (outcome != 0)
		return outcome;
	t->scope = calloc((size_t)t->n_scopes + 1, sizeof(*t->scope));
	if (!t->scope)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_scopes; i++)
		if (!take_scope(r, i))
			return FEED_TABLE_MALFORMED;
	return 0;
}

/* --- counters --------------------------------------------------------------------------------- */

#define TERM_BYTES_MIN 3

static int reserve_terms(struct reader *r, uint32_t n)
{
	struct loop_table *t = r->table;
	if (n > LOOP_TABLE_TERMS_MAX - t->n_terms)
		return FEED_TABLE_LIMIT;
	if (t->n_terms + n <= r->size_terms)
		return 0;
	uint32_t size = r->size_terms ? 2 * r->size_terms : 256;
	while (size < t->n_terms + n)
		size *= 2;
	struct loop_term *grown = reallocarray(t->term, size, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	t->term = grown;
	r->size_terms = size;
	return 0;
}

static bool take_term(struct reader *r)
{
	struct loop_table *t = r->table;
	uint32_t scope;
	uint64_t metric;
	int64_t factor;
	if (!take_u32(r, UINT32_MAX, &scope) || scope >= t->n_scopes ||
		!take_unsigned(r, UINT64_MAX, &metric) || !take_signed(r, &factor))
		return false;
	uint64_t id = metric >> MPERF_VARIANT_BITS;
	if (id == 0 || id >= LOOP_METRICS_OF_PROGRAMS) {
		t->n_unknown++;
		return true;
	}
	bool scalable = metric & MPERF_SCALABLE;
	t->scalable |= scalable;
	t->term[t->n_terms++] = (struct loop_term){
		.factor = factor,
		.scope = scope,
		.value = (uint16_t)LOOP_VALUE(id, metric & MPERF_MODELLED),
		.scalable = scalable,
	};
	return true;
}

/* May the next counter have terms? */
static bool take_use(struct reader *r, bool *ret_has_terms)
{
	uint32_t use;
	if (r->version == MPERF_TABLE_VERSION_FIRST) {
		bool good = take_u32(r, MPERF_COUNTER_STATE, &use);
		*ret_has_terms = use == MPERF_COUNTER_SUM;
		return good;
	}
	if (r->left == 0) {
		struct reader runs = {.at = r->run, .end = r->runs_end};
		if (!take_u32(&runs, MPERF_USE_TIME, &r->use) ||
			!take_u32(&runs, LOOP_TABLE_COUNTERS_MAX, &r->left) || r->left == 0)
			return false;
		r->run = runs.at;
	}
	r->left--;
	*ret_has_terms = r->use != MPERF_USE_NONE;
	return true;
}

static int take_counter(struct reader *r)
{
	bool has_terms = false;
	uint32_t n;
	if (!take_use(r, &has_terms))
		return FEED_TABLE_MALFORMED;
	int outcome = take_count(r, LOOP_COUNTER_TERMS_MAX, TERM_BYTES_MIN, &n);
	if (outcome != 0)
		return outcome;
	if (!has_terms && n > 0)
		return FEED_TABLE_MALFORMED;
	outcome = reserve_terms(r, n);
	for (uint32_t i = 0; i < n && outcome == 0; i++)
		if (!take_term(r))
			outcome = FEED_TABLE_MALFORMED;
	return outcome;
}

static int take_counters(struct reader *r)
{
	struct loop_table *t = r->table;
	size_t bytes_min = r->version == MPERF_TABLE_VERSION_FIRST ? 2 : 1;
	int outcome = take_count(r, LOOP_TABLE_COUNTERS_MAX, bytes_min, &t->n_counters);
	if (outcome != 0)
		return outcome;
	t->first = calloc((size_t)t->n_counters + 1, sizeof(*t->first));
	if (!t->first)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_counters && outcome == 0; i++) {
		t->first[i] = t->n_terms;
		outcome = take_counter(r);
	}
	t->first[t->n_counters] = t->n_terms;
	return outcome;
}

/* --- both versions ---------------------------------------------------------------------------- */

/* Functions that other modules may call. */
static int take_defined(struct reader *r)
{
	struct loop_table *t = r->table;
	int outcome = take_count(r, LOOP_TABLE_DEFINED_MAX, sizeof(*t->defined), &t->n_defined);
	if (outcome != 0)
		return outcome;
	t->defined = calloc((size_t)t->n_defined + 1, sizeof(*t->defined));
	if (!t->defined)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_defined; i++)
		for (unsigned byte = 0; byte < sizeof(*t->defined); byte++)
			t->defined[i] |= (uint64_t)*r->at++ << (8 * byte);
	return 0;
}

static int take_body(struct reader *r)
{
	int outcome = take_strings(r);
	if (outcome == 0 && r->version > MPERF_TABLE_VERSION_FIRST)
		outcome = take_defined(r);
	if (outcome == 0)
		outcome = take_scopes(r);
	if (outcome == 0)
		outcome = take_counters(r);
	bool is_whole = r->at == r->end && r->left == 0 && r->run == r->runs_end;
	return outcome == 0 && !is_whole ? FEED_TABLE_MALFORMED : outcome;
}

/* --- version 2 -------------------------------------------------------------------------------- */

#define RUN_BYTES_MIN 2

/* Skip the runs, which are read with the counters. */
static int skip_runs(struct reader *r)
{
	uint32_t n, use, n_counters;
	int outcome = take_count(r, LOOP_TABLE_COUNTERS_MAX, RUN_BYTES_MIN, &n);
	r->run = r->at;
	for (uint32_t i = 0; i < n && outcome == 0; i++)
		if (!take_u32(r, MPERF_USE_TIME, &use) ||
			!take_u32(r, LOOP_TABLE_COUNTERS_MAX, &n_counters))
			outcome = FEED_TABLE_MALFORMED;
	r->runs_end = r->at;
	return outcome;
}

/* Take the body to *ret_body, of n bytes. 0, FEED_*, -ENOMEM. */
static int unpack(const struct reader *r, uint64_t n, uint8_t **ret_body)
{
	uLong n_packed = (uLong)(r->end - r->at), taken = n_packed;
	uLongf n_body = n;
	if (n > LOOP_TABLE_BYTES_MAX)
		return FEED_TABLE_LIMIT;
	if (n > (uint64_t)n_packed * MPERF_PACKING_RATIO_MAX)
		return FEED_TABLE_MALFORMED;
	_cleanup_(freep) uint8_t *body = malloc(n + 1);
	if (!body)
		return -ENOMEM;
	int z = uncompress2(body, &n_body, r->at, &taken);
	if (z == Z_MEM_ERROR)
		return -ENOMEM;
	if (z != Z_OK || n_body != n || taken != n_packed)
		return FEED_TABLE_MALFORMED;
	*ret_body = TAKE_PTR(body);
	return 0;
}

static int take_packed(struct reader *r)
{
	_cleanup_(freep) uint8_t *body = NULL;
	uint32_t packing;
	uint64_t n;
	int outcome = skip_runs(r);
	if (outcome != 0)
		return outcome;
	if (!take_u32(r, MPERF_PACKING_ZLIB, &packing) || !take_unsigned(r, UINT64_MAX, &n))
		return FEED_TABLE_MALFORMED;
	if (packing == MPERF_PACKING_NONE)
		return n == (uint64_t)(r->end - r->at) ? take_body(r) : FEED_TABLE_MALFORMED;
	outcome = unpack(r, n, &body);
	if (outcome != 0)
		return outcome;
	r->at = body;
	r->end = body + n;
	return take_body(r);
}

/* ---------------------------------------------------------------------------------------------- */

static int take_table(struct reader *r)
{
	if (!take_u32(r, UINT32_MAX, &r->version))
		return FEED_TABLE_MALFORMED;
	switch (r->version) {
	case MPERF_TABLE_VERSION_FIRST:
		return take_body(r);
	case MPERF_TABLE_VERSION:
		return take_packed(r);
	default:
		return FEED_TABLE_MALFORMED;
	}
}

int loop_table_parse(const uint8_t *bytes, size_t n, struct loop_table *ret_table)
{
	struct loop_table table = {0};
	struct reader r = {.at = bytes, .end = bytes + n, .table = &table};
	if (n > LOOP_TABLE_BYTES_MAX)
		return FEED_TABLE_LIMIT;
	int outcome = take_table(&r);
	free(r.string);
	if (outcome != 0) {
		loop_table_clear(&table);
		return outcome;
	}
	*ret_table = table;
	return 0;
}

void loop_table_clear(struct loop_table *t)
{
	free(t->scope);
	free(t->first);
	free(t->term);
	free(t->defined);
	free(t->text);
	*t = (struct loop_table){0};
}

size_t loop_table_memory(const struct loop_table *t)
{
	return t->n_scopes * sizeof(*t->scope) + t->n_counters * sizeof(*t->first) +
	       t->n_terms * sizeof(*t->term) + t->n_defined * sizeof(*t->defined) + t->n_text;
}
