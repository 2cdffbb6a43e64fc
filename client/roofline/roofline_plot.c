/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A dot is a row as the table has it: by itself, or with the loops inside. The dots of a run stand
 * in the order of its rows, one for each, so a dot's row follows from its place.
 */
#include "client/roofline/roofline_plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/escape.h"
#include "proto/base/memory.h"

#define CALLS_MAX 1e18 /* is printed as a whole number of 64 bits */

/* The columns that a dot is made of. */
struct columns {
	int name, source, nest, share, gops, gbytes, ops_per_byte, error, calls, time_ns;
	int dram_gbytes, ops_per_dram_byte; /* not of loops */
	int dp_share, gops_error;           /* of counters */
	int ops[PLOT_I64];                  /* by precision; f64, f32, f16 */
};

static int either(const struct reply *r, const char *wanted, const char *otherwise)
{
	int column = reply_column(r, wanted);
	return column >= 0 ? column : reply_column(r, otherwise);
}

/* Use a loop's own figures, without inner loops, if the table shows these. */
static void find_columns(
	const struct options *o, const struct reply *r, struct columns *ret_columns)
{
	bool own = !o->inclusive && (!o->by || strcmp(o->by, "loop") == 0) &&
		   reply_column(r, "gops_self") >= 0;
	struct columns c = {.name = either(r, "function", "region"),
		.source = reply_column(r, "source"),
		.nest = reply_column(r, "nest"),
		.share = reply_column(r, own ? "share_self" : "share"),
		.gops = reply_column(r, own ? "gops_self" : "gops"),
		.gbytes = reply_column(r, own ? "gbytes_self" : "gbytes"),
		.ops_per_byte = reply_column(r, own ? "ops_per_byte_self" : "ops_per_byte"),
		.error = reply_column(r, own ? "error_self" : "error"),
		.dram_gbytes = reply_column(r, "dram_gbytes"),
		.ops_per_dram_byte = reply_column(r, "ops_per_dram_byte"),
		.dp_share = reply_column(r, "dp_share"),
		.gops_error = reply_column(r, "gops_error"),
		.calls = reply_column(r, "entries"),
		.time_ns = reply_column(r, own ? "time_self_ns" : "time_ns"),
		.ops = {[PLOT_F64] = reply_column(r, "fp64_ops"),
			[PLOT_F32] = reply_column(r, "fp32_ops"),
			[PLOT_F16] = reply_column(r, "fp16_ops")}};
	if (c.name < 0)
		c.name = either(r, "comm", "program");
	*ret_columns = c;
}

/* Negative: not known, or not finite. */
static double number(const struct reply *r, size_t row, int column)
{
	double n;
	return reply_number(r, row, column, &n) && isfinite(n) ? n : -1;
}

/* The precision of most of the row's operations. Integers are counted regardless of their width, so
 * assume 64 bits. */
static enum plot_precision precision_of(
	const struct options *o, const struct reply *r, size_t row, const struct columns *c)
{
	const char *ops = o->ops ? o->ops : "fp";
	if (strcmp(ops, "int") == 0)
		return PLOT_I64;
	if (strcmp(ops, "sp") == 0)
		return PLOT_F32;
	double dp_share = number(r, row, c->dp_share);
	if (dp_share >= 0 && dp_share < 0.5 && strcmp(ops, "fp") == 0)
		return PLOT_F32;
	enum plot_precision most = PLOT_F64;
	for (enum plot_precision k = PLOT_F32; k < PLOT_I64 && strcmp(ops, "dp") != 0; k++)
		if (number(r, row, c->ops[k]) > number(r, row, c->ops[most]))
			most = k;
	return most;
}

/* The error of the rate, as a share; with counters, half of its interval. */
static double error_of(const struct reply *r, size_t row, const struct columns *c)
{
	double gops = number(r, row, c->gops), error = number(r, row, c->gops_error);
	return gops > 0 && error >= 0 ? error / gops : number(r, row, c->error);
}

static void add_dots(const struct options *o, const struct reply *r, unsigned run, struct plot *p)
{
	struct columns c;
	find_columns(o, r, &c);
	for (size_t i = 0; i < r->n_rows; i++) {
		const char *name = reply_text(r, i, c.name);
		p->dot[p->n_dots++] = (struct plot_dot){.name = name ? name : "-",
			.source = reply_text(r, i, c.source),
			.ops_per_byte = number(r, i, c.ops_per_byte),
			.gops = number(r, i, c.gops),
			.gbytes = number(r, i, c.gbytes),
			.ops_per_dram_byte = number(r, i, c.ops_per_dram_byte),
			.dram_gbytes = number(r, i, c.dram_gbytes),
			.share = number(r, i, c.share),
			.error = error_of(r, i, &c),
			.calls = fmin(number(r, i, c.calls), CALLS_MAX),
			.time_ns = number(r, i, c.time_ns),
			.precision = precision_of(o, r, i, &c),
			.run = run,
			.later = PLOT_NO_DOT};
	}
}

/* --- the same loop in two runs ---------------------------------------------------------------- */

struct key {
	const char *name, *source, *nest;
	size_t dot;
};

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* The source file without its line (":12"), since lines move when the file is edited. */
static size_t file_bytes(const char *source)
{
	const char *colon = source ? strrchr(source, ':') : NULL;
	return colon ? (size_t)(colon - source) : source ? strlen(source) : 0;
}

static int compare_files(const char *a, const char *b)
{
	size_t n = file_bytes(a), m = file_bytes(b);
	int order = strncmp(a ? a : "", b ? b : "", n < m ? n : m);
	return order != 0 ? order : (n > m) - (n < m);
}

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	int order = compare_text(x->name, y->name);
	if (order == 0)
		order = compare_files(x->source, y->source);
	return order != 0 ? order : compare_text(x->nest, y->nest);
}

static struct key key_of(const struct reply *r, const struct columns *c, size_t row, size_t first)
{
	return (struct key){reply_text(r, row, c->name), reply_text(r, row, c->source),
		reply_text(r, row, c->nest), first + row};
}

/* Join a loop to the one at `at` of the sorted keys, unless either has a duplicate: two builds of a
 * program, or two processes. from[at] is the loop already joined to it, plus 1. */
static void join_one(
	struct plot *p, size_t dot, const struct key *keys, size_t n, size_t at, size_t *from)
{
	bool is_twin = (at > 0 && compare_keys(&keys[at], &keys[at - 1]) == 0) ||
		       (at + 1 < n && compare_keys(&keys[at], &keys[at + 1]) == 0);
	if (from[at])
		p->dot[from[at] - 1].later = PLOT_NO_DOT;
	else if (!is_twin)
		p->dot[dot].later = keys[at].dot;
	from[at] = dot + 1;
}

/* Join loops of the same name, file and place among the loops of their function. 0, -ENOMEM. */
static int join(const struct options *o, const struct reply *before, const struct reply *after,
	struct plot *p)
{
	struct columns c, old;
	size_t n = after->n_rows;
	_cleanup_(freep) struct key *keys = calloc(n + 1, sizeof(*keys));
	_cleanup_(freep) size_t *from = calloc(n + 1, sizeof(*from));
	if (!keys || !from)
		return -ENOMEM;
	find_columns(o, after, &c);
	find_columns(o, before, &old);
	for (size_t i = 0; i < n; i++)
		keys[i] = key_of(after, &c, i, before->n_rows);
	qsort(keys, n, sizeof(*keys), compare_keys);
	for (size_t i = 0; i < before->n_rows; i++) {
		struct key wanted = key_of(before, &old, i, 0);
		struct key *found = bsearch(&wanted, keys, n, sizeof(*keys), compare_keys);
		if (found)
			join_one(p, i, keys, n, (size_t)(found - keys), from);
	}
	return 0;
}

/* --- the plot --------------------------------------------------------------------------------- */

static const char *units(const struct options *o, bool rate)
{
	bool is_integer = o->ops && strcmp(o->ops, "int") == 0;
	return rate ? (is_integer ? "GIOP/s" : "GFLOP/s") : (is_integer ? "IOP/byte" : "FLOP/byte");
}

/* The provenance line; without samples, only the notes. The caller frees; NULL if memory ran out. */
static char *provenance_text(const Mperf__Provenance *p)
{
	char *text = NULL;
	size_t bytes;
	if (*p->event)
		return reply_provenance_line(p);
	FILE *f = open_memstream(&text, &bytes);
	if (!f)
		return NULL;
	fputs("Counted.", f);
	for (size_t i = 0; i < p->n_note; i++) {
		fputc(' ', f);
		escape_terminal(f, p->note[i]);
	}
	if (fclose(f) != 0)
		free(TAKE_PTR(text));
	return text;
}

static int fill(const struct options *o, const struct reply *const *runs, size_t n_runs,
	struct roofline_plot *p)
{
	struct plot *plot = &p->plot;
	size_t n = 0;
	for (size_t i = 0; i < n_runs; i++)
		n += runs[i]->n_rows;
	plot->dot = calloc(n + 1, sizeof(*plot->dot));
	if (!plot->dot)
		return -ENOMEM;
	for (size_t i = 0; i < n_runs; i++) {
		p->first = plot->n_dots;
		add_dots(o, runs[i], (unsigned)i, plot);
	}
	const Mperf__Provenance *provenance = runs[n_runs - 1]->provenance;
	if (provenance && !(p->provenance = provenance_text(provenance)))
		return -ENOMEM;
	plot->provenance = p->provenance;
	return n_runs == PLOT_RUNS_MAX ? join(o, runs[0], runs[1], plot) : 0;
}

int roofline_plot_make(const struct options *o, const struct reply *const *runs, size_t n_runs,
	const struct roofline_roofs *roofs, struct roofline_plot *ret_plot)
{
	struct roofline_plot *p = ret_plot;
	*p = (struct roofline_plot){
		.plot = {.title = "Roofline",
			.rate = units(o, true),
			.per_byte = units(o, false),
			.run = {o->earlier ? o->earlier : o->input, o->input},
			.n_runs = n_runs,
			.is_integer = o->ops && strcmp(o->ops, "int") == 0,
			.dram_only = o->from && strcmp(o->from, "counters") == 0}};
	const bool draws = o->plot || o->output;
	int r = roofs ? 0
		      : roofline_roofs_find(o->peaks ? ROOFLINE_PEAKS_TOO
					    : draws  ? ROOFLINE_PEAKS_ALONE
						     : ROOFLINE_NO_PEAKS,
				&p->own);
	p->roofs = roofs ? roofs : &p->own;
	if (r == 0)
		r = fill(o, runs, n_runs, p);
	if (r < 0)
		return r;
	p->plot.roof = p->roofs->roof;
	p->plot.n_roofs = p->roofs->n;
	p->plot.no_roofs = *p->roofs->none ? p->roofs->none : NULL;
	p->plot.stale = *p->roofs->stale ? p->roofs->stale : NULL;
	p->plot.disturbed = *p->roofs->disturbed ? p->roofs->disturbed : NULL;
	p->plot.whose = *p->roofs->whose ? p->roofs->whose : NULL;
	plot_sets_make(&p->plot, &p->sets);
	plot_bind(&p->plot, &p->sets);
	return 0;
}

void roofline_plot_clear(struct roofline_plot *p)
{
	roofline_roofs_clear(&p->own);
	free(p->plot.dot);
	free(p->provenance);
	*p = (struct roofline_plot){.plot.dot = NULL};
}

/* --- columns ---------------------------------------------------------------------------------- */

static int add_column(
	struct reply *reply, const char *name, const char *title, Mperf__Unit unit, int *ret_column)
{
	Mperf__Column column = MPERF__COLUMN__INIT;
	column.name = (char *)name;
	column.title = (char *)title;
	column.unit = unit;
	return reply_extend(reply, &column, ret_column);
}

/* Add the share of the roof, and the roof that bounds; of_dram: for the bytes that came from memory. */
static int add_bounds(const struct roofline_plot *p, bool of_dram, struct reply *reply)
{
	int of_roof, bound_by;
	int r = add_column(reply, of_dram ? "of_dram_roof" : "of_roof",
		of_dram ? "Of DRAM roof" : "Of roof", MPERF__UNIT__UNIT_SHARE, &of_roof);
	if (r == 0)
		r = add_column(reply, of_dram ? "dram_bound_by" : "bound_by",
			of_dram ? "DRAM: bound by" : "Bound by", MPERF__UNIT__UNIT_NONE, &bound_by);
	for (size_t i = 0; i < reply->n_rows && r == 0; i++) {
		const struct plot_dot *d = &p->plot.dot[p->first + i];
		double share = of_dram ? d->of_dram_roof : d->of_roof;
		const char *bound = plot_bound_text(of_dram ? d->dram_bound : d->bound);
		if (share >= 0)
			reply_set_real(reply, i, of_roof, share);
		if (bound)
			r = reply_set_text(reply, i, bound_by, bound);
	}
	return r;
}

int roofline_plot_extend(const struct roofline_plot *p, struct reply *reply)
{
	if (p->plot.n_roofs == 0 || p->plot.no_roofs || p->plot.stale || !reply->columns)
		return 0;
	int r = add_bounds(p, false, reply);
	if (r == 0 && reply_column(reply, "ops_per_dram_byte") >= 0)
		r = add_bounds(p, true, reply);
	return r == 0 && p->plot.disturbed ? reply_note_first(reply, p->plot.disturbed) : r;
}

int roofline_plot_mark(const struct roofline_plot *p, const char *mark, struct reply *reply)
{
	int dot;
	if (!reply->columns)
		return 0;
	int r = add_column(reply, "dot", "Dot", MPERF__UNIT__UNIT_NONE, &dot);
	for (size_t i = 0; i < reply->n_rows && r == 0; i++) {
		char letter[] = {mark[p->first + i], '\0'};
		if (*letter)
			r = reply_set_text(reply, i, dot, letter);
	}
	return r;
}
