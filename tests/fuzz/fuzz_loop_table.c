/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any bytes as the table of a compilation unit. What is taken must be safe to evaluate without
 * another look: parents before their children, terms of scopes that are there, texts that end.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/loops/cause.h"
#include "daemon/loops/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_text(const struct loop_table *t, uint32_t offset)
{
	if (offset >= t->n_text || strlen(t->text + offset) > LOOP_TEXT_BYTES_MAX)
		abort();
}

static void must_be_scope(const struct loop_table *t, uint32_t i)
{
	const struct loop_scope *s = &t->scope[i];
	if (s->parent > i || s->depth >= LOOP_DEPTH_MAX || s->line_last < s->line)
		abort();
	if (s->parent && t->scope[s->parent - 1].depth + 1 != s->depth)
		abort();
	if (s->kind == MPERF_SCOPE_CALLEE && (!s->parent || !t->text[s->function]))
		abort();
	if (s->parent && t->scope[s->parent - 1].kind == MPERF_SCOPE_CALLEE)
		abort();
	must_be_text(t, s->function);
	must_be_text(t, s->source);
	must_be_text(t, s->nest);
	must_be_text(t, s->inlined_at);
}

static void must_be_term(const struct loop_table *t, const struct loop_term *term)
{
	char name[LOOP_METRIC_NAME_BYTES];
	if (term->scope >= t->n_scopes || term->value >= N_LOOP_VALUES ||
		!loop_value_name(term->value, NULL, name) || loop_value_find(name) != term->value)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct loop_table t;
	memset(&t, 0x5a, sizeof(t));
	int r = loop_table_parse(data, size, &t);
	if (r != 0) {
		if (r != FEED_TABLE_MALFORMED && r != FEED_TABLE_LIMIT)
			abort();
		return 0;
	}
	for (uint32_t i = 0; i < t.n_scopes; i++)
		must_be_scope(&t, i);
	for (uint32_t i = 0; i < t.n_counters; i++)
		if (t.first[i] > t.first[i + 1] ||
			t.first[i + 1] - t.first[i] > LOOP_COUNTER_TERMS_MAX)
			abort();
	if (t.first[t.n_counters] != t.n_terms)
		abort();
	for (uint32_t i = 0; i < t.n_terms; i++)
		must_be_term(&t, &t.term[i]);
	/* the memory is bounded by the bytes of the input, packed or not */
	if (loop_table_memory(&t) > 64 * MPERF_PACKING_RATIO_MAX * size + 4096)
		abort();
	loop_table_clear(&t);
	return 0;
}
