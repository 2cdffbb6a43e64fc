/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Adding rows up: rows of the source that mean the same in the target have the same key, and their
 * counts, times and readings add up. What cannot be added, since it is negative or too large, was
 * never written by us.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/rollup_part.h"

/* Add what is not negative, as all that is summed here. */
static int add(struct rollup *r, int64_t *sum, int64_t value)
{
	if (value < 0 || __builtin_add_overflow(*sum, value, sum))
		return rollup_fail_source(r, "its counts are out of bounds");
	return 0;
}

static int get_sum(
	struct rollup *r, struct sum_rows *s, const struct key *key, struct sum **ret_sum)
{
	uint32_t i;
	int outcome = rollup_table_outcome(r, key_get(&s->keys, key, &i));
	if (outcome == 0)
		outcome = array_grow(&s->sum, &s->size, i + 1, sizeof(*s->sum));
	if (outcome == 0)
		*ret_sum = &s->sum[i];
	return outcome;
}

static int add_reading(struct rollup *r, struct sum *sum, const struct sum_reading *add_this)
{
	struct sums *s = &r->sums;
	uint32_t i = sum->reading;
	while (i != 0 && s->reading[i - 1].event != add_this->event)
		i = s->reading[i - 1].next;
	if (i == 0) {
		int e = array_grow(
			&s->reading, &s->size_readings, s->n_readings + 1, sizeof(*s->reading));
		if (e < 0)
			return e;
		i = ++s->n_readings;
		s->reading[i - 1] = (struct sum_reading){
			.event = add_this->event, .next = sum->reading, .whole = true};
		sum->reading = i;
	}
	struct sum_reading *reading = &s->reading[i - 1];
	reading->whole &= add_this->whole;
	int outcome = add(r, &reading->value, add_this->value);
	if (outcome == 0)
		outcome = add(r, &reading->enabled_ns, add_this->enabled_ns);
	if (outcome == 0)
		outcome = add(r, &reading->running_ns, add_this->running_ns);
	return outcome;
}

static int take_reading(struct rollup *r, struct sum *sum)
{
	sqlite3_stmt *st = r->read[READ_READING];
	int64_t event = sqlite3_column_int64(st, 1);
	struct sum_reading reading = {
		.event = event > 0 && event <= ROLLUP_EVENTS_MAX ? r->event[event] : 0,
		.value = sqlite3_column_int64(st, 2),
		.enabled_ns = sqlite3_column_int64(st, 3),
		.whole = sqlite3_column_type(st, 3) == SQLITE_NULL,
	};
	reading.running_ns = reading.enabled_ns;
	if (!reading.whole && sqlite3_column_type(st, 4) != SQLITE_NULL)
		reading.running_ns = sqlite3_column_int64(st, 4);
	if (reading.event == 0)
		return rollup_fail_source(r, "a reading is of no event");
	return add_reading(r, sum, &reading);
}

static int take_readings(struct rollup *r, int64_t sample, struct sum *sum)
{
	while (r->reading) {
		int64_t owner = rollup_integer(r, READ_READING, 0);
		if (owner > sample)
			return 0;
		if (owner < sample)
			return rollup_fail_source(r, "a reading belongs to no sample");
		int outcome = take_reading(r, sum);
		if (outcome == 0) {
			outcome = rollup_next(r, READ_READING);
			r->reading = outcome == 0;
		}
		if (outcome != 0 && outcome != ROLLUP_NO_ROW)
			return outcome;
	}
	return 0;
}

int sums_take_sample(struct rollup *r)
{
	sqlite3_stmt *st = r->read[READ_SAMPLE];
	int64_t hart = sqlite3_column_int64(st, 2), event = sqlite3_column_int64(st, 5);
	int64_t count = sqlite3_column_int64(st, 7), weight_ns = sqlite3_column_int64(st, 8);
	int64_t truncated = sqlite3_column_int64(st, 9), rung = sqlite3_column_int64(st, 6);
	uint32_t task, stack, row = 0;
	if (event > 0 && event <= ROLLUP_EVENTS_MAX)
		row = r->event[event];
	if (row == 0 || rung < 0 || rung > UINT8_MAX)
		return rollup_fail_source(r, "a sample is of no event");
	if (hart >= 0 && hart < HARTS_MAX)
		hart = r->hart_as[hart];
	int outcome = rollup_task(r, sqlite3_column_int64(st, 3), &task);
	if (outcome == 0)
		outcome = rollup_stack(r, sqlite3_column_int64(st, 4), &stack);
	if (outcome != 0)
		return outcome;
	struct key key = SUM_KEY(task, stack, row, rung, hart);
	struct sum *sum;
	outcome = get_sum(r, &r->sums.rows, &key, &sum);
	if (outcome == 0)
		outcome = add(r, &sum->count, count);
	if (outcome == 0)
		outcome = add(r, &sum->weight_ns, weight_ns);
	if (outcome == 0)
		outcome = add(r, &sum->truncated, truncated);
	return outcome == 0 ? take_readings(r, sqlite3_column_int64(st, 0), sum) : outcome;
}

int sums_take_loss(struct rollup *r)
{
	uint32_t cause;
	int outcome = rollup_text(r, r->read[READ_LOSS], 2, &cause);
	return outcome == 0 ? sums_add_loss(r, (uint64_t)rollup_integer(r, READ_LOSS, 1), cause,
				      rollup_integer(r, READ_LOSS, 3))
			    : outcome;
}

int sums_add_loss(struct rollup *r, uint64_t hart, uint32_t cause, int64_t count)
{
	struct sums *s = &r->sums;
	struct key key = {{hart, cause}};
	uint32_t i;
	int outcome = rollup_table_outcome(r, key_get(&s->losses, &key, &i));
	if (outcome == 0)
		outcome = array_grow(&s->loss, &s->size_loss, i + 1, sizeof(*s->loss));
	return outcome == 0 ? add(r, &s->loss[i], count) : outcome;
}

/* --- rows ---------------------------------------------------------------------------------------
 */

int sums_merge(struct rollup *r, struct sum_rows *rows, const struct key *key,
	const struct sum *from, bool cut)
{
	struct sum *into;
	int outcome = get_sum(r, rows, key, &into);
	if (outcome == 0)
		outcome = add(r, &into->count, from->count);
	if (outcome == 0)
		outcome = add(r, &into->weight_ns, from->weight_ns);
	if (outcome == 0)
		outcome = add(r, &into->truncated, cut ? from->count : from->truncated);
	for (uint32_t i = from->reading; i != 0 && outcome == 0; i = r->sums.reading[i - 1].next) {
		struct sum_reading reading = r->sums.reading[i - 1];
		outcome = add_reading(r, into, &reading);
	}
	return outcome;
}

void sum_rows_clear(struct sum_rows *rows)
{
	key_table_clear(&rows->keys);
	free(rows->sum);
	*rows = (struct sum_rows){0};
}

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

/* --- writing ------------------------------------------------------------------------------------
 */

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
			CELL_I(cut ? sum->count : sum->truncated));
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

void sums_clear(struct sums *s)
{
	sum_rows_clear(&s->rows);
	key_table_clear(&s->losses);
	free(s->reading);
	free(s->loss);
	*s = (struct sums){0};
}
