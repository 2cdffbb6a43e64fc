/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Adding up samples and their readings
 *
 * Every sample of the source passes here, so this is in C: two cursors go through the samples and readings of a
 * window of the target side by side, both by the sample's id, and their sums go to temp.tally and temp.counted,
 * where merge.sql continues. Only the sums are kept in memory, not the samples.
 */

#include "daemon/store/rollup/merge.h"

/* The readings of one event in a sum; a list for each sum. */
struct merge_counted {
	int64_t value, enabled_ns, running_ns;
	uint32_t next; /* index + 1 */
	uint8_t event;
	bool whole;
};

static int out_of_bounds(struct merge *m)
{
	return rollup_fail_source(m->rollup, "its counts are out of bounds");
}

static int add(struct merge *m, int64_t *sum, int64_t value)
{
	return value < 0 || __builtin_add_overflow(*sum, value, sum) ? out_of_bounds(m) : 0;
}

static int add_column(struct merge *m, int64_t *sum, sqlite3_stmt *st, int column)
{
	if (sqlite3_column_type(st, column) == SQLITE_NULL)
		return out_of_bounds(m);
	return add(m, sum, sqlite3_column_int64(st, column));
}

static int put(struct merge *m, sqlite3_stmt *st, const int64_t *value, int n)
{
	for (int i = 0; i < n; i++)
		sqlite3_bind_int64(st, i + 1, value[i]);
	return merge_step(m, st);
}

/* --- readings --------------------------------------------------------------------------------- */

static int get_counted(struct merge *m, uint32_t sum, uint32_t event, struct merge_counted **ret)
{
	uint32_t i = m->tally[sum].counted;
	while (i && m->counted[i - 1].event != event)
		i = m->counted[i - 1].next;
	if (!i) {
		i = ++m->n_counted;
		int r = array_grow(&m->counted, &m->size_counted, i, sizeof(*m->counted));
		if (r < 0)
			return r;
		m->counted[i - 1] = (struct merge_counted){
			.event = (uint8_t)event, .next = m->tally[sum].counted, .whole = true};
		m->tally[sum].counted = i;
	}
	*ret = &m->counted[i - 1];
	return 0;
}

/* A reading: sample, event, value, enabled_ns, running_ns. */
static int take_reading(struct merge *m, sqlite3_stmt *st, uint32_t sum)
{
	const uint32_t event = merge_entry_by_id(&m->of[MERGE_EVENT], sqlite3_column_int64(st, 1));
	const uint32_t row = event ? m->of[MERGE_EVENT].row[event] : 0;
	const bool whole = sqlite3_column_type(st, 3) == SQLITE_NULL;
	const int running = whole || sqlite3_column_type(st, 4) == SQLITE_NULL ? 3 : 4;
	struct merge_counted *c;
	if (!event)
		return rollup_fail_source(m->rollup, "a reading belongs to no event");
	if (!row)
		return 0; /* the target has no room for this event */
	int r = get_counted(m, sum, row, &c);
	if (r == 0)
		r = add_column(m, &c->value, st, 2);
	if (r == 0)
		r = add(m, &c->enabled_ns, sqlite3_column_int64(st, 3));
	if (r == 0)
		r = add(m, &c->running_ns, sqlite3_column_int64(st, running));
	if (r == 0)
		c->whole = c->whole && whole;
	return r;
}

static int next(struct merge *m, sqlite3_stmt *st, bool *ret_row)
{
	int rc = sqlite3_step(st);
	*ret_row = rc == SQLITE_ROW;
	return rollup_source_outcome(m->rollup, m->db, rc);
}

/* The readings of a sample; of sum 0 they are left out. */
static int take_readings(
	struct merge *m, sqlite3_stmt *st, bool *has_row, int64_t sample, uint32_t sum)
{
	int r = 0;
	while (r == 0 && *has_row && sqlite3_column_int64(st, 0) <= sample) {
		if (sqlite3_column_int64(st, 0) < sample)
			return rollup_fail_source(m->rollup, "a reading belongs to no sample");
		if (sum)
			r = take_reading(m, st, sum);
		if (r == 0)
			r = next(m, st, has_row);
	}
	return r;
}

/* --- samples ---------------------------------------------------------------------------------- */

enum { ID, IN_WINDOW, HART, TASK, STACK, EVENT, RUNG, COUNT, WEIGHT, TRUNCATED, UNCOUNTED, WAITS };

/* Does an extract leave this sample out? */
static bool leaves_out(const struct merge *m, sqlite3_stmt *st, uint32_t task)
{
	return !extract_takes_task(m->rollup->choice, sqlite3_column_int64(st, TASK)) ||
	       (m->rollup->only && !task);
}

/* The sum that a sample is added to; 0: there is no room for its event, or it is left out. */
static int find_sum(struct merge *m, sqlite3_stmt *st, uint32_t *ret_sum)
{
	const int64_t id = sqlite3_column_int64(st, STACK), rung = sqlite3_column_int64(st, RUNG),
		      hart = merge_hart_as(m, sqlite3_column_int64(st, HART));
	const uint32_t task = merge_entry_by_id(&m->of[MERGE_TASK], sqlite3_column_int64(st, TASK)),
		       stack = merge_entry_by_id(&m->of[MERGE_STACK], id),
		       event = merge_entry_by_id(
			       &m->of[MERGE_EVENT], sqlite3_column_int64(st, EVENT));
	const uint32_t row = event ? m->of[MERGE_EVENT].row[event] : 0;
	*ret_sum = 0;
	if (event == 0 || rung < 0 || rung > UINT8_MAX)
		return rollup_fail_source(m->rollup, "a sample belongs to no event");
	if (leaves_out(m, st, task))
		return 0;
	if (!row && sqlite3_column_int64(st, COUNT) > 0 && !sqlite3_column_int(st, WAITS)) {
		sqlite3_stmt *lost;
		int r = merge_statement(m, "unstored", &lost);
		return r == 0 ? put(m, lost, (int64_t[]){hart, sqlite3_column_int64(st, COUNT)}, 2)
			      : r;
	}
	if (!row)
		return 0;
	/* an hour has few rows, which threads that wait for all of it would take from those that run */
	if (m->rollup->tier == TIER_HOUR && sqlite3_column_int(st, WAITS))
		return 0;
	if (id > 0 && stack == 0)
		return rollup_fail_source(m->rollup, "a stack is missing");
	const struct key key = {{(uint64_t)task << 32 | stack, (uint64_t)row << 32 | (uint64_t)rung,
		(uint64_t)hart}};
	const uint32_t n_sums = m->of[MERGE_SUM].keys.n_keys;
	int r = merge_enter(&m->of[MERGE_SUM], &key, ret_sum);
	if (r == KEY_TABLE_FULL)
		return rollup_fail_source(m->rollup, MERGE_FULL);
	if (r == 0)
		r = array_grow(&m->tally, &m->size_tally, *ret_sum + 1, sizeof(*m->tally));
	if (r == 0 && *ret_sum > n_sums)
		m->tally[*ret_sum] = (struct merge_tally){0};
	return r;
}

static int take_sample(struct merge *m, sqlite3_stmt *st, uint32_t *ret_sum)
{
	if (!sqlite3_column_int(st, IN_WINDOW))
		return rollup_fail_source(m->rollup, "a row belongs to no window");
	struct merge_tally counts = {0}, *tally = &counts;
	int r = find_sum(m, st, ret_sum);
	if (r == 0 && *ret_sum)
		tally = &m->tally[*ret_sum];
	if (r == 0)
		r = add_column(m, &tally->count, st, COUNT);
	if (r == 0)
		r = add_column(m, &tally->weight_ns, st, WEIGHT);
	if (r == 0)
		r = add_column(m, &tally->truncated, st, TRUNCATED);
	return r == 0 ? add_column(m, &tally->uncounted, st, UNCOUNTED) : r;
}

static int take_samples(struct merge *m, sqlite3_stmt *samples, sqlite3_stmt *readings)
{
	bool has_sample, has_reading = false;
	int r = next(m, samples, &has_sample);
	if (r == 0)
		r = next(m, readings, &has_reading);
	while (r == 0 && has_sample) {
		uint32_t sum;
		r = take_sample(m, samples, &sum);
		if (r == 0)
			r = take_readings(
				m, readings, &has_reading, sqlite3_column_int64(samples, ID), sum);
		if (r == 0)
			r = next(m, samples, &has_sample);
	}
	return r == 0 && has_reading
		       ? rollup_fail_source(m->rollup, "a reading belongs to no sample")
		       : r;
}

/* --- sums ------------------------------------------------------------------------------------- */

static int put_counted(struct merge *m, uint32_t sum, sqlite3_stmt *st)
{
	int r = 0;
	for (uint32_t i = m->tally[sum].counted; i && r == 0; i = m->counted[i - 1].next) {
		const struct merge_counted *c = &m->counted[i - 1];
		r = put(m, st,
			(int64_t[]){(int64_t)sum << 8 | c->event, c->value, c->enabled_ns,
				c->running_ns, c->whole},
			5);
	}
	return r;
}

static int put_sums(struct merge *m)
{
	const struct key_table *keys = &m->of[MERGE_SUM].keys;
	sqlite3_stmt *tally, *counted;
	int r = merge_statement(m, "tally", &tally);
	if (r == 0)
		r = merge_statement(m, "counted", &counted);
	for (uint32_t i = 1; i <= keys->n_keys && r == 0; i++) {
		const struct merge_tally *t = &m->tally[i];
		const uint64_t *part = keys->key[i - 1].part;
		r = put(m, tally,
			(int64_t[]){i, (int64_t)(part[0] >> 32), (uint32_t)part[0],
				(int64_t)(part[1] >> 32), (uint32_t)part[1], (int64_t)part[2],
				t->count, t->weight_ns, t->truncated, t->uncounted},
			10);
		if (r == 0)
			r = put_counted(m, i, counted);
	}
	return r;
}

int merge_take_samples(struct merge *m)
{
	sqlite3_stmt *samples, *readings;
	int r = merge_statement(m, "samples", &samples);
	if (r == 0)
		r = merge_statement(m, "readings", &readings);
	if (r != 0)
		return r;
	m->n_counted = 0;
	r = take_samples(m, samples, readings);
	sqlite3_reset(samples);
	sqlite3_reset(readings);
	return r == 0 ? put_sums(m) : r;
}
