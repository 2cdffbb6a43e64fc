/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The table of all runs' rows, once all runs are read. The rows of a key are listed by run, so a figure in a row of
 * the table is a sum over that row's list.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/compare/gather_private.h"

/* Rows of the table by key, KEY_NONE for keys of few samples; n_keys. NULL without memory. */
static uint32_t *choose_keys(struct gather *g, size_t *ret_n)
{
	struct gathered_table *t = &g->table;
	_cleanup_(freep) double *sum = calloc((size_t)g->keys.n_keys + 1, sizeof(*sum));
	uint32_t *row = calloc((size_t)g->keys.n_keys + 1, sizeof(*row));
	uint32_t n = 0;

	t->key = calloc((size_t)g->keys.n_keys + 1, sizeof(*t->key));
	if (!sum || !row || !t->key) {
		free(row);
		return NULL;
	}
	for (uint32_t i = 0; i < g->n_rows; i++)
		sum[g->row[i].key] += g->row[i].samples;
	for (uint32_t key = 0; key < g->keys.n_keys; key++) {
		row[key] = KEY_NONE;
		if (sum[key] >= COMPARE_SAMPLES_MIN) {
			t->key[n] = key;
			row[key] = n++;
		} else {
			t->n_left_out += sum[key] > 0;
		}
	}
	*ret_n = n;
	return row;
}

/* List the rows of each of the n rows of the table. 0 or -ENOMEM. */
static int list_rows(struct gather *g, const uint32_t *row_of_key, size_t n)
{
	struct gathered_table *t = &g->table;
	t->first = calloc(n + 2, sizeof(*t->first));
	t->rows = calloc((size_t)g->n_rows + 1, sizeof(*t->rows));
	if (!t->first || !t->rows)
		return -ENOMEM;
	/* one position too far: filling the lists moves each begin to its end */
	uint32_t *begin = t->first + 1;
	for (uint32_t i = 0; i < g->n_rows; i++) {
		const uint32_t row = row_of_key[g->row[i].key];
		if (row != KEY_NONE && row + 1 < n)
			begin[row + 1]++;
	}
	for (size_t row = 1; row < n; row++)
		begin[row] += begin[row - 1];
	for (uint32_t i = 0; i < g->n_rows; i++) {
		const uint32_t row = row_of_key[g->row[i].key];
		if (row != KEY_NONE)
			t->rows[begin[row]++] = i;
	}
	return 0;
}

static int fill_runs(struct gather *g)
{
	struct gathered_table *t = &g->table;
	t->total = calloc(g->n_runs, sizeof(*t->total));
	t->weight = calloc(g->n_runs, sizeof(*t->weight));
	t->candidate = calloc(g->n_runs, sizeof(*t->candidate));
	t->begin_ns = calloc(g->n_runs, sizeof(*t->begin_ns));
	if (!t->total || !t->weight || !t->candidate || !t->begin_ns)
		return -ENOMEM;
	for (uint32_t r = 0; r < g->n_runs; r++) {
		const struct run *run = &g->run[r];
		t->total[r] = run->cpu_ns;
		t->weight[r] = run->samples > 0 && run->cpu_ns > 0
				       ? run->cpu_ns / (double)run->samples
				       : 1;
		t->candidate[r] = run->candidate;
		t->begin_ns[r] = run->begin_ns;
		t->n_side[run->candidate]++;
	}
	return 0;
}

int gather_table(struct gather *g, const struct compare_runs **ret_runs)
{
	struct gathered_table *t = &g->table;
	size_t n = 0;
	if (g->n_runs == 0)
		return -EINVAL;
	_cleanup_(freep) uint32_t *row_of = choose_keys(g, &n);
	if (!row_of)
		return -ENOMEM;
	if (n * g->n_runs > COMPARE_CELLS_MAX)
		return -E2BIG;
	t->samples = calloc(n * g->n_runs + 1, sizeof(*t->samples));
	int r = t->samples ? list_rows(g, row_of, n) : -ENOMEM;
	if (r == 0)
		r = fill_runs(g);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < g->n_rows; i++) {
		const struct row *from = &g->row[i];
		const uint32_t row = row_of[from->key];
		if (row != KEY_NONE)
			t->samples[(size_t)row * g->n_runs + from->run] += from->samples;
	}
	t->runs = (struct compare_runs){
		n, g->n_runs, t->samples, t->total, t->candidate, t->begin_ns, t->weight};
	*ret_runs = &t->runs;
	return 0;
}

void gathered_table_clear(struct gathered_table *t)
{
	free(t->samples);
	free(t->total);
	free(t->weight);
	free(t->candidate);
	free(t->begin_ns);
	free(t->key);
	free(t->first);
	free(t->rows);
}

size_t gather_n_left_out(const struct gather *g)
{
	return g->table.n_left_out;
}

void gather_names(const struct gather *g, size_t row, const char *ret_names[GATHER_PARTS])
{
	const uint32_t of = g->table.key[row];
	const struct key *key = &g->keys.key[of];
	for (size_t i = 0; i < GATHER_PARTS; i++)
		ret_names[i] = text_of(&g->texts, (uint32_t)key->part[i]);
	if (g->by == GATHER_BY_LOOP)
		ret_names[GATHER_PARTS - 1] = text_of(&g->texts, g->line[of]);
}

bool gather_is_of_build(const struct gather *g, size_t row)
{
	return g->by != GATHER_BY_LOOP && g->keys.key[g->table.key[row]].part[0] >> 32 != 0;
}

/* --- sums ------------------------------------------------------------------------------------- */

/* A mean; negative stays "not counted". */
static double mean(double sum, size_t n)
{
	return sum < 0 ? sum : n > 0 ? sum / (double)n : 0;
}

static struct gathered_sums means(const struct gather *g, struct gathered_sums s, bool candidate)
{
	const size_t n = g->table.n_side[candidate];
	return (struct gathered_sums){
		mean(s.samples, n), mean(s.ns, n), mean(s.cycles, n), mean(s.instructions, n)};
}

struct gathered_sums gather_sums(const struct gather *g, size_t row, bool candidate)
{
	const struct gathered_table *t = &g->table;
	struct gathered_sums sums = {.cycles = -1, .instructions = -1};
	for (uint32_t i = t->first[row]; i < t->first[row + 1]; i++) {
		const struct row *of = &g->row[t->rows[i]];
		if (t->candidate[of->run] != candidate)
			continue;
		sums.samples += of->samples;
		sums.ns += of->ns;
		gather_add_count(&sums.cycles, of->cycles);
		gather_add_count(&sums.instructions, of->instructions);
	}
	return means(g, sums, candidate);
}

struct gathered_sums gather_total(const struct gather *g, bool candidate)
{
	struct gathered_sums sums = {.cycles = -1, .instructions = -1};
	for (size_t r = 0; r < g->n_runs; r++) {
		const struct run *run = &g->run[r];
		if (run->candidate != candidate)
			continue;
		sums.samples += (double)run->samples;
		sums.ns += run->cpu_ns;
		gather_add_count(&sums.cycles, run->cycles);
		gather_add_count(&sums.instructions, run->instructions);
	}
	return means(g, sums, candidate);
}

bool gather_has_counts(const struct gather *g)
{
	for (uint32_t r = 0; r < g->n_runs; r++)
		if (g->run[r].cycles >= 0 || g->run[r].instructions >= 0)
			return true;
	return false;
}

void gather_counts(const struct gather *g, size_t row, struct gathered_counts *ret_counts)
{
	const struct gathered_table *t = &g->table;
	for (uint32_t r = 0; r < g->n_runs; r++)
		ret_counts[r] = (struct gathered_counts){-1, -1};
	for (uint32_t i = t->first[row]; i < t->first[row + 1]; i++) {
		const struct row *of = &g->row[t->rows[i]];
		gather_add_count(&ret_counts[of->run].cycles, of->cycles);
		gather_add_count(&ret_counts[of->run].instructions, of->instructions);
	}
}
