/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The daemon's answers have a row, or a column, for each metric; a roofline has a row for each program. Names
 * of metrics are those of the group Roofline in platform-db.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/roofline/roofline_counters.h"

enum figure { GOPS, GBYTES, PER_BYTE, DP_SHARE, N_FIGURES };

/* The metrics of one kind of operations (--ops). The fourth is a group: it adds the share of double
 * precision, if the core's events tell precisions apart. */
struct kind {
	const char *ops;
	const char *metric[COUNTERS_METRICS_MAX], *of_samples[COUNTERS_METRICS_MAX];
	const char *title; /* of the rate */
};
static const struct kind kinds[] = {
	{"fp", {"fp_gflops", "dram_gbytes", "fp_per_dram_byte", "Roofline"},
		{"fp_gflops", "dram_gbytes", "fp_per_dram_byte"}, "GFLOP/s"},
	{"dp", {"dp_gflops", "dram_gbytes", "dp_per_dram_byte"},
		{"dp_gflops", "dram_gbytes", "dp_per_dram_byte"}, "DP GFLOP/s"},
	{"sp", {"sp_gflops", "dram_gbytes", "sp_per_dram_byte"},
		{"sp_gflops", "dram_gbytes", "sp_per_dram_byte"}, "SP GFLOP/s"},
};

static const struct kind *kind_of(const char *ops)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (ops && strcmp(kinds[i].ops, ops) == 0)
			return &kinds[i];
	return &kinds[0];
}

const char *const *roofline_counters_metrics(const char *ops, bool of_samples)
{
	return of_samples ? kind_of(ops)->of_samples : kind_of(ops)->metric;
}

const char *roofline_counters_needed(const char *ops)
{
	return kind_of(ops)->metric[PER_BYTE];
}

static const char *metric_of(const struct kind *k, enum figure figure)
{
	return figure == DP_SHARE ? "fp_dp_share" : k->metric[figure];
}

/* --- rows ------------------------------------------------------------------------------------- */

enum column {
#define BY_COUNTERS(name, title, unit) COLUMN_##name,
#include "proto/figures.inc"
	N_COLUMNS
};

#define RATE NULL /* that of the operations */
static const struct reply_heading headings[N_COLUMNS] = {
#define BY_COUNTERS(name, title, unit) {#name, title, MPERF__UNIT__UNIT_##unit},
#include "proto/figures.inc"
};

/* The row of one program, process, thread or function. */
struct one {
	Mperf__Value value[N_COLUMNS];
	double figure[N_FIGURES], error[N_FIGURES];
	double counted; /* the part of the time in which the least of its events was counted */
};

/* The columns that an answer has, in this order. */
struct made {
	const struct kind *kind;
	struct reply *reply;
	enum column column[N_COLUMNS];
	size_t n;
	size_t n_rows; /* with operations and bytes */
};

static struct one one_new(void)
{
	struct one one = {.counted = NAN};
	for (size_t i = 0; i < N_COLUMNS; i++)
		mperf__value__init(&one.value[i]);
	for (size_t i = 0; i < N_FIGURES; i++)
		one.figure[i] = one.error[i] = NAN;
	return one;
}

static int begin(struct made *m, const enum column *keys, size_t n_keys)
{
	struct reply_heading heading[N_COLUMNS];
	for (size_t i = 0; i < n_keys; i++)
		m->column[m->n++] = keys[i];
	for (enum column c = COLUMN_gops; c < N_COLUMNS; c++)
		m->column[m->n++] = c;
	for (size_t i = 0; i < m->n; i++) {
		heading[i] = headings[m->column[i]];
		if (!heading[i].title)
			heading[i].title = m->kind->title;
	}
	return reply_head(m->reply, heading, m->n);
}

static int end_row(struct made *m, struct one *one)
{
	Mperf__Value row[N_COLUMNS];
	const double *f = one->figure;
	for (int i = 0; i <= PER_BYTE; i++) {
		one->value[COLUMN_gops + 2 * i] = reply_value_of_real(f[i]);
		one->value[COLUMN_gops + 2 * i + 1] = reply_value_of_real(one->error[i]);
	}
	one->value[COLUMN_dp_share] = reply_value_of_real(f[DP_SHARE] / 100); /* in percent */
	one->value[COLUMN_counted] = reply_value_of_real(one->counted);
	one->value[COLUMN_from] = reply_value_of_text("counters");
	m->n_rows += isfinite(f[GOPS]) && isfinite(f[GBYTES]);
	for (size_t i = 0; i < m->n; i++)
		row[i] = one->value[m->column[i]];
	return reply_append(m->reply, row, m->n);
}

static double number(const struct reply *r, size_t row, const char *column)
{
	double n;
	return reply_number(r, row, reply_column(r, column), &n) ? n : NAN;
}

static const char *text(const struct reply *r, size_t row, const char *column)
{
	return reply_text(r, row, reply_column(r, column));
}

/* --- of one program --------------------------------------------------------------------------- */

static bool is_metric(const struct reply *from, size_t row, const char *name)
{
	const char *event = text(from, row, "event");
	return event && text(from, row, "formula") && strcmp(event, name) == 0;
}

static void note_reason(const struct reply *from, size_t row, const char *name,
	char reason[static COUNTERS_REASON_BYTES])
{
	const char *why = text(from, row, "reason");
	if (!*reason && why)
		snprintf(reason, COUNTERS_REASON_BYTES, "there is no %s: %.400s", name, why);
}

/* Store the figures of one row of the answer in *one. */
static void take_metric(const struct made *m, const struct reply *from, size_t row, struct one *one,
	char reason[static COUNTERS_REASON_BYTES])
{
	for (enum figure i = 0; i < N_FIGURES; i++) {
		const char *name = metric_of(m->kind, i);
		if (!is_metric(from, row, name))
			continue;
		one->figure[i] = number(from, row, "scaled");
		one->error[i] = number(from, row, "error");
		one->counted = fmin(one->counted, number(from, row, "running_share"));
		if (i == GOPS || i == GBYTES)
			note_reason(from, row, name, reason);
	}
}

int roofline_counters_of_stat(const struct reply *from, const char *ops, const char *program,
	struct reply *ret_reply, char ret_reason[static COUNTERS_REASON_BYTES])
{
	static const enum column keys[] = {COLUMN_program, COLUMN_harts};
	bool apart = reply_column(from, "harts") >= 0;
	struct made m = {.kind = kind_of(ops), .reply = ret_reply};
	struct one one = one_new();
	bool has_row = false;
	*ret_reason = '\0';
	int r = begin(&m, keys, apart ? 2 : 1);
	for (size_t i = 0; i < from->n_rows && r == 0; i++) {
		if (is_metric(from, i, metric_of(m.kind, GOPS))) { /* the first of a kind of core */
			r = has_row ? end_row(&m, &one) : 0;
			has_row = true;
			one = one_new();
			one.value[COLUMN_program] = reply_value_of_text(program);
			one.value[COLUMN_harts] = reply_value_of_text(text(from, i, "harts"));
		}
		take_metric(&m, from, i, &one, ret_reason);
	}
	if (r == 0 && has_row)
		r = end_row(&m, &one);
	return r == 0 && m.n_rows == 0 ? COUNTERS_NONE : r;
}

/* --- of samples ------------------------------------------------------------------------------- */

/* Columns of an answer to hotspots that identify a row, and our columns for them. */
static const struct {
	enum column column;
	const char *name;
} keys_of_samples[] = {{COLUMN_function, "function"}, {COLUMN_module, "module"},
	{COLUMN_comm, "comm"}, {COLUMN_pid, "pid"}, {COLUMN_tid, "tid"}, {COLUMN_share, "self"},
	{COLUMN_time_ns, "self_ns"}};
#define N_KEYS (sizeof(keys_of_samples) / sizeof(*keys_of_samples))

static void take_keys(const struct reply *from, size_t row, struct one *one)
{
	for (size_t i = 0; i < N_KEYS; i++) {
		const Mperf__Value *v =
			reply_value(from, row, reply_column(from, keys_of_samples[i].name));
		if (v)
			one->value[keys_of_samples[i].column] = *v;
	}
}

static void take_columns(
	const struct made *m, const struct reply *from, size_t row, struct one *one)
{
	char error[64];
	for (enum figure i = 0; i <= PER_BYTE; i++) {
		const char *name = metric_of(m->kind, i);
		snprintf(error, sizeof(error), "%s_error", name);
		one->figure[i] = number(from, row, name);
		one->error[i] = number(from, row, error);
	}
}

int roofline_counters_of_samples(const struct reply *from, const char *ops, struct reply *ret_reply,
	char ret_reason[static COUNTERS_REASON_BYTES])
{
	enum column keys[N_KEYS];
	size_t n_keys = 0;
	struct made m = {.kind = kind_of(ops), .reply = ret_reply};
	for (size_t i = 0; i < N_KEYS; i++)
		if (reply_column(from, keys_of_samples[i].name) >= 0)
			keys[n_keys++] = keys_of_samples[i].column;
	int r = begin(&m, keys, n_keys);
	for (size_t i = 0; i < from->n_rows && r == 0; i++) {
		struct one one = one_new();
		take_keys(from, i, &one);
		take_columns(&m, from, i, &one);
		r = end_row(&m, &one);
	}
	snprintf(ret_reason, COUNTERS_REASON_BYTES, "no sample carried counts of %s and %s",
		metric_of(m.kind, GOPS), metric_of(m.kind, GBYTES));
	return r == 0 && from->n_rows > 0 && m.n_rows == 0 ? COUNTERS_NONE : r;
}
