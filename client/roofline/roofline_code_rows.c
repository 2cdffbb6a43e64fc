/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/roofline/roofline_code_rows.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"

enum column {
	FUNCTION,
	SOURCE,
	SHARE,
	GOPS,
	GOPS_LOW,
	GOPS_HIGH,
	GBYTES,
	OPS_PER_BYTE,
	OPS_PER_BYTE_LOW,
	OPS_PER_BYTE_HIGH,
	OPS_PER_INSTRUCTION,
	BYTES_PER_INSTRUCTION,
	SAMPLES,
	TIME,
	INSTRUCTIONS,
	FP64_OPS,
	FP32_OPS,
	DEPTH,
	LIMITS,
	FROM,
	MODULE,
	START,
	LAST,
	N_CODE_COLUMNS,
};

static const struct reply_heading columns[N_CODE_COLUMNS] = {
	[FUNCTION] = {"function", "Function", 0},
	[SOURCE] = {"source", "Source", 0},
	[SHARE] = {"share_self", "Share", MPERF__UNIT__UNIT_SHARE},
	[GOPS] = {"gops_self", "GFLOP/s", MPERF__UNIT__UNIT_RATIO},
	[GOPS_LOW] = {"gops_low", "from", MPERF__UNIT__UNIT_RATIO},
	[GOPS_HIGH] = {"gops_high", "to", MPERF__UNIT__UNIT_RATIO},
	[GBYTES] = {"gbytes_self", "GB/s", MPERF__UNIT__UNIT_RATIO},
	[OPS_PER_BYTE] = {"ops_per_byte_self", "FLOP/B", MPERF__UNIT__UNIT_RATIO},
	[OPS_PER_BYTE_LOW] = {"ops_per_byte_low", "from", MPERF__UNIT__UNIT_RATIO},
	[OPS_PER_BYTE_HIGH] = {"ops_per_byte_high", "to", MPERF__UNIT__UNIT_RATIO},
	[OPS_PER_INSTRUCTION] = {"ops_per_instruction", "FLOP/instr.", MPERF__UNIT__UNIT_RATIO},
	[BYTES_PER_INSTRUCTION] = {"bytes_per_instruction", "B/instr.", MPERF__UNIT__UNIT_RATIO},
	[SAMPLES] = {"samples", "Samples", MPERF__UNIT__UNIT_COUNT},
	[TIME] = {"self_ns", "Time", MPERF__UNIT__UNIT_NS},
	[INSTRUCTIONS] = {"instructions", "Instructions", MPERF__UNIT__UNIT_COUNT},
	[FP64_OPS] = {"fp64_ops", "fp64", MPERF__UNIT__UNIT_COUNT},
	[FP32_OPS] = {"fp32_ops", "fp32", MPERF__UNIT__UNIT_COUNT},
	[DEPTH] = {"depth", "Depth", 0},
	[LIMITS] = {"limits", "But", 0},
	[FROM] = {"from", "From", 0},
	[MODULE] = {"module", "Module", 0},
	[START] = {"start", "Start", 0},
	[LAST] = {"last", "Last", 0},
};

/* Of a row. */
struct cells {
	Mperf__Value value[N_CODE_COLUMNS];
	char source[1024], limits[256], function[PATH_MAX];
};

static void put_text(struct cells *c, enum column i, const char *t)
{
	c->value[i] = reply_value_of_text(t);
}

static void put_real(struct cells *c, enum column i, double n)
{
	c->value[i] = reply_value_of_real(n);
}

static void put_integer(struct cells *c, enum column i, uint64_t n)
{
	c->value[i] = reply_value_of_integer(n);
}

static enum code_ops ops_of(const struct options *o)
{
	static const char *const names[N_CODE_OPS] = {"fp", "int", "sp", "dp"};
	for (int i = 0; o->ops && i < N_CODE_OPS; i++)
		if (strcmp(o->ops, names[i]) == 0)
			return (enum code_ops)i;
	return CODE_OPS_FP;
}

static void add_limit(struct cells *c, const char *says)
{
	size_t n = strlen(c->limits);
	snprintf(c->limits + n, sizeof(c->limits) - n, "%s%s", n ? "; " : "", says);
}

static void put_limits(struct cells *c, const struct code_loop *l, uint32_t vector_bits)
{
	static const struct {
		uint32_t flag;
		const char *says;
	} flags[] = {
		{CODE_MASKED, "masked: none to all lanes"},
		{CODE_INCOMPLETE, "instructions not known"},
		{CODE_CALLS, "without what it calls"},
		{CODE_INDIRECT, "computed jumps"},
	};
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (l->flags & flags[i].flag)
			add_limit(c, flags[i].says);
	char vectors[64];
	snprintf(vectors, sizeof(vectors), "vectors of %u bits", vector_bits);
	if (l->flags & CODE_SCALABLE)
		add_limit(c, vector_bits ? vectors : "vectors of any length (--vector-bits)");
	put_text(c, LIMITS, c->limits);
}

/* Rates need instructions, of all samples of the loop. Their number is as uncertain as the share of
 * samples that the loop has. */
static void put_rates(struct cells *c, const struct code_loop *l, enum code_ops ops)
{
	if (l->instructions <= 0 || l->ns <= 0)
		return;
	const struct code_estimate *e = &l->operations[ops];
	double per_ns = l->instructions / l->ns, off = 1.96 / sqrt((double)l->samples);
	put_real(c, GOPS, e->value * per_ns);
	put_real(c, GOPS_LOW, e->low * per_ns * (off < 1 ? 1 - off : 0));
	put_real(c, GOPS_HIGH, e->high * per_ns * (1 + off));
	put_real(c, FP64_OPS, l->operations[CODE_OPS_DP].value * l->instructions);
	put_real(c, FP32_OPS, l->operations[CODE_OPS_SP].value * l->instructions);
	put_real(c, GBYTES, (l->bytes_loaded.value + l->bytes_stored.value) * per_ns);
}

/* Loops of a stripped program are apart by where they are in the file: "[liblzma.so.5+0x1a2b]". */
static const char *function_of(
	const struct place *p, const struct code_loop *l, char text[static PATH_MAX])
{
	const char *slash = strrchr(p->module, '/');
	if (*p->function && strcmp(p->function, "[unknown]") != 0)
		return p->function;
	snprintf(text, PATH_MAX, "[%s+0x%llx]", slash ? slash + 1 : p->module,
		(unsigned long long)l->start);
	return text;
}

static void fill(const struct view *v, const struct found_loop *found, struct cells *c)
{
	const struct code_loop *l = &found->loop;
	const struct place *p = found->hottest;
	enum code_ops ops = ops_of(v->o);
	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < N_CODE_COLUMNS; i++)
		mperf__value__init(&c->value[i]);
	if (*p->source)
		snprintf(c->source, sizeof(c->source), "%.900s:%.0f", p->source, p->line);
	put_text(c, FUNCTION, function_of(p, l, c->function));
	put_text(c, SOURCE, c->source);
	put_text(c, MODULE, p->module);
	put_text(c, FROM, "machine code");
	put_real(c, SHARE, v->ns > 0 ? l->ns / v->ns : NAN);
	put_rates(c, l, ops);
	put_real(c, OPS_PER_BYTE, l->intensity[ops].value);
	put_real(c, OPS_PER_BYTE_LOW, l->intensity[ops].low);
	put_real(c, OPS_PER_BYTE_HIGH, l->intensity[ops].high);
	put_real(c, OPS_PER_INSTRUCTION, l->operations[ops].value);
	put_real(c, BYTES_PER_INSTRUCTION, l->bytes_loaded.value + l->bytes_stored.value);
	put_integer(c, SAMPLES, l->samples);
	put_real(c, TIME, l->ns);
	if (l->instructions >= 0)
		put_real(c, INSTRUCTIONS, l->instructions);
	put_integer(c, DEPTH, l->depth);
	put_integer(c, START, l->start);
	put_integer(c, LAST, l->last);
	put_limits(c, l, v->vector_bits);
}

/* With --ops int, what are FLOPs elsewhere are operations. */
static const char *title_of(enum column c, enum code_ops ops)
{
	if (ops == CODE_OPS_INT && c == GOPS)
		return "GOP/s";
	if (ops == CODE_OPS_INT && c == OPS_PER_BYTE)
		return "OP/B";
	if (ops == CODE_OPS_INT && c == OPS_PER_INSTRUCTION)
		return "OP/instr.";
	return columns[c].title;
}

static int add_columns(struct reply *r, enum code_ops ops)
{
	struct reply_heading heading[N_CODE_COLUMNS];
	for (size_t i = 0; i < N_CODE_COLUMNS; i++) {
		heading[i] = columns[i];
		heading[i].title = title_of((enum column)i, ops);
	}
	return reply_head(r, heading, N_CODE_COLUMNS);
}

static int compare_loops(const void *a, const void *b)
{
	const struct found_loop *x = a, *y = b;
	if (x->loop.ns != y->loop.ns)
		return x->loop.ns < y->loop.ns ? 1 : -1;
	return (x->loop.start > y->loop.start) - (x->loop.start < y->loop.start);
}

/* The provenance of the samples, with our notes before its own. */
static int add_provenance(struct view *v, struct reply *r)
{
	Mperf__Provenance *p = v->places.provenance;
	size_t n = v->n_notes + (p ? p->n_note : 0);
	_cleanup_(freep) char **list = calloc(n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		list[i] = i < v->n_notes ? v->note[i] : p->note[i - v->n_notes];
	return reply_append_provenance(r, p, list, n);
}

int roofline_code_rows(struct view *v, struct reply *r)
{
	_cleanup_(freep) struct cells *cells = malloc(sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	qsort(v->loop, v->n_loops, sizeof(*v->loop), compare_loops);
	int outcome = add_columns(r, ops_of(v->o));
	uint32_t n = v->o->limit && v->o->limit < v->n_loops ? v->o->limit : v->n_loops;
	for (uint32_t i = 0; i < n && outcome == 0; i++) {
		fill(v, &v->loop[i], cells);
		outcome = reply_append(r, cells->value, N_CODE_COLUMNS);
	}
	return outcome == 0 ? add_provenance(v, r) : outcome;
}
