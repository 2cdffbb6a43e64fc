/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What loops counted, added up
 *
 * Sites are matched by what they are, metrics by name, tasks as those of samples. The hour tier
 * keeps ROLLUP_HOUR_LOOPS rows of an hour, those with the most instructions, where a call of what is
 * not counted is one; the others become the function "[other]" of their program. Sums stop at the largest number that the store has: a
 * program may tell any number, and is not to cost others their file.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/loops/metric.h"
#include "daemon/loops/site.h"
#include "daemon/loops/table.h"
#include "daemon/store/rollup/rollup_private.h"

#define METRICS_MAX 128 /* we write half as many */

/* A site as the target will have it; texts, and index + 1 of its parent. */
struct rollup_site {
	uint32_t kind, line, line_last, column, flags, parent, depth;
	uint32_t subprogram, source, nest, inlined_at;
	uint8_t build_id[64];
	uint8_t n_build_id;
};

struct rollup_loops {
	struct key_table sites; /* SITE_KEY */
	struct rollup_site *site;
	struct rows site_rows;
	uint32_t size_sites;
	struct key_table builds; /* build ids as parts of 32 bytes, twice */
	struct key_table ids;    /* of the source's sites */
	uint32_t *site_of_id;    /* index + 1 */
	uint32_t size_ids;

	uint32_t n_metrics, metric_text[METRICS_MAX], unit_text[METRICS_MAX];
	int64_t metric_row[METRICS_MAX]; /* in the target; 0 none */
	int64_t n_metric_rows;
	struct key_table metric_ids; /* of the source: index by id */
	uint32_t *metric_of_id;      /* index + 1 */
	uint32_t size_metric_ids;

	struct key_table keys; /* {task, site, region}; index + 1 each, task and region 0 none */
	uint64_t (*sum)[METRICS_MAX];
	uint32_t size_sums;
};

void rollup_loops_clear(struct rollup *r)
{
	struct rollup_loops *l = r->loops;
	if (!l)
		return;
	key_table_clear(&l->sites);
	key_table_clear(&l->builds);
	key_table_clear(&l->ids);
	key_table_clear(&l->metric_ids);
	key_table_clear(&l->keys);
	free(l->site);
	free(l->site_rows.row);
	free(l->site_of_id);
	free(l->metric_of_id);
	free(l->sum);
	free(l);
	r->loops = NULL;
}

/* --- sites ------------------------------------------------------------------------------------ */

/* A number that stands for a build id. */
static int build_number(struct rollup *r, const struct rollup_site *s, uint32_t *ret_number)
{
	struct key half[2] = {{{0}}};
	uint32_t first;
	memcpy(half, s->build_id, sizeof(s->build_id));
	int e = key_get(&r->loops->builds, &half[0], &first);
	/* the second half is found under the first */
	half[1].part[3] ^= (uint64_t)(first + 1) << 32 ^ s->n_build_id;
	return rollup_table_outcome(r, e ? e : key_get(&r->loops->builds, &half[1], ret_number));
}

/* The index + 1 of a site, new or known. */
static int enter_site(struct rollup *r, const struct rollup_site *s, uint32_t *ret_index)
{
	struct rollup_loops *l = r->loops;
	uint32_t build, i, n = l->sites.n_keys;
	int outcome = build_number(r, s, &build);
	if (outcome != 0)
		return outcome;
	uint32_t around = loop_site_is_of_parent((uint8_t)s->kind) ? s->parent : 0;
	const struct key key = {{(uint64_t)s->kind << 32 | s->line,
		(uint64_t)build << 32 | s->subprogram, (uint64_t)s->source << 32 | s->nest,
		(uint64_t)s->inlined_at << 32 | around}};
	outcome = rollup_table_outcome(r, key_get(&l->sites, &key, &i));
	if (outcome == 0)
		outcome = array_grow(&l->site, &l->size_sites, i + 1, sizeof(*l->site));
	if (outcome != 0)
		return outcome;
	if (i == n)
		l->site[i] = *s;
	l->site[i].flags |= s->flags;
	if (s->line_last > l->site[i].line_last)
		l->site[i].line_last = s->line_last;
	*ret_index = i + 1;
	return 0;
}

/* Columns of a row of loop_site, from kind on, but for the parent. */
static int read_site(struct rollup *r, sqlite3_stmt *st, int column, struct rollup_site *s)
{
	const void *build_id = sqlite3_column_blob(st, column + 1);
	int n = build_id ? sqlite3_column_bytes(st, column + 1) : 0;
	s->kind = (uint32_t)sqlite3_column_int64(st, column);
	s->n_build_id = (uint8_t)(n > (int)sizeof(s->build_id) ? (int)sizeof(s->build_id) : n);
	if (n > 0)
		memcpy(s->build_id, build_id, s->n_build_id);
	s->line = (uint32_t)sqlite3_column_int64(st, column + 4);
	s->line_last = (uint32_t)sqlite3_column_int64(st, column + 8);
	s->column = (uint32_t)sqlite3_column_int64(st, column + 9);
	s->flags = (uint32_t)sqlite3_column_int64(st, column + 10);
	int outcome = rollup_text(r, st, column + 2, &s->subprogram);
	if (outcome == 0)
		outcome = rollup_text(r, st, column + 3, &s->source);
	if (outcome == 0)
		outcome = rollup_text(r, st, column + 5, &s->nest);
	return outcome == 0 ? rollup_text(r, st, column + 6, &s->inlined_at) : outcome;
}

/* Where the source's id has its index + 1. */
static int id_slot(struct rollup *r, int64_t id, uint32_t **ret_slot)
{
	struct rollup_loops *l = r->loops;
	uint32_t i;
	int outcome = rollup_table_outcome(r, key_get(&l->ids, &(struct key){{(uint64_t)id}}, &i));
	if (outcome == 0)
		outcome = array_grow(&l->site_of_id, &l->size_ids, i + 1, sizeof(*l->site_of_id));
	if (outcome == 0)
		*ret_slot = &l->site_of_id[i];
	return outcome;
}

/* One of the source's, whose parents have been entered; *ret_parent is one that has not. */
static int take_site(struct rollup *r, int64_t id, int64_t *ret_parent)
{
	struct rollup_site s = {0};
	uint32_t *slot, index;
	*ret_parent = 0;
	int outcome = rollup_get(r, READ_LOOP_SITE, id);
	if (outcome != 0)
		return outcome == ROLLUP_NO_ROW ? rollup_fail_source(r, "a loop is missing")
						: outcome;
	int64_t parent = rollup_integer(r, READ_LOOP_SITE, 7);
	outcome = parent > 0 ? id_slot(r, parent, &slot) : 0;
	if (outcome == 0 && parent > 0 && *slot == 0) {
		*ret_parent = parent;
		return 0;
	}
	s.parent = outcome == 0 && parent > 0 ? *slot : 0;
	s.depth = s.parent ? r->loops->site[s.parent - 1].depth + 1 : 0;
	if (s.depth >= LOOP_DEPTH_MAX) /* a nest of its own, as for readers (query/loops/read.c) */
		s.parent = s.depth = 0;
	if (outcome == 0)
		outcome = read_site(r, r->read[READ_LOOP_SITE], 0, &s);
	if (outcome == 0)
		outcome = enter_site(r, &s, &index);
	if (outcome == 0)
		outcome = id_slot(r, id, &slot);
	if (outcome == 0)
		*slot = index;
	return outcome;
}

/* The index + 1 of a source's site; 0 for 0. */
static int find_site(struct rollup *r, int64_t id, uint32_t *ret_index)
{
	int64_t chain[LOOP_DEPTH_MAX];
	unsigned n = 0;
	uint32_t *slot;
	*ret_index = 0;
	if (id <= 0)
		return 0;
	int outcome = id_slot(r, id, &slot);
	if (outcome == 0 && *slot == 0)
		chain[n++] = id;
	while (n > 0 && outcome == 0) {
		int64_t parent;
		outcome = take_site(r, chain[n - 1], &parent);
		if (outcome != 0)
			break;
		if (parent == 0)
			n--;
		else if (n < LOOP_DEPTH_MAX)
			chain[n++] = parent;
		else
			outcome = rollup_fail_source(r, "its loops are nested without end");
	}
	if (outcome == 0)
		outcome = id_slot(r, id, &slot);
	if (outcome == 0)
		*ret_index = *slot;
	return outcome;
}

/* --- metrics ---------------------------------------------------------------------------------- */

/* The index + 1 of a metric by its name; 0: there are too many. */
static uint32_t enter_metric(struct rollup_loops *l, uint32_t name, uint32_t unit)
{
	uint32_t i = 0;
	while (i < l->n_metrics && l->metric_text[i] != name)
		i++;
	if (i == METRICS_MAX)
		return 0;
	if (i == l->n_metrics) {
		l->metric_text[i] = name;
		l->unit_text[i] = unit;
		l->n_metrics++;
	}
	return i + 1;
}

static int find_metric(struct rollup *r, int64_t id, uint32_t *ret_index)
{
	struct rollup_loops *l = r->loops;
	uint32_t i, n = l->metric_ids.n_keys, name, unit;
	int outcome =
		rollup_table_outcome(r, key_get(&l->metric_ids, &(struct key){{(uint64_t)id}}, &i));
	if (outcome == 0)
		outcome = array_grow(
			&l->metric_of_id, &l->size_metric_ids, i + 1, sizeof(*l->metric_of_id));
	if (outcome != 0)
		return outcome;
	if (i < n) {
		*ret_index = l->metric_of_id[i];
		return 0;
	}
	outcome = rollup_get(r, READ_LOOP_METRIC, id);
	if (outcome == ROLLUP_NO_ROW)
		return rollup_fail_source(r, "a count belongs to nothing");
	if (outcome == 0)
		outcome = rollup_text(r, r->read[READ_LOOP_METRIC], 0, &name);
	if (outcome == 0)
		outcome = rollup_text(r, r->read[READ_LOOP_METRIC], 1, &unit);
	if (outcome == 0)
		*ret_index = l->metric_of_id[i] = enter_metric(l, name, unit);
	return outcome;
}

/* --- sums ------------------------------------------------------------------------------------- */

static void add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum) || *sum > INT64_MAX)
		*sum = INT64_MAX;
}

static int get_sum(struct rollup *r, const struct key *key, uint64_t (**ret_sum)[METRICS_MAX])
{
	struct rollup_loops *l = r->loops;
	uint32_t i;
	int outcome = rollup_table_outcome(r, key_get(&l->keys, key, &i));
	if (outcome == 0)
		outcome = array_grow(&l->sum, &l->size_sums, i + 1, sizeof(*l->sum));
	if (outcome == 0)
		*ret_sum = &l->sum[i];
	return outcome;
}

int rollup_take_loop(struct rollup *r)
{
	sqlite3_stmt *st = r->read[READ_LOOP_COUNT];
	int64_t value = sqlite3_column_int64(st, 5), loop = sqlite3_column_int64(st, 2);
	int64_t region = sqlite3_column_int64(st, 3), id = sqlite3_column_int64(st, 4);
	uint32_t task, site, around, metric = 0;
	uint64_t(*sum)[METRICS_MAX];
	if (value < 0 || loop <= 0)
		return rollup_fail_source(r, "a count of loops is out of bounds");
	int outcome = rollup_task(r, sqlite3_column_int64(st, 1), &task);
	if (outcome == 0 && r->only && task == 0)
		return 0;
	if (outcome == 0)
		outcome = find_site(r, loop, &site);
	if (outcome == 0)
		outcome = find_site(r, region, &around);
	if (outcome == 0)
		outcome = find_metric(r, id, &metric);
	if (outcome != 0 || metric == 0)
		return outcome;
	/* which thread waited is what they tell, and threads are no more here */
	if (r->tier != TIER_WINDOW && loop_site_is_place((uint8_t)r->loops->site[site - 1].kind))
		return 0;
	const struct key key = {{task, site, around}};
	outcome = get_sum(r, &key, &sum);
	if (outcome == 0)
		add(&(*sum)[metric - 1], (uint64_t)value);
	return outcome;
}

/* --- folding ---------------------------------------------------------------------------------- */

struct weighed {
	uint64_t weight;
	uint32_t i;
};

static int heavier(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return (x->i > y->i) - (x->i < y->i);
}

/* The index + 1 of a metric by its name; 0: nothing has it. */
static uint32_t metric_named(const struct rollup *r, const char *name)
{
	for (uint32_t i = 0; i < r->loops->n_metrics; i++)
		if (strcmp(text_of(&r->texts, r->loops->metric_text[i]), name) == 0)
			return i + 1;
	return 0;
}

static bool is_callee(const struct rollup_loops *l, uint32_t site)
{
	return l->site[site - 1].kind == LOOP_SITE_CALLEE;
}

static int other_site(struct rollup *r, uint32_t *ret_index)
{
	struct rollup_site s = {.kind = LOOP_SITE_FUNCTION};
	int outcome = rollup_table_outcome(r, text_get(&r->texts, "[other]", &s.subprogram));
	if (outcome == 0)
		outcome = rollup_table_outcome(r, text_get(&r->texts, "", &s.nest));
	return outcome == 0 ? enter_site(r, &s, ret_index) : outcome;
}

/* Keep the heaviest rows, and make one of the rest for each task. */
static int fold(struct rollup *r)
{
	struct rollup_loops *l = r->loops;
	uint32_t n = l->keys.n_keys, other;
	uint32_t instructions = metric_named(r, "instructions"),
		 entries = metric_named(r, "entries");
	if (n <= ROLLUP_HOUR_LOOPS)
		return 0;
	_cleanup_(freep) struct weighed *order = calloc(n, sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t by =
			is_callee(l, (uint32_t)l->keys.key[i].part[1]) ? entries : instructions;
		order[i] = (struct weighed){by ? l->sum[i][by - 1] : 0, i};
	}
	qsort(order, n, sizeof(*order), heavier);
	struct key_table keys = l->keys;
	uint64_t(*sum)[METRICS_MAX] = l->sum;
	l->keys = (struct key_table){0};
	l->sum = NULL;
	l->size_sums = 0;
	int outcome = other_site(r, &other);
	for (uint32_t at = 0; at < n && outcome == 0; at++) {
		struct key key = keys.key[order[at].i];
		uint64_t(*into)[METRICS_MAX];
		if (at >= ROLLUP_HOUR_LOOPS)
			key = (struct key){{key.part[0], other, 0}};
		outcome = get_sum(r, &key, &into);
		/* calls of callees are no entries of the function that stands for the rest */
		bool folded = at >= ROLLUP_HOUR_LOOPS;
		uint32_t left_out = folded && is_callee(l, (uint32_t)keys.key[order[at].i].part[1])
					    ? entries
					    : 0;
		for (uint32_t m = 0; m < l->n_metrics && outcome == 0; m++)
			if (m + 1 != left_out)
				add(&(*into)[m], sum[order[at].i][m]);
	}
	key_table_clear(&keys);
	free(sum);
	return outcome;
}

/* --- writing ---------------------------------------------------------------------------------- */

static int put_site(struct rollup *r, uint32_t index)
{
	struct rollup_loops *l = r->loops;
	const struct rollup_site *s = &l->site[index - 1];
	uint32_t row, parent = s->parent ? rows_get(&l->site_rows, s->parent - 1) : 0;
	const char *source = text_of(&r->texts, s->source);
	const char *subprogram = text_of(&r->texts, s->subprogram);
	const char *nest = text_of(&r->texts, s->nest);
	int outcome = rows_add(&l->site_rows, index - 1, &row);
	return outcome != 0 ? outcome
			    : PUT(r, WRITE_LOOP_SITE, CELL_I(row), CELL_I(s->kind),
				      CELL_B(s->build_id, s->n_build_id),
				      CELL_T(subprogram ? subprogram : ""), CELL_T(source),
				      CELL_I_OR_NULL(s->line, s->line), CELL_T(nest ? nest : ""),
				      CELL_T(text_of(&r->texts, s->inlined_at)),
				      CELL_I_OR_NULL(parent, parent),
				      CELL_I_OR_NULL(s->line_last, s->line_last),
				      CELL_I_OR_NULL(s->column, s->column), CELL_I(s->flags));
}

/* The row of a site, written if it has none, with all that it is in; 0 for 0. */
static int site_row(struct rollup *r, uint32_t index, uint32_t *ret_row)
{
	struct rollup_loops *l = r->loops;
	uint32_t chain[LOOP_DEPTH_MAX];
	unsigned n = 0;
	int outcome = 0;
	for (uint32_t i = index; i != 0 && rows_get(&l->site_rows, i - 1) == 0;
		i = l->site[i - 1].parent) {
		if (n == LOOP_DEPTH_MAX)
			return rollup_fail_source(r, "its loops are nested without end");
		chain[n++] = i;
	}
	while (n > 0 && outcome == 0)
		outcome = put_site(r, chain[--n]);
	*ret_row = index ? rows_get(&l->site_rows, index - 1) : 0;
	return outcome;
}

static int put_metric(struct rollup *r, uint32_t m)
{
	struct rollup_loops *l = r->loops;
	if (l->metric_row[m])
		return 0;
	l->metric_row[m] = ++l->n_metric_rows;
	return PUT(r, WRITE_LOOP_METRIC, CELL_I(l->metric_row[m]),
		CELL_T(text_of(&r->texts, l->metric_text[m])),
		CELL_T(text_of(&r->texts, l->unit_text[m])));
}

/* Of an event that was counted in regions, that none happened is told, too: where any were counted,
 * all were that the hour has a name of. */
static bool is_looked_for(const struct rollup *r, uint32_t i, uint32_t metric)
{
	const struct rollup_loops *l = r->loops;
	const char *name = text_of(&r->texts, l->metric_text[metric]);
	if (!name || strncmp(name, LOOP_GRANTED_PREFIX, strlen(LOOP_GRANTED_PREFIX)) != 0)
		return false;
	for (uint32_t m = 0; m < l->n_metrics; m++) {
		const char *other = text_of(&r->texts, l->metric_text[m]);
		if (other && strcmp(other, "granted_ns") == 0)
			return l->sum[i][m] > 0;
	}
	return false;
}

static int put_sums(struct rollup *r, uint32_t i)
{
	struct rollup_loops *l = r->loops;
	const struct key key = l->keys.key[i];
	uint32_t task, site, region;
	int outcome = rollup_task_row(r, (uint32_t)key.part[0], &task);
	if (outcome == 0)
		outcome = site_row(r, (uint32_t)key.part[1], &site);
	if (outcome == 0)
		outcome = site_row(r, (uint32_t)key.part[2], &region);
	for (uint32_t m = 0; m < l->n_metrics && outcome == 0; m++) {
		if (l->sum[i][m] == 0 && !is_looked_for(r, i, m))
			continue;
		outcome = put_metric(r, m);
		if (outcome == 0)
			outcome = PUT(r, WRITE_LOOP_COUNT, CELL_I(r->n_windows), CELL_I(task),
				CELL_I(site), CELL_I(region), CELL_I(l->metric_row[m]),
				CELL_I(l->sum[i][m]));
	}
	return outcome;
}

bool rollup_has_loops(const struct rollup *r)
{
	return r->loops->keys.n_keys > 0;
}

int rollup_write_loops(struct rollup *r)
{
	struct rollup_loops *l = r->loops;
	int outcome = r->tier == TIER_HOUR ? fold(r) : 0;
	for (uint32_t i = 0; i < l->keys.n_keys && outcome == 0; i++)
		outcome = put_sums(r, i);
	key_table_clear(&l->keys);
	free(l->sum);
	l->sum = NULL;
	l->size_sums = 0;
	return outcome;
}

/* --- the target's ----------------------------------------------------------------------------- */

static int load_site(struct rollup *r, sqlite3_stmt *st, void *userdata)
{
	struct rollup_loops *l = r->loops;
	struct rollup_site s = {0};
	struct rows *by_row = userdata; /* index + 1 of each row of the target */
	int64_t row = sqlite3_column_int64(st, 0), parent = sqlite3_column_int64(st, 8);
	uint32_t index;
	if (row <= 0 || row > ROLLUP_IDS_MAX || parent < 0 || parent >= row)
		return rollup_fail_target(r, "a loop comes before the one around it");
	s.parent = parent ? rows_get(by_row, (uint32_t)parent) : 0;
	s.depth = s.parent ? l->site[s.parent - 1].depth + 1 : 0;
	int outcome = read_site(r, st, 1, &s);
	if (outcome == 0)
		outcome = enter_site(r, &s, &index);
	if (outcome == 0)
		outcome = rows_set(&l->site_rows, index - 1, (uint32_t)row);
	return outcome == 0 ? rows_set(by_row, (uint32_t)row, index) : outcome;
}

static int load_metric(struct rollup *r, sqlite3_stmt *st, void *userdata)
{
	struct rollup_loops *l = r->loops;
	uint32_t name, unit;
	(void)userdata;
	int outcome = rollup_text(r, st, 1, &name);
	if (outcome == 0)
		outcome = rollup_text(r, st, 2, &unit);
	if (outcome != 0)
		return outcome;
	uint32_t index = enter_metric(l, name, unit);
	if (index == 0)
		return rollup_fail_target(r, "it has too many metrics");
	l->metric_row[index - 1] = sqlite3_column_int64(st, 0);
	if (l->metric_row[index - 1] > l->n_metric_rows)
		l->n_metric_rows = l->metric_row[index - 1];
	return 0;
}

int rollup_load_loops(struct rollup *r)
{
	struct rows by_row = {0};
	r->loops = calloc(1, sizeof(*r->loops));
	if (!r->loops)
		return -ENOMEM;
	int outcome = rollup_each(r,
		"SELECT id, kind, build_id, subprogram, source, line, nest, inlined_at, parent, "
		"line_last, column, flags FROM loop_site ORDER BY id",
		load_site, &by_row);
	if (outcome == 0)
		outcome = rollup_each(
			r, "SELECT id, name, unit FROM loop_metric ORDER BY id", load_metric, NULL);
	free(by_row.row);
	return outcome;
}
