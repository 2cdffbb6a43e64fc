/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The time of a row is that of its samples, not the wall time that nests measure: rows of one table have one
 * clock.
 */
#include "daemon/query/loops/loop_sums.h"

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

struct loop_sums {
	struct loop_facts facts;
	struct own *own; /* by site */
};

/* The names of a site `s`. */
#define LOOP_NAMES(COLUMN, KNOWN_IF)                                                               \
	COLUMN(function, "Function", text, known_text(function))                                   \
	COLUMN(nest, "Nest", text, known_text(is_loop ? text_of(&f->texts, s->nest) : NULL))       \
	COLUMN(source, "Source", text, known_text(text_of(&f->texts, s->source)))                  \
	KNOWN_IF(line, "Line", number, s->line, s->line)

/* VALUE(name, title, adds_up, value) */
#define LOOP_VALUES(VALUE)                                                                         \
	VALUE("iterations", "Iterations", true, is_loop ? own->iterations : 0)                     \
	VALUE("ops", "Operations", true, own->ops)                                                 \
	VALUE("int_ops", "Integer", true, own->int_ops)                                            \
	VALUE("bytes", "Bytes", true, own->bytes)                                                  \
	VALUE("gops", "GFLOP/s", false, own->ns > 0 ? own->ops / own->ns : 0)                      \
	VALUE("gbytes", "GB/s", false, own->ns > 0 ? own->bytes / own->ns : 0)

/* NAN: nothing was counted. */
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

static void sum(struct loop_sums *rows)
{
	const struct loop_facts *f = &rows->facts;
	for (uint32_t i = 0; i < f->table.keys.n_keys; i++) {
		const uint32_t site = (uint32_t)f->table.keys.key[i].part[0];
		const uint32_t owner = site ? loop_facts_owner(f, site) : 0;
		if (owner == 0)
			continue;
		/* a callee's samples are also samples of uncounted code */
		const uint8_t kind = f->sites.site[owner - 1].kind;
		if (kind == LOOP_SITE_LOOP || kind == LOOP_SITE_FUNCTION)
			add(&rows->own[owner - 1], &f->table.fact[i], site == owner);
	}
}

/* --- rows ------------------------------------------------------------------------------------- */

static int tell_row(const struct loop_facts *f, const struct fact_site *s, const char *function,
	const struct own *own, const struct sums_reader *to)
{
	const bool is_loop = s->kind == LOOP_SITE_LOOP;
#define VALUE(name, title, adds_up, value) {above_0(value), NAN},
	const struct sums_value value[] = {LOOP_VALUES(VALUE)};
#undef VALUE
	return to->row(to->userdata,
		&(struct sums){.name = ROW_CELLS(LOOP_NAMES),
			.samples = (double)integer_of((double)own->samples),
			.ns = (double)integer_of(own->ns),
			.cycles = own->cycles > 0 ? own->cycles : -1,
			.instructions = own->instructions > 0 ? own->instructions : -1,
			.value = value});
}

/* An uncounted function has no site, only samples. */
static int tell_uncounted(const struct loop_facts *f, uint32_t i, const struct sums_reader *to)
{
	const struct fact_site nowhere = {.kind = 0};
	const struct fact *fact = &f->table.fact[i];
	const struct own own = {.samples = fact->samples,
		.ns = fact->sampled_ns,
		.cycles = fact->cycles,
		.instructions = fact->instructions};
	const uint64_t name = f->table.keys.key[i].part[3];
	return tell_row(f, &nowhere, text_of(&f->texts, LOOP_UNCOUNTED_FUNCTION(name)), &own, to);
}

static int tell(const struct loop_sums *rows, const struct sums_reader *to)
{
	const struct loop_facts *f = &rows->facts;
#define VALUE(name, title, adds_up, value) {name, title, adds_up},
	static const struct sums_column value[] = {LOOP_VALUES(VALUE)};
#undef VALUE
	int r = to->columns(to->userdata, ROW_COLUMNS(LOOP_NAMES), ROW_LENGTH(LOOP_NAMES), value,
		sizeof(value) / sizeof(*value));
	for (uint32_t i = 0; i < f->sites.keys.n_keys && r == 0; i++)
		if (rows->own[i].any)
			r = tell_row(f, &f->sites.site[i],
				text_of(&f->texts, f->sites.site[i].readable), &rows->own[i], to);
	for (uint32_t i = 0; i < f->table.keys.n_keys && r == 0; i++)
		if (f->table.keys.key[i].part[0] == 0 && f->table.fact[i].samples > 0)
			r = tell_uncounted(f, i, to);
	return r;
}

int query_loop_sums(struct query_source *source, size_t n_sources,
	const struct query_filter *filter, const struct sums_reader *to,
	struct query_error *ret_error)
{
	const struct answer of = {.provenance = to->provenance, .userdata = to->userdata};
	struct loop_sums *rows = calloc(1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	struct loop_facts *f = &rows->facts;
	loop_facts_begin(
		f, &(struct facts_question){.filter = filter, .samples = true}, QUERY_BY_FUNCTION);
	int r = loop_facts_read(f, source, n_sources, ret_error);
	if (r == 0) {
		loop_facts_scale(f);
		rows->own = calloc((size_t)f->sites.keys.n_keys + 1, sizeof(*rows->own));
		r = rows->own ? 0 : -ENOMEM;
	}
	if (r == 0) {
		sum(rows);
		r = tell(rows, to);
	}
	if (r == 0)
		r = provenance_tell(&f->provenance, &f->texts, &of);
	loop_facts_clear(f);
	free(rows->own);
	free(rows);
	return r;
}
