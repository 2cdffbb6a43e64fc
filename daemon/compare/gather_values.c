/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Most rows of most runs have none of these values, so each row has a list of those that are known.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/compare/gather_private.h"

/* --- columns ---------------------------------------------------------------------------------- */

/* The place of a column among those of all runs, to which it is added; SIZE_MAX: there is no room. */
static size_t place_of(struct gathered_values *v, const struct sums_column *c)
{
	size_t at = 0;
	while (at < v->n_columns && strcmp(v->column[at].name, c->name) != 0)
		at++;
	if (at < v->n_columns)
		return at;
	if (at == GATHER_VALUES_MAX) {
		v->column[at - 1].is_cut = true;
		return SIZE_MAX;
	}
	struct gathered_column *column = &v->column[v->n_columns++];
	snprintf(column->name, sizeof(column->name), "%s", c->name);
	snprintf(column->title, sizeof(column->title), "%s", c->title);
	column->is_sum = c->adds_up;
	return at;
}

void gathered_values_begin(
	struct gathered_values *v, const struct sums_column *column, size_t n_columns)
{
	v->n_places = n_columns;
	for (size_t i = 0; i < n_columns; i++)
		v->place[i] = place_of(v, &column[i]);
}

size_t gather_value_columns(const struct gather *g, const struct gathered_column **ret_columns)
{
	*ret_columns = g->values.column;
	return g->values.n_columns;
}

/* --- values ----------------------------------------------------------------------------------- */

int gathered_values_add(struct gathered_values *v, struct row *row, const struct sums_value *value)
{
	row->value = v->n_cells;
	for (size_t i = 0; i < v->n_places; i++) {
		const size_t column = v->place[i];
		if (column == SIZE_MAX || !isfinite(value[i].value))
			continue;
		if (v->n_cells == GATHER_ROWS_MAX)
			return GATHER_FULL;
		int r = array_grow(&v->cell, &v->size_cells, v->n_cells + 1, sizeof(*v->cell));
		if (r < 0)
			return r;
		v->cell[v->n_cells++] =
			(struct gathered_value){.column = (uint32_t)column, .of = value[i]};
		v->n_runs[column] += v->last_run[column] != row->run + 1;
		v->last_run[column] = row->run + 1;
	}
	row->n_values = v->n_cells - row->value;
	return 0;
}

static const struct sums_value *value_of(
	const struct gathered_values *v, const struct row *row, size_t column)
{
	for (uint32_t i = row->value; i < row->value + row->n_values; i++)
		if (v->cell[i].column == column)
			return &v->cell[i].of;
	return NULL;
}

/* The value of one run from its rows, from *i on; *i is then behind them. NAN: it has none. */
static struct sums_value fold(const struct gather *g, size_t column, uint32_t end, uint32_t *i)
{
	const uint32_t run = g->row[g->table.rows[*i]].run;
	struct sums_value all = {NAN, NAN};
	double sum = 0, mean = 0, error = 0, weight = 0;
	for (bool any = false; *i < end && g->row[g->table.rows[*i]].run == run; ++*i) {
		const struct row *row = &g->row[g->table.rows[*i]];
		const struct sums_value *of = value_of(&g->values, row, column);
		if (!of)
			continue;
		all = any ? all : *of;
		any = true;
		sum += of->value;
		mean += of->value * row->ns;
		error = hypot(error, of->error * row->ns);
		weight += row->ns;
	}
	if (weight > 0)
		all = (struct sums_value){mean / weight, error / weight};
	if (g->values.column[column].is_sum && !isnan(all.value))
		all.value = sum;
	return all;
}

void gather_values(
	const struct gather *g, size_t row, size_t column, double *ret_value, double *ret_error)
{
	const uint32_t end = g->table.first[row + 1];
	for (uint32_t r = 0; r < g->n_runs; r++)
		ret_value[r] = ret_error[r] = NAN;
	for (uint32_t i = g->table.first[row]; i < end;) {
		const uint32_t run = g->row[g->table.rows[i]].run;
		const struct sums_value of = fold(g, column, end, &i);
		ret_value[run] = of.value;
		ret_error[run] = of.error;
	}
}

size_t gather_value_runs(const struct gather *g, size_t column)
{
	return g->values.n_runs[column];
}

bool gather_is_by_loop(const struct gather *g)
{
	return g->by == GATHER_BY_LOOP;
}
