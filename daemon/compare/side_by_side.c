/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A row has a function's figures on both sides: its share of the side's time, time, instructions
 * and IPC, and ratios. A function that has moved or has another name is one row. Rows are sorted by
 * the larger of their two shares, so that functions that matter on either side are at the top.
 */
#include "daemon/compare/side_by_side.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/compare/values.h"

static const char *known(const char *text)
{
	return text && *text ? text : NULL;
}

static int64_t rounded(double count)
{
	return (int64_t)fmin(count + 0.5, 9.2e18);
}

/* NAN if one is not known or b is 0. */
static double ratio(double a, double b)
{
	return a >= 0 && b > 0 ? a / b : NAN;
}

const char *compare_rename_text(
	const struct gather *g, const struct function_rename *renames, size_t row, char *buffer)
{
	const struct function_rename *b = &renames[row];
	const bool is_gone = gather_sums(g, row, true).samples <= 0;
	const char *names[GATHER_PARTS] = {NULL};
	if (b->kind == RENAME_MOVED || b->kind == RENAME_RENAMED)
		gather_names(g, b->other, names);
	const char *function = names[0] ? names[0] : "", *module = names[1] ? names[1] : "";
	if (b->kind == RENAME_NONE)
		return NULL;
	if (b->kind == RENAME_MOVED)
		snprintf(buffer, RENAME_TEXT_BYTES, "%s %s", is_gone ? "moved to" : "moved from",
			module);
	else if (b->kind == RENAME_RENAMED)
		snprintf(buffer, RENAME_TEXT_BYTES, "%s %s (same callers)",
			is_gone ? "renamed to" : "renamed from", function);
	else
		snprintf(buffer, RENAME_TEXT_BYTES, "inlined in the %s",
			is_gone ? "candidate" : "baseline");
	return buffer;
}

/* --- the sides -------------------------------------------------------------------------------- */

#define SIDE_TABLE(COLUMN, KNOWN_IF)                                                               \
	COLUMN(side, "Side", text, candidate ? "candidate" : "baseline")                           \
	COLUMN(machine, "Machine", text, known(s.arch))                                            \
	COLUMN(host, "Host", text, known(s.host))                                                  \
	COLUMN(event, "Event", text, known(s.event))                                               \
	COLUMN(rung, "Rung", text, known(s.rung))                                                  \
	COLUMN(hz, "Rate", hz, s.hz)                                                               \
	COLUMN(runs, "Runs", count, sides->n_side[candidate])                                      \
	KNOWN_IF(samples, "Samples", count, of.samples >= 0, rounded(of.samples))                  \
	KNOWN_IF(ns, "Time", ns, of.ns >= 0, rounded(of.ns))                                       \
	KNOWN_IF(cycles, "Cycles", count, of.cycles >= 0, rounded(of.cycles))                      \
	KNOWN_IF(instructions, "Instructions", count, of.instructions >= 0,                        \
		rounded(of.instructions))                                                          \
	COLUMN(ipc, "IPC", ratio, ratio(of.instructions, of.cycles))

static int send_sides(const struct answer *to, const struct compare_sides *sides)
{
	int r = TABLE_BEGIN(to, "side", SIDE_TABLE);
	for (int candidate = 0; candidate < 2 && r == 0; candidate++) {
		const struct gathered_source s =
			gather_source(sides->gather, candidate ? sides->n_side[0] : 0);
		const struct gathered_sums of = gather_total(sides->gather, candidate);
		r = TABLE_ROW(to, SIDE_TABLE);
	}
	return r;
}

/* --- the rows --------------------------------------------------------------------------------- */

struct side_row {
	size_t row;                   /* row that gives the name; of a pair, the candidate's */
	struct gathered_sums side[2]; /* samples 0: it is not there */
	double share[2];
};

static bool is_pair(const struct function_rename *b, size_t row)
{
	return b[row].kind == RENAME_MOVED || b[row].kind == RENAME_RENAMED;
}

/* The baseline's row of a pair: the candidate's row shows both. */
static bool is_in_other_row(const struct gather *g, const struct function_rename *b, size_t row)
{
	return is_pair(b, row) && gather_sums(g, row, true).samples <= 0;
}

static size_t fill(struct side_row *rows, const struct gather *g,
	const struct function_rename *renames, size_t n_rows)
{
	const double total[2] = {gather_total(g, false).ns, gather_total(g, true).ns};
	size_t n = 0;
	for (size_t i = 0; i < n_rows; i++) {
		if (is_in_other_row(g, renames, i))
			continue;
		struct side_row *b = &rows[n++];
		b->row = i;
		b->side[0] = gather_sums(g, is_pair(renames, i) ? renames[i].other : i, false);
		b->side[1] = gather_sums(g, i, true);
		for (int k = 0; k < 2; k++)
			b->share[k] = total[k] > 0 ? b->side[k].ns / total[k] : 0;
	}
	return n;
}

static int by_share(const void *a, const void *b)
{
	const struct side_row *x = a, *y = b;
	const double p = fmax(x->share[0], x->share[1]), q = fmax(y->share[0], y->share[1]);
	return p != q ? (p < q ? 1 : -1) : (x->row > y->row) - (x->row < y->row);
}

#define SIDE_BY_SIDE_TABLE(COLUMN, KNOWN_IF)                                                       \
	COLUMN(share_a, "Share A", share, b->share[0])                                             \
	COLUMN(share_b, "Share B", share, b->share[1])                                             \
	KNOWN_IF(ns_a, "Time A", ns, x->ns >= 0, rounded(x->ns))                                   \
	KNOWN_IF(ns_b, "Time B", ns, y->ns >= 0, rounded(y->ns))                                   \
	KNOWN_IF(ratio, "B/A", ratio, y->samples > 0, ratio(y->ns, x->ns))                         \
	KNOWN_IF(                                                                                  \
		instructions_a, "Instr. A", count, x->instructions >= 0, rounded(x->instructions)) \
	KNOWN_IF(                                                                                  \
		instructions_b, "Instr. B", count, y->instructions >= 0, rounded(y->instructions)) \
	COLUMN(instructions_ratio, "Instr. B/A", ratio, ratio(y->instructions, x->instructions))   \
	COLUMN(ipc_a, "IPC A", ratio, ratio(x->instructions, x->cycles))                           \
	COLUMN(ipc_b, "IPC B", ratio, ratio(y->instructions, y->cycles))                           \
	COLUMN(became, "Became", text,                                                             \
		known(compare_rename_text(t->gather, t->renames, b->row, says)))

#define SIDE_BY_SIDE_COLUMNS_MAX                                                                   \
	(GATHER_PARTS + ROW_LENGTH(SIDE_BY_SIDE_TABLE) + COMPARE_SIDE_COLUMNS)

struct side_table {
	const struct gather *gather;
	const struct function_rename *renames;
	const struct compare_runs *runs;
};

/* Send the table's head, or the row of b. */
static int send_one(const struct side_table *t, const struct side_row *b,
	struct compare_value_names *value_names, struct row_builder *row, const struct answer *to)
{
	const struct gathered_sums *x = &b->side[0], *y = &b->side[1];
	const size_t rows[2] = {
		row->value && is_pair(t->renames, b->row) ? t->renames[b->row].other : b->row,
		b->row};
	const char *names[GATHER_PARTS] = {NULL};
	char says[RENAME_TEXT_BYTES];
	const struct answer_column *columns;
	const size_t n_names = gather_columns(t->gather, &columns);
	if (row->value)
		gather_names(t->gather, b->row, names);
	for (size_t i = 0; i < n_names; i++)
		row_add(row, &columns[i], cell_text(known(names[i])));
	ROW_PART(row, SIDE_BY_SIDE_TABLE);
	int r = compare_values_side_by_side(t->gather, t->runs, rows, value_names, row);
	return r == 0 ? row_send(to, "beside", row) : r;
}

static int send_head(const struct answer *to, const struct side_table *t)
{
	struct compare_value_names names;
	struct answer_column columns[SIDE_BY_SIDE_COLUMNS_MAX];
	struct row_builder head = {.column = columns};
	return send_one(t, &(struct side_row){.row = 0}, &names, &head, to);
}

static int send_row(const struct answer *to, const struct side_table *t, const struct side_row *b)
{
	struct answer_value v[SIDE_BY_SIDE_COLUMNS_MAX];
	struct row_builder row = {.value = v};
	return send_one(t, b, NULL, &row, to);
}

static int send_rows(const struct answer *to, const struct side_table *t, uint32_t limit)
{
	_cleanup_(freep) struct side_row *rows = calloc(t->runs->n_functions + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	size_t n = fill(rows, t->gather, t->renames, t->runs->n_functions);
	qsort(rows, n, sizeof(*rows), by_share);
	int r = send_head(to, t);
	if (limit != 0 && limit < n)
		n = limit;
	for (size_t i = 0; i < n && r == 0; i++)
		r = send_row(to, t, &rows[i]);
	return r;
}

int compare_side_by_side(const struct answer *to, const struct compare_sides *sides,
	const struct function_rename *renames, const struct compare_runs *runs)
{
	const struct side_table t = {sides->gather, renames, runs};
	int r = send_sides(to, sides);
	return r == 0 ? send_rows(to, &t, sides->asked->limit) : r;
}
