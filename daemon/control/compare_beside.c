/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A row has what both sides have of a function: its share of the side's time, time, instructions and
 * IPC, and ratios. A function that has moved or has another name is one row. Rows stand by the larger of
 * their shares, so that what matters on either side is at the top.
 */
#include "daemon/control/compare_beside.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/compare_values.h"

static struct answer_value text(const char *t)
{
	return t && *t ? (struct answer_value){.kind = ANSWER_TEXT, .text = t}
		       : (struct answer_value){.kind = ANSWER_ABSENT};
}

static struct answer_value count(double value)
{
	return value >= 0 ? (struct answer_value){.kind = ANSWER_INTEGER,
				    .integer = (int64_t)fmin(value + 0.5, 9.2e18)}
			  : (struct answer_value){.kind = ANSWER_ABSENT};
}

/* a / b; absent where one is not known or b is nothing. */
static struct answer_value ratio(double a, double b)
{
	return a >= 0 && b > 0 ? (struct answer_value){.kind = ANSWER_REAL, .real = a / b}
			       : (struct answer_value){.kind = ANSWER_ABSENT};
}

const char *compare_became(
	const struct gather *g, const struct became *became, size_t row, char *buffer)
{
	const struct became *b = &became[row];
	const bool is_gone = gather_sums(g, row, true).samples <= 0;
	const char *names[GATHER_PARTS] = {NULL};
	if (b->kind == BECAME_MOVED || b->kind == BECAME_RENAMED)
		gather_names(g, b->other, names);
	const char *function = names[0] ? names[0] : "", *module = names[1] ? names[1] : "";
	if (b->kind == BECAME_NOTHING)
		return NULL;
	if (b->kind == BECAME_MOVED)
		snprintf(buffer, BECAME_TEXT_BYTES, "%s %s", is_gone ? "moved to" : "moved from",
			module);
	else if (b->kind == BECAME_RENAMED)
		snprintf(buffer, BECAME_TEXT_BYTES, "%s %s (same callers)",
			is_gone ? "renamed to" : "renamed from", function);
	else
		snprintf(buffer, BECAME_TEXT_BYTES, "inlined in the %s",
			is_gone ? "candidate" : "baseline");
	return buffer;
}

/* --- the sides -------------------------------------------------------------------------------- */

static int tell_sides(
	struct row_stream *stream, const struct answer *to, const struct compare_sides *sides)
{
	const struct gather *g = sides->gather;
	static const struct answer_column columns[] = {{"side", "Side", 0},
		{"machine", "Machine", 0}, {"host", "Host", 0}, {"event", "Event", 0},
		{"rung", "Rung", 0}, {"hz", "Rate", MPERF__UNIT__UNIT_HZ},
		{"runs", "Runs", MPERF__UNIT__UNIT_COUNT},
		{"samples", "Samples", MPERF__UNIT__UNIT_COUNT},
		{"ns", "Time", MPERF__UNIT__UNIT_NS}, {"cycles", "Cycles", MPERF__UNIT__UNIT_COUNT},
		{"instructions", "Instructions", MPERF__UNIT__UNIT_COUNT},
		{"ipc", "IPC", MPERF__UNIT__UNIT_RATIO}};
	int r = row_stream_table(stream, "side");
	if (r == 0)
		r = to->columns(to->userdata, columns, sizeof(columns) / sizeof(*columns));
	for (int candidate = 0; candidate < 2 && r == 0; candidate++) {
		const struct gathered_source s = gather_source(g, candidate ? sides->n_side[0] : 0);
		const struct gathered_sums sums = gather_total(g, candidate);
		const struct answer_value v[] = {text(candidate ? "candidate" : "baseline"),
			text(s.arch), text(s.host), text(s.event), text(s.rung), count(s.hz),
			count((double)sides->n_side[candidate]), count(sums.samples),
			count(sums.ns), count(sums.cycles), count(sums.instructions),
			ratio(sums.instructions, sums.cycles)};
		r = to->row(to->userdata, v, sizeof(v) / sizeof(*v));
	}
	return r;
}

/* --- the rows --------------------------------------------------------------------------------- */

struct beside {
	size_t row;                   /* that names it; of a pair the candidate's */
	struct gathered_sums side[2]; /* samples 0: it is not there */
	double share[2];
};

static bool is_pair(const struct became *b, size_t row)
{
	return b[row].kind == BECAME_MOVED || b[row].kind == BECAME_RENAMED;
}

/* The baseline's row of a pair: the candidate's row shows both. */
static bool is_told_elsewhere(const struct gather *g, const struct became *b, size_t row)
{
	return is_pair(b, row) && gather_sums(g, row, true).samples <= 0;
}

static size_t fill(
	struct beside *rows, const struct gather *g, const struct became *became, size_t n_rows)
{
	const double total[2] = {gather_total(g, false).ns, gather_total(g, true).ns};
	size_t n = 0;
	for (size_t i = 0; i < n_rows; i++) {
		if (is_told_elsewhere(g, became, i))
			continue;
		struct beside *b = &rows[n++];
		b->row = i;
		b->side[0] = gather_sums(g, is_pair(became, i) ? became[i].other : i, false);
		b->side[1] = gather_sums(g, i, true);
		for (int k = 0; k < 2; k++)
			b->share[k] = total[k] > 0 ? b->side[k].ns / total[k] : 0;
	}
	return n;
}

static int by_share(const void *a, const void *b)
{
	const struct beside *x = a, *y = b;
	const double p = fmax(x->share[0], x->share[1]), q = fmax(y->share[0], y->share[1]);
	return p != q ? (p < q ? 1 : -1) : (x->row > y->row) - (x->row < y->row);
}

static const struct answer_column value_columns[] = {
	{"share_a", "Share A", MPERF__UNIT__UNIT_SHARE},
	{"share_b", "Share B", MPERF__UNIT__UNIT_SHARE}, {"ns_a", "Time A", MPERF__UNIT__UNIT_NS},
	{"ns_b", "Time B", MPERF__UNIT__UNIT_NS}, {"ratio", "B/A", MPERF__UNIT__UNIT_RATIO},
	{"instructions_a", "Instr. A", MPERF__UNIT__UNIT_COUNT},
	{"instructions_b", "Instr. B", MPERF__UNIT__UNIT_COUNT},
	{"instructions_ratio", "Instr. B/A", MPERF__UNIT__UNIT_RATIO},
	{"ipc_a", "IPC A", MPERF__UNIT__UNIT_RATIO}, {"ipc_b", "IPC B", MPERF__UNIT__UNIT_RATIO},
	{"became", "Became", 0}};
#define N_VALUE_COLUMNS (sizeof(value_columns) / sizeof(*value_columns))

#define BESIDE_COLUMNS_MAX (GATHER_PARTS + N_VALUE_COLUMNS + COMPARE_BESIDE_COLUMNS)

struct tell {
	const struct gather *gather;
	const struct became *became;
	const struct compare_runs *runs;
	size_t n_names, n_values;
};

static int tell_row(const struct answer *to, const struct tell *t, const struct beside *b)
{
	const struct gathered_sums *x = &b->side[0], *y = &b->side[1];
	const size_t row[2] = {
		is_pair(t->became, b->row) ? t->became[b->row].other : b->row, b->row};
	const char *names[GATHER_PARTS];
	char buffer[BECAME_TEXT_BYTES];
	struct answer_value v[BESIDE_COLUMNS_MAX];
	size_t n = 0;
	gather_names(t->gather, b->row, names);
	for (; n < t->n_names; n++)
		v[n] = text(names[n]);
	v[n++] = (struct answer_value){.kind = ANSWER_REAL, .real = b->share[0]};
	v[n++] = (struct answer_value){.kind = ANSWER_REAL, .real = b->share[1]};
	v[n++] = count(x->ns);
	v[n++] = count(y->ns);
	v[n++] = y->samples > 0 ? ratio(y->ns, x->ns) : ratio(-1, 0);
	v[n++] = count(x->instructions);
	v[n++] = count(y->instructions);
	v[n++] = ratio(y->instructions, x->instructions);
	v[n++] = ratio(x->instructions, x->cycles);
	v[n++] = ratio(y->instructions, y->cycles);
	v[n++] = text(compare_became(t->gather, t->became, b->row, buffer));
	int r = t->n_values ? compare_beside_values(t->gather, t->runs, row, v + n) : 0;
	return r == 0 ? to->row(to->userdata, v, n + t->n_values) : r;
}

static int tell_rows(
	struct row_stream *stream, const struct answer *to, struct tell *t, uint32_t limit)
{
	const struct answer_column *names;
	struct compare_value_names values;
	struct answer_column all[BESIDE_COLUMNS_MAX];
	_cleanup_(freep) struct beside *rows = calloc(t->runs->n_functions + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	size_t n = fill(rows, t->gather, t->became, t->runs->n_functions);
	qsort(rows, n, sizeof(*rows), by_share);
	t->n_names = gather_columns(t->gather, &names);
	memcpy(all, names, t->n_names * sizeof(*all));
	memcpy(all + t->n_names, value_columns, sizeof(value_columns));
	t->n_values =
		compare_beside_columns(t->gather, &values, all + t->n_names + N_VALUE_COLUMNS);
	int r = row_stream_table(stream, "beside");
	if (r == 0)
		r = to->columns(to->userdata, all, t->n_names + N_VALUE_COLUMNS + t->n_values);
	if (limit != 0 && limit < n)
		n = limit;
	for (size_t i = 0; i < n && r == 0; i++)
		r = tell_row(to, t, &rows[i]);
	return r;
}

int compare_beside(struct row_stream *stream, const struct answer *to,
	const struct compare_sides *sides, const struct became *became,
	const struct compare_runs *runs)
{
	struct tell t = {sides->gather, became, runs, 0, 0};
	int r = tell_sides(stream, to, sides);
	return r == 0 ? tell_rows(stream, to, &t, sides->asked->limit) : r;
}
