/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The time of a row is that of its samples, not the wall time that nests measure: rows of one table have one
 * clock.
 */
#include "daemon/query/loops/loop_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/query/loops/cells.h"
#include "proto/base/memory.h"

/* Sums of one loop by itself, or of one function outside of its loops. */
struct own {
	bool any;
	uint64_t samples;
	double ns, cycles, instructions; /* of samples */
	double iterations, ops, int_ops, bytes;
};

struct loop_rows {
	struct loop_facts facts;
	struct own *own; /* by site */
};

/* The row of a site `s`; `own` are its sums. */
#define LOOP_TABLE(COLUMN, KNOWN_IF)                                                               \
	COLUMN(function, "Function", text, known_text(function))                                   \
	COLUMN(nest, "Nest", text, known_text(is_loop ? text_of(&f->texts, s->nest) : NULL))       \
	COLUMN(source, "Source", text, known_text(text_of(&f->texts, s->source)))                  \
	KNOWN_IF(line, "Line", number, s->line, s->line)                                           \
	COLUMN(samples, "Samples", count, integer_of((double)own->samples))                        \
	COLUMN(self_ns, "Own time", ns, integer_of(own->ns))                                       \
	COLUMN(cycles, "Cycles", real_count, above_0(own->cycles))                                 \
	COLUMN(instructions, "Instructions", real_count, above_0(own->instructions))               \
	COLUMN(iterations, "Iterations", real_count, above_0(is_loop ? own->iterations : 0))       \
	COLUMN(ops, "Operations", real_count, above_0(own->ops))                                   \
	COLUMN(int_ops, "Integer", real_count, above_0(own->int_ops))                              \
	COLUMN(bytes, "Bytes", real_bytes, above_0(own->bytes))                                    \
	COLUMN(gops, "GFLOP/s", ratio, above_0(own->ns > 0 ? own->ops / own->ns : 0))              \
	COLUMN(gbytes, "GB/s", ratio, above_0(own->ns > 0 ? own->bytes / own->ns : 0))

static double above_0(double value)
{
	return value > 0 ? value : NAN;
}

/* --- sums ------------------------------------------------------------------------------------- */

/* Both the counted and the modelled part. */
static double value_of(const struct fact *fact, unsigned metric)
{
	return (double)fact->value[LOOP_VALUE(metric, false)] +
	       (double)fact->value[LOOP_VALUE(metric, true)];
}

static void add(struct own *own, const struct fact *fact, bool counts_iterations)
{
	own->any = true;
	own->samples += fact->samples;
	own->ns += fact->sampled_ns;
	own->cycles += fact->cycles;
	own->instructions += fact->instructions;
	own->ops += value_of(fact, LOOP_FP16_OPS) + value_of(fact, LOOP_FP32_OPS) +
		    value_of(fact, LOOP_FP64_OPS) + value_of(fact, LOOP_FP_WIDE_OPS);
	own->int_ops += value_of(fact, LOOP_INT_OPS);
	own->bytes += value_of(fact, LOOP_BYTES_LOADED) + value_of(fact, LOOP_BYTES_STORED);
	if (counts_iterations)
		own->iterations += value_of(fact, LOOP_ITERATIONS);
}

static void sum(struct loop_rows *rows)
{
	const struct loop_facts *f = &rows->facts;
	for (uint32_t i = 0; i < f->keys.n_keys; i++) {
		const uint32_t site = (uint32_t)f->keys.key[i].part[0];
		const uint32_t owner = site ? loop_facts_owner(f, site) : 0;
		if (owner == 0)
			continue;
		/* a callee's samples are also those of code that nobody counts */
		const uint8_t kind = f->site[owner - 1].kind;
		if (kind == LOOP_SITE_LOOP || kind == LOOP_SITE_FUNCTION)
			add(&rows->own[owner - 1], &f->fact[i], site == owner);
	}
}

/* --- rows ------------------------------------------------------------------------------------- */

static int tell_row(const struct loop_facts *f, const struct fact_site *s, const char *function,
	const struct own *own, const struct answer *to)
{
	const bool is_loop = s->kind == LOOP_SITE_LOOP;
	return TABLE_ROW(to, LOOP_TABLE);
}

/* A function that nobody counts has no site, and only samples. */
static int tell_uncounted(const struct loop_facts *f, uint32_t i, const struct answer *to)
{
	const struct fact_site nowhere = {.kind = 0};
	const struct fact *fact = &f->fact[i];
	const struct own own = {.samples = fact->samples,
		.ns = fact->sampled_ns,
		.cycles = fact->cycles,
		.instructions = fact->instructions};
	const uint64_t name = f->keys.key[i].part[3];
	return tell_row(f, &nowhere, text_of(&f->texts, LOOP_UNCOUNTED_FUNCTION(name)), &own, to);
}

static int tell(const struct loop_rows *rows, const struct answer *to)
{
	const struct loop_facts *f = &rows->facts;
	int r = TABLE_BEGIN(to, NULL, LOOP_TABLE);
	for (uint32_t i = 0; i < f->site_keys.n_keys && r == 0; i++)
		if (rows->own[i].any)
			r = tell_row(f, &f->site[i], text_of(&f->texts, f->site[i].readable),
				&rows->own[i], to);
	for (uint32_t i = 0; i < f->keys.n_keys && r == 0; i++)
		if (f->keys.key[i].part[0] == 0 && f->fact[i].samples > 0)
			r = tell_uncounted(f, i, to);
	return r;
}

int query_loop_rows(struct query_source *source, size_t n_sources,
	const struct query_filter *filter, const struct answer *answer,
	struct query_error *ret_error)
{
	const struct query_question plain = {.by = QUERY_BY_FUNCTION, .filter = filter};
	struct loop_rows *rows = calloc(1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	struct loop_facts *f = &rows->facts;
	f->filter = filter;
	f->samples = true;
	provenance_expect(&f->provenance, &plain);
	int r = loop_facts_read(f, source, n_sources, ret_error);
	if (r == 0) {
		loop_facts_scale(f);
		rows->own = calloc((size_t)f->site_keys.n_keys + 1, sizeof(*rows->own));
		r = rows->own ? 0 : -ENOMEM;
	}
	if (r == 0) {
		sum(rows);
		r = tell(rows, answer);
	}
	if (r == 0)
		r = provenance_tell(&f->provenance, &f->texts, answer);
	loop_facts_clear(f);
	free(rows->own);
	free(rows);
	return r;
}
