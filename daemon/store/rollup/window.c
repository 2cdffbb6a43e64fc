/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* One window of the target: its sums made fewer where they must be, and written */

#include "daemon/store/rollup/rollup_private.h"

/* How many rows this hour may still have: what other sources gave it stands at the end. */
static int rows_left(struct rollup *r, int64_t realtime_ns, uint32_t *ret_n)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(r->target,
		"SELECT count(*) FROM (SELECT window FROM sample ORDER BY id DESC LIMIT ?1) s "
		"JOIN window w ON w.id = s.window WHERE w.realtime_ns = ?2",
		-1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(st, 1, ROLLUP_HOUR_ROWS);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(st, 2, realtime_ns);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	int outcome = rollup_target_outcome(r, rc);
	int64_t n = outcome == 0 ? ROLLUP_HOUR_ROWS - sqlite3_column_int64(st, 0) : 0;
	sqlite3_finalize(st);
	*ret_n = n > ROLLUP_HOUR_ROWS / 8 ? (uint32_t)n : ROLLUP_HOUR_ROWS / 8;
	return outcome;
}

static int write_readings(struct rollup *r, const struct sum *sum)
{
	int outcome = 0;
	for (uint32_t i = sum->reading; i != 0 && outcome == 0;) {
		const struct sum_reading *reading = &r->sums.reading[i - 1];
		bool partly = !reading->whole && reading->running_ns != reading->enabled_ns;
		outcome = PUT(r, WRITE_READING, CELL_I(r->n_samples), CELL_I(reading->event),
			CELL_I(reading->value),
			CELL_I_OR_NULL(!reading->whole, reading->enabled_ns),
			CELL_I_OR_NULL(partly, reading->running_ns));
		i = reading->next;
	}
	return outcome;
}

static int write_sample(struct rollup *r, const struct key *key, const struct sum *sum)
{
	uint32_t task, stack;
	bool cut = false;
	r->has_payer = r->shares != NULL;
	r->payer = rollup_uid(r, sum_task(key));
	int outcome = rollup_task_row(r, sum_task(key), &task);
	if (outcome == 0)
		outcome = rollup_stack_row(r, sum_stack(key), &cut, &stack);
	if (outcome == 0)
		outcome = PUT(r, WRITE_SAMPLE, CELL_I(++r->n_samples), CELL_I(r->n_windows),
			CELL_I(key->part[2]), CELL_I(task), CELL_I(stack),
			CELL_I(key->part[1] >> 32), CELL_I((uint32_t)key->part[1]),
			CELL_I(sum->count), CELL_I(sum->weight_ns),
			CELL_I(cut ? sum->count : sum->truncated), CELL_I(sum->uncounted));
	return outcome == 0 ? write_readings(r, sum) : outcome;
}

static int write_losses(struct rollup *r)
{
	const struct sums *s = &r->sums;
	int outcome = 0;
	for (uint32_t i = 0; i < s->losses.n_keys && outcome == 0; i++)
		outcome = PUT(r, WRITE_LOSS, CELL_I(r->n_windows), CELL_I(s->losses.key[i].part[0]),
			CELL_T(text_of(&r->texts, (uint32_t)s->losses.key[i].part[1])),
			CELL_I(s->loss[i]));
	return outcome;
}

int sums_write(struct rollup *r, const struct sums_window *w)
{
	uint32_t n_max;
	int outcome = 0;
	if (r->only && r->sums.rows.keys.n_keys == 0 && !rollup_has_loops(r)) {
		sums_clear(&r->sums); /* losses of a time in which the job did not run */
		return 0;
	}
	if (r->tier == TIER_HOUR)
		outcome = rows_left(r, w->realtime_ns, &n_max);
	if (outcome == 0 && r->tier == TIER_HOUR)
		outcome = sums_fold(r, n_max);
	if (outcome == 0)
		outcome = sums_fold_shares(r);
	if (outcome == 0)
		outcome = PUT(r, WRITE_WINDOW, CELL_I(++r->n_windows), CELL_I(w->start_ns),
			CELL_I(w->end_ns), CELL_I(w->realtime_ns));
	const struct sum_rows *rows = &r->sums.rows;
	for (uint32_t i = 0; i < rows->keys.n_keys && outcome == 0; i++)
		outcome = write_sample(r, &rows->keys.key[i], &rows->sum[i]);
	r->has_payer = false;
	if (outcome == 0)
		outcome = write_losses(r);
	if (outcome == 0)
		outcome = rollup_write_loops(r);
	sums_clear(&r->sums);
	return outcome;
}
