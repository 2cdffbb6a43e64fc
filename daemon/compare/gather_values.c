/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Most rows of most runs have none of these values, so what is there is kept as cells, and sorted by row when all
 * runs are read.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/compare/gather_private.h"

/* --- columns ---------------------------------------------------------------------------------- */

/* Columns of loops: do those of one row add up? The others are relative to time. */
static const struct {
	const char *name;
	bool is_sum;
} of_loops[] = {{"iterations", true}, {"ops", true}, {"int_ops", true}, {"bytes", true},
	{"gops", false}, {"gbytes", false}};

/* The column that has a metric's error; -1: it is none. */
static int error_of(const struct answer_column *c, size_t n, size_t of)
{
	char name[sizeof(((struct gathered_column *)NULL)->name)];
	const int length = snprintf(name, sizeof(name), "%s_error", c[of].name);
	for (size_t i = 0; i < n && length < (int)sizeof(name); i++)
		if (strcmp(c[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* Add it, unless it is there or there is no room. */
static size_t place_of(struct gather *g, const struct answer_column *c, bool is_sum)
{
	size_t at = 0;
	while (at < g->n_columns && strcmp(g->column[at].name, c->name) != 0)
		at++;
	if (at < g->n_columns)
		return at;
	if (at == GATHER_VALUES_MAX) {
		g->column[at - 1].is_cut = true;
		return SIZE_MAX;
	}
	struct gathered_column *column = &g->column[g->n_columns++];
	snprintf(column->name, sizeof(column->name), "%s", c->name);
	snprintf(column->title, sizeof(column->title), "%s", c->title ? c->title : c->name);
	column->is_sum = is_sum;
	return at;
}

static void find_value(struct gather *g, const struct answer_column *c, size_t n, size_t i)
{
	int error = -1;
	bool is_sum = false, is_value = false;
	if (g->by == GATHER_BY_LOOP) {
		for (size_t k = 0; k < sizeof(of_loops) / sizeof(*of_loops) && !is_value; k++) {
			is_value = strcmp(c[i].name, of_loops[k].name) == 0;
			is_sum = of_loops[k].is_sum;
		}
	} else {
		error = error_of(c, n, i);
		is_value = error >= 0;
	}
	const size_t at = is_value ? place_of(g, &c[i], is_sum) : SIZE_MAX;
	if (at == SIZE_MAX)
		return;
	g->value[at] = (int)i;
	g->error[at] = error;
}

void gather_find_values(struct gather *g, const struct answer_column *c, size_t n)
{
	for (size_t i = 0; i < GATHER_VALUES_MAX; i++)
		g->value[i] = g->error[i] = -1;
	for (size_t i = 0; i < n; i++)
		find_value(g, c, n, i);
}

size_t gather_value_columns(const struct gather *g, const struct gathered_column **ret_columns)
{
	*ret_columns = g->column;
	return g->n_columns;
}

/* --- cells ------------------------------------------------------------------------------------ */

static double number_of(const struct answer_value *v)
{
	return v->kind == ANSWER_REAL      ? v->real
	       : v->kind == ANSWER_INTEGER ? (double)v->integer
					   : NAN;
}

int gather_take_values(struct gather *g, const struct row *row, const struct answer_value *v)
{
	for (size_t i = 0; i < g->n_columns; i++) {
		const double value = g->value[i] >= 0 ? number_of(&v[g->value[i]]) : NAN;
		if (!isfinite(value))
			continue;
		if (g->n_cells == GATHER_ROWS_MAX)
			return GATHER_FULL;
		int r = array_grow(&g->cell, &g->size_cells, g->n_cells + 1, sizeof(*g->cell));
		if (r < 0)
			return r;
		g->cell[g->n_cells++] = (struct cell){.run = row->run,
			.key = row->key,
			.column = (uint32_t)i,
			.value = value,
			.error = g->error[i] >= 0 ? number_of(&v[g->error[i]]) : NAN,
			.weight = row->ns};
	}
	return 0;
}

static int by_place(const void *a, const void *b, void *userdata)
{
	const struct cell *x = a, *y = b;
	const uint32_t *row_of_key = userdata, i = row_of_key[x->key], j = row_of_key[y->key];
	if (i != j)
		return i > j ? 1 : -1;
	if (x->column != y->column)
		return x->column > y->column ? 1 : -1;
	return (x->run > y->run) - (x->run < y->run);
}

/* How many runs have values of each column. 0 or -ENOMEM. */
static int count_runs(struct gather *g)
{
	_cleanup_(freep) bool *has =
		calloc((size_t)g->n_runs * GATHER_VALUES_MAX + 1, sizeof(*has));
	if (!has)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n_cells; i++) {
		const struct cell *c = &g->cell[i];
		bool *of = &has[(size_t)c->run * GATHER_VALUES_MAX + c->column];
		g->value_runs[c->column] += !*of;
		*of = true;
	}
	return 0;
}

int gather_sort_values(struct gather *g, const uint32_t *row_of_key, size_t n)
{
	g->first_cell = calloc(n + 1, sizeof(*g->first_cell));
	if (!g->first_cell || count_runs(g) < 0)
		return -ENOMEM;
	if (g->n_cells > 0)
		qsort_r(g->cell, g->n_cells, sizeof(*g->cell), by_place, (void *)row_of_key);
	uint32_t cell = 0;
	for (size_t row = 0; row <= n; row++) {
		g->first_cell[row] = cell;
		while (row < n && cell < g->n_cells && row_of_key[g->cell[cell].key] == row)
			cell++;
	}
	return 0;
}

/* Fold the cells of one run and column, from *cell on; *cell is then behind them. */
static void fold(
	const struct gather *g, uint32_t end, uint32_t *cell, double *ret_value, double *ret_error)
{
	const struct cell *first = &g->cell[*cell];
	double sum = 0, mean = 0, error = 0, weight = 0;
	for (; *cell < end; ++*cell) {
		const struct cell *c = &g->cell[*cell];
		if (c->run != first->run || c->column != first->column)
			break;
		sum += c->value;
		mean += c->value * c->weight;
		error = hypot(error, c->error * c->weight);
		weight += c->weight;
	}
	const bool is_sum = g->column[first->column].is_sum;
	*ret_value = is_sum ? sum : weight > 0 ? mean / weight : first->value;
	*ret_error = weight > 0 ? error / weight : first->error;
}

void gather_values(
	const struct gather *g, size_t row, size_t column, double *ret_value, double *ret_error)
{
	const uint32_t end = g->first_cell[row + 1];
	for (uint32_t r = 0; r < g->n_runs; r++)
		ret_value[r] = ret_error[r] = NAN;
	for (uint32_t i = g->first_cell[row]; i < end;) {
		const struct cell *c = &g->cell[i];
		if (c->column == column)
			fold(g, end, &i, &ret_value[c->run], &ret_error[c->run]);
		else
			i++;
	}
}

size_t gather_value_runs(const struct gather *g, size_t column)
{
	return g->value_runs[column];
}

bool gather_is_by_loop(const struct gather *g)
{
	return g->by == GATHER_BY_LOOP;
}
