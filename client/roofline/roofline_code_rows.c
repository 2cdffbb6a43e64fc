/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "client/roofline/roofline_code_rows.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/memory.h"

enum {
#define BY_CODE(name, title, unit, cell, value) FIGURE_##name,
#include "proto/figures.inc"
	N_FIGURES
};

/* Texts of a row. */
struct texts {
	char source[1024], limits[256], function[PATH_MAX];
};

static enum code_ops ops_of(const struct options *o)
{
	static const char *const names[N_CODE_OPS] = {"fp", "int", "sp", "dp"};
	for (int i = 0; o->ops && i < N_CODE_OPS; i++)
		if (strcmp(o->ops, names[i]) == 0)
			return (enum code_ops)i;
	return CODE_OPS_FP;
}

static void add_limit(struct texts *t, const char *says)
{
	size_t n = strlen(t->limits);
	snprintf(t->limits + n, sizeof(t->limits) - n, "%s%s", n ? "; " : "", says);
}

static void add_limits(struct texts *t, const struct code_loop *l, uint32_t vector_bits)
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
			add_limit(t, flags[i].says);
	char vectors[64];
	snprintf(vectors, sizeof(vectors), "vectors of %u bits", vector_bits);
	if (l->flags & CODE_SCALABLE)
		add_limit(t, vector_bits ? vectors : "vectors of any length (--vector-bits)");
}

/* The offset in the file names a loop of a stripped program: "[liblzma.so.5+0x1a2b]".
 * */
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

/* Rates need the instructions of all samples of the loop. Their number is as uncertain as the
 * loop's share of the samples. */
static void fill(const struct view *v, const struct found_loop *found, struct texts *text,
	Mperf__Value value[static N_FIGURES])
{
	const struct code_loop *l = &found->loop;
	const struct place *p = found->hottest;
	enum code_ops ops = ops_of(v->o);
	const struct code_estimate *done = &l->operations[ops];
	double bytes = l->bytes_loaded.value + l->bytes_stored.value;
	double instructions = l->instructions > 0 && l->ns > 0 ? l->instructions : NAN;
	double per_ns = instructions / l->ns, off = 1.96 / sqrt((double)l->samples);
	size_t n = 0;
	*text = (struct texts){.source = ""};
	if (*p->source)
		snprintf(text->source, sizeof(text->source), "%.900s:%.0f", p->source, p->line);
	add_limits(text, l, v->vector_bits);
#define BY_CODE(name, title, unit, cell, cell_value) value[n++] = reply_value_of_##cell(cell_value);
#include "proto/figures.inc"
}

/* With --ops int, titles name operations (OP) instead of FLOPs. */
static int add_columns(struct reply *r, enum code_ops ops)
{
	bool is_integer = ops == CODE_OPS_INT;
	const char *const RATE = is_integer ? "GOP/s" : "GFLOP/s";
	const char *const PER_BYTE = is_integer ? "OP/B" : "FLOP/B";
	const char *const PER_INSTRUCTION = is_integer ? "OP/instr." : "FLOP/instr.";
	const struct reply_heading heading[N_FIGURES] = {
#define BY_CODE(name, title, unit, cell, value) {#name, title, MPERF__UNIT__UNIT_##unit},
#include "proto/figures.inc"
	};
	return reply_head(r, heading, N_FIGURES);
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
	_cleanup_(freep) struct texts *text = malloc(sizeof(*text));
	Mperf__Value value[N_FIGURES];
	if (!text)
		return -ENOMEM;
	qsort(v->loop, v->n_loops, sizeof(*v->loop), compare_loops);
	int outcome = add_columns(r, ops_of(v->o));
	uint32_t n = v->o->limit && v->o->limit < v->n_loops ? v->o->limit : v->n_loops;
	for (uint32_t i = 0; i < n && outcome == 0; i++) {
		fill(v, &v->loop[i], text, value);
		outcome = reply_append(r, value, N_FIGURES);
	}
	return outcome == 0 ? add_provenance(v, r) : outcome;
}
