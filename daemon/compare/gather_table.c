/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The table of all runs' rows, once all runs are read.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/compare/gather_private.h"

/* Rows of the table by key, KEY_NONE for keys of few samples; n_keys. NULL without memory. */
static uint32_t *choose_keys(struct gather *g, size_t *ret_n)
{
	_cleanup_(freep) double *sum = calloc((size_t)g->keys.n_keys + 1, sizeof(*sum));
	uint32_t *row = calloc((size_t)g->keys.n_keys + 1, sizeof(*row));
	uint32_t n = 0;

	g->key = calloc((size_t)g->keys.n_keys + 1, sizeof(*g->key));
	if (!sum || !row || !g->key) {
		free(row);
		return NULL;
	}
	for (uint32_t i = 0; i < g->n_rows; i++)
		sum[g->row[i].key] += g->row[i].samples;
	for (uint32_t key = 0; key < g->keys.n_keys; key++) {
		row[key] = KEY_NONE;
		if (sum[key] >= COMPARE_SAMPLES_MIN) {
			g->key[n] = key;
			row[key] = n++;
		} else {
			g->n_left_out += sum[key] > 0;
		}
	}
	*ret_n = n;
	return row;
}

/* After all runs are read. 0 or -ENOMEM. */
static int make_run_counts(struct gather *g, size_t n_rows)
{
	bool any = false;
	for (uint32_t r = 0; r < g->n_runs; r++)
		any |= g->run[r].cycles >= 0 || g->run[r].instructions >= 0;
	if (!any)
		return 0;
	const size_t n = 2 * n_rows * g->n_runs;
	g->run_counts = calloc(n + 1, sizeof(*g->run_counts));
	for (size_t i = 0; i < n && g->run_counts; i++)
		g->run_counts[i] = -1;
	return g->run_counts ? 0 : -ENOMEM;
}

static int fill_runs(struct gather *g)
{
	g->total = calloc(g->n_runs, sizeof(*g->total));
	g->weight = calloc(g->n_runs, sizeof(*g->weight));
	g->candidate = calloc(g->n_runs, sizeof(*g->candidate));
	g->begin_ns = calloc(g->n_runs, sizeof(*g->begin_ns));
	if (!g->total || !g->weight || !g->candidate || !g->begin_ns)
		return -ENOMEM;
	for (uint32_t r = 0; r < g->n_runs; r++) {
		g->total[r] = g->run[r].cpu_ns;
		g->weight[r] = g->run[r].samples > 0 && g->run[r].cpu_ns > 0
				       ? g->run[r].cpu_ns / (double)g->run[r].samples
				       : 1;
		g->candidate[r] = g->run[r].candidate;
		g->begin_ns[r] = g->run[r].begin_ns;
		g->n_side[g->run[r].candidate]++;
	}
	return 0;
}

int gather_table(struct gather *g, const struct compare_runs **ret_runs)
{
	size_t n = 0;
	if (g->n_runs == 0)
		return -EINVAL;
	_cleanup_(freep) uint32_t *row_of = choose_keys(g, &n);
	if (!row_of)
		return -ENOMEM;
	if (n * g->n_runs > COMPARE_CELLS_MAX)
		return -E2BIG;
	g->table = calloc(n * g->n_runs + 1, sizeof(*g->table));
	g->time_ns = calloc(2 * n + 1, sizeof(*g->time_ns));
	g->counts = calloc(4 * n + 1, sizeof(*g->counts));
	if (!g->table || !g->time_ns || !g->counts || make_run_counts(g, n) != 0)
		return -ENOMEM;
	for (size_t i = 0; i < 4 * n; i++)
		g->counts[i] = -1;
	for (uint32_t i = 0; i < g->n_rows; i++) {
		const struct row *from = &g->row[i];
		const uint32_t row = row_of[from->key];
		if (row == KEY_NONE)
			continue;
		g->table[(size_t)row * g->n_runs + from->run] += from->samples;
		const bool candidate = g->run[from->run].candidate;
		g->time_ns[2 * row + candidate] += from->ns;
		gather_add_count(&g->counts[4 * row + 2 * candidate], from->cycles);
		gather_add_count(&g->counts[4 * row + 2 * candidate + 1], from->instructions);
		double *of_run = g->run_counts
					 ? &g->run_counts[2 * (row * (size_t)g->n_runs + from->run)]
					 : NULL;
		if (!of_run)
			continue;
		gather_add_count(&of_run[0], from->cycles);
		gather_add_count(&of_run[1], from->instructions);
	}
	int r = fill_runs(g);
	if (r == 0)
		r = gather_sort_values(g, row_of, n);
	if (r < 0)
		return r;
	g->runs = (struct compare_runs){
		n, g->n_runs, g->table, g->total, g->candidate, g->begin_ns, g->weight};
	*ret_runs = &g->runs;
	return 0;
}

size_t gather_n_left_out(const struct gather *g)
{
	return g->n_left_out;
}

void gather_names(const struct gather *g, size_t row, const char *ret_names[GATHER_PARTS])
{
	const struct key *key = &g->keys.key[g->key[row]];
	for (size_t i = 0; i < GATHER_PARTS; i++)
		ret_names[i] = text_of(&g->texts, (uint32_t)key->part[i]);
	if (g->by == GATHER_BY_LOOP)
		ret_names[GATHER_PARTS - 1] = text_of(&g->texts, g->line[g->key[row]]);
}

double gather_time_ns(const struct gather *g, size_t row, bool candidate)
{
	const size_t n = g->n_side[candidate];
	return n > 0 ? g->time_ns[2 * row + candidate] / (double)n : 0;
}

/* A mean; negative stays "not counted". */
static double mean(double sum, size_t n)
{
	return sum < 0 ? sum : n > 0 ? sum / (double)n : 0;
}

struct gathered_sums gather_sums(const struct gather *g, size_t row, bool candidate)
{
	const size_t n = g->n_side[candidate];
	struct gathered_sums sums = {
		.ns = gather_time_ns(g, row, candidate),
		.cycles = mean(g->counts[4 * row + 2 * candidate], n),
		.instructions = mean(g->counts[4 * row + 2 * candidate + 1], n),
	};
	for (size_t r = 0; r < g->n_runs; r++)
		if (g->run[r].candidate == candidate)
			sums.samples += g->table[row * g->n_runs + r];
	sums.samples = mean(sums.samples, n);
	return sums;
}

bool gather_has_counts(const struct gather *g)
{
	return g->run_counts != NULL;
}

struct gathered_counts gather_counts(const struct gather *g, size_t row, size_t run)
{
	const double *of_run = g->run_counts ? &g->run_counts[2 * (row * g->n_runs + run)] : NULL;
	return of_run ? (struct gathered_counts){of_run[0], of_run[1]}
		      : (struct gathered_counts){-1, -1};
}

struct gathered_sums gather_total(const struct gather *g, bool candidate)
{
	const size_t n = g->n_side[candidate];
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
	return (struct gathered_sums){mean(sums.samples, n), mean(sums.ns, n), mean(sums.cycles, n),
		mean(sums.instructions, n)};
}
