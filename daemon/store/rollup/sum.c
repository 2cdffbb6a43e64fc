/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Adding rows up: rows of the source that mean the same in the target have the same key, and their
 * counts, times and readings add up. What cannot be added, since it is negative or too large, was
 * never written by us.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/rollup/rollup_private.h"

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
		return rollup_fail_source(r, "a reading belongs to no event");
	return reading.event == ROLLUP_NO_EVENT ? 0 : add_reading(r, sum, &reading);
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

/* Leave out the readings of a sample. */
static int pass_readings(struct rollup *r, int64_t sample)
{
	while (r->reading && rollup_integer(r, READ_READING, 0) <= sample) {
		int outcome = rollup_next(r, READ_READING);
		r->reading = outcome == 0;
		if (outcome != 0 && outcome != ROLLUP_NO_ROW)
			return outcome;
	}
	return 0;
}

/* Samples for whose event there is no room. */
static int lose_samples(struct rollup *r, int64_t hart, int64_t count)
{
	uint32_t cause;
	int outcome =
		rollup_table_outcome(r, text_get(&r->texts, loss_kinds[LOSS_STORE].name, &cause));
	return outcome == 0 && count > 0 ? sums_add_loss(r, (uint64_t)hart, cause, count) : outcome;
}

int sums_take_sample(struct rollup *r)
{
	sqlite3_stmt *st = r->read[READ_SAMPLE];
	int64_t hart = sqlite3_column_int64(st, 2), event = sqlite3_column_int64(st, 5);
	int64_t count = sqlite3_column_int64(st, 7), weight_ns = sqlite3_column_int64(st, 8);
	int64_t truncated = sqlite3_column_int64(st, 9), rung = sqlite3_column_int64(st, 6);
	int64_t uncounted = sqlite3_column_int64(st, 10);
	uint32_t task, stack, row = 0;
	if (event > 0 && event <= ROLLUP_EVENTS_MAX)
		row = r->event[event];
	if (row == 0 || rung < 0 || rung > UINT8_MAX)
		return rollup_fail_source(r, "a sample belongs to no event");
	if (hart >= 0 && hart < HARTS_MAX)
		hart = r->hart_as[hart];
	int outcome = rollup_task(r, sqlite3_column_int64(st, 3), &task);
	if (outcome == 0 && row == ROLLUP_NO_EVENT)
		outcome = lose_samples(r, hart, count);
	if (outcome == 0 && (row == ROLLUP_NO_EVENT || (r->only && task == 0)))
		return pass_readings(r, sqlite3_column_int64(st, 0));
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
	if (outcome == 0)
		outcome = add(r, &sum->uncounted, uncounted);
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
	if (outcome == 0)
		outcome = add(r, &into->uncounted, from->uncounted);
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

void sums_clear(struct sums *s)
{
	sum_rows_clear(&s->rows);
	key_table_clear(&s->losses);
	free(s->reading);
	free(s->loss);
	*s = (struct sums){0};
}
