/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What two files call the same: events, harts, control groups, names
 *
 *      event      PMU, type, config, config1, config2, modifiers
 *      the rest   its text
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/rollup/rollup_private.h"

/* --- tables ----------------------------------------------------------------------------------- */

int rows_set(struct rows *rows, uint32_t index, uint32_t row)
{
	int e = array_grow(&rows->row, &rows->size, index + 1, sizeof(*rows->row));
	if (e < 0)
		return e;
	rows->row[index] = row;
	rows->n_rows = row > rows->n_rows ? row : rows->n_rows;
	return 0;
}

int rows_add(struct rows *rows, uint32_t index, uint32_t *ret_row)
{
	int e = rows_set(rows, index, rows->n_rows + 1);
	if (e == 0)
		*ret_row = rows->n_rows;
	return e;
}

int entries_get(struct rollup *r, struct entries *e, const struct key *key, uint32_t origin,
	uint32_t *ret_index)
{
	uint32_t n = e->keys.n_keys;
	int outcome = rollup_table_outcome(r, key_get(&e->keys, key, ret_index));
	if (outcome == 0)
		outcome =
			array_grow(&e->origin, &e->size_origin, e->keys.n_keys, sizeof(*e->origin));
	if (outcome == 0 && *ret_index == n)
		e->origin[n] = origin;
	return outcome;
}

int entries_load(struct rollup *r, struct entries *e, const struct key *key, int64_t row)
{
	uint32_t index;
	if (row <= 0 || row > ROLLUP_IDS_MAX)
		return rollup_fail_target(r, "an id is out of bounds");
	int outcome = entries_get(r, e, key, 0, &index);
	if (outcome == 0 && rows_get(&e->rows, index) == 0)
		outcome = rows_set(&e->rows, index, (uint32_t)row);
	/* what is there twice keeps its first row, and no new one is made of the second's id */
	if (outcome == 0 && row > e->rows.n_rows)
		e->rows.n_rows = (uint32_t)row;
	return outcome;
}

void entries_clear(struct entries *e)
{
	key_table_clear(&e->keys);
	free(e->rows.row);
	free(e->origin);
}

int translation_get(struct rollup *r, struct translation *t, int64_t id, uint32_t **ret_index)
{
	if (id <= 0 || id > ROLLUP_IDS_MAX)
		return rollup_fail_source(r, "an id is out of bounds");
	int e = array_grow(&t->index, &t->n_ids, (uint32_t)id + 1, sizeof(*t->index));
	if (e == 0)
		*ret_index = &t->index[id];
	return e;
}

int rollup_each(struct rollup *r, const char *sql,
	int (*take)(struct rollup *r, sqlite3_stmt *st, void *userdata), void *userdata)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(r->target, sql, -1, &st, NULL);
	int outcome = rollup_target_outcome(r, rc);
	while (outcome == 0) {
		rc = sqlite3_step(st);
		if (rc != SQLITE_ROW)
			break;
		outcome = take(r, st, userdata);
	}
	if (outcome == 0)
		outcome = rollup_target_outcome(r, rc);
	sqlite3_finalize(st);
	return outcome;
}

/* --- names: functions, sources, paths of control groups --------------------------------------- */

static int load_name(struct rollup *r, sqlite3_stmt *st, void *userdata)
{
	struct rows *rows = userdata;
	uint32_t text;
	int64_t id = sqlite3_column_int64(st, 0);
	int outcome = rollup_text(r, st, 1, &text);
	if (outcome != 0)
		return outcome;
	if (id <= 0 || id > ROLLUP_IDS_MAX || text == 0)
		return rollup_fail_target(r, "an id is out of bounds");
	if (rows_get(rows, text) == 0)
		return rows_set(rows, text, (uint32_t)id);
	rows->n_rows = (uint32_t)id > rows->n_rows ? (uint32_t)id : rows->n_rows;
	return 0;
}

int rollup_name_of(
	struct rollup *r, enum rollup_read s, struct translation *t, int64_t id, uint32_t *ret_text)
{
	*ret_text = 0;
	if (id <= 0 || id > ROLLUP_IDS_MAX)
		return 0;
	uint32_t *index, text = 0;
	int outcome = translation_get(r, t, id, &index);
	if (outcome != 0)
		return outcome;
	if (*index == 0) {
		outcome = rollup_get(r, s, id);
		if (outcome == 0)
			outcome = rollup_text(r, r->read[s], 0, &text);
		if (outcome != 0 && outcome != ROLLUP_NO_ROW)
			return outcome;
		*index = text + 1;
	}
	*ret_text = *index - 1;
	return 0;
}

int rollup_name_row_of(
	struct rollup *r, enum rollup_write s, struct rows *rows, uint32_t text, uint32_t *ret_row)
{
	*ret_row = text ? rows_get(rows, text) : 0;
	if (text == 0 || *ret_row != 0 || rows->n_rows >= ROLLUP_IDS_MAX)
		return 0;
	int outcome = rows_add(rows, text, ret_row);
	return outcome == 0 ? PUT(r, s, CELL_I(*ret_row), CELL_T(text_of(&r->texts, text)))
			    : outcome;
}

int rollup_name(struct rollup *r, bool function, int64_t id, uint32_t *ret_text)
{
	return function ? rollup_name_of(r, READ_FUNCTION, &r->function, id, ret_text)
			: rollup_name_of(r, READ_SOURCE, &r->source_name, id, ret_text);
}

int rollup_name_row(struct rollup *r, bool function, uint32_t text, uint32_t *ret_row)
{
	return function ? rollup_name_row_of(r, WRITE_FUNCTION, &r->functions, text, ret_row)
			: rollup_name_row_of(r, WRITE_SOURCE, &r->sources, text, ret_row);
}

/* --- events ----------------------------------------------------------------------------------- */

/* Columns 1 to 6: pmu, type, config, config1, config2, modifiers. */
static int event_text(struct rollup *r, sqlite3_stmt *st, uint32_t *ret_text)
{
	const char *pmu = (const char *)sqlite3_column_text(st, 1);
	char text[512];
	snprintf(text, sizeof(text), "%lld/%lld/%lld/%lld/%lld/%s", sqlite3_column_int64(st, 2),
		sqlite3_column_int64(st, 3), sqlite3_column_int64(st, 4),
		sqlite3_column_int64(st, 5), sqlite3_column_int64(st, 6), pmu ? pmu : "");
	return rollup_table_outcome(r, text_get(&r->texts, text, ret_text));
}

static int load_event(struct rollup *r, sqlite3_stmt *st, void *userdata)
{
	(void)userdata;
	int64_t id = sqlite3_column_int64(st, 0);
	if (id <= 0 || id > ROLLUP_EVENTS_MAX)
		return rollup_fail_target(r, "an id is out of bounds");
	r->n_events = (uint32_t)id > r->n_events ? (uint32_t)id : r->n_events;
	return event_text(r, st, &r->event_text[id]);
}

static int take_event(struct rollup *r)
{
	sqlite3_stmt *st = r->read[READ_EVENT];
	int64_t id = sqlite3_column_int64(st, 0);
	uint32_t text, row = 1;
	int outcome = event_text(r, st, &text);
	if (outcome != 0)
		return outcome;
	while (row <= r->n_events && r->event_text[row] != text)
		row++;
	if (id <= 0 || id > ROLLUP_EVENTS_MAX)
		return rollup_fail_source(r, "it has more events than a file can hold");
	r->event[id] = row; /* up to ROLLUP_NO_EVENT */
	if (row <= r->n_events || row > ROLLUP_EVENTS_MAX)
		return 0;
	r->n_events = row;
	r->event_text[row] = text;
	return PUT(r, WRITE_EVENT, CELL_I(row), CELL_T(sqlite3_column_text(st, 1)),
		CELL_I(sqlite3_column_int64(st, 2)), CELL_I(sqlite3_column_int64(st, 3)),
		CELL_I(sqlite3_column_int64(st, 4)), CELL_I(sqlite3_column_int64(st, 5)),
		CELL_I(sqlite3_column_int64(st, 6)), CELL_T(sqlite3_column_text(st, 7)),
		CELL_T(sqlite3_column_text(st, 8)));
}

int rollup_take_events(struct rollup *r)
{
	int outcome = rollup_get(r, READ_EVENT, INT64_MIN);
	while (outcome == 0) {
		outcome = take_event(r);
		if (outcome == 0)
			outcome = rollup_next(r, READ_EVENT);
	}
	return outcome == ROLLUP_NO_ROW ? 0 : outcome;
}

/* --- harts ------------------------------------------------------------------------------------ */

static int load_hart(struct rollup *r, sqlite3_stmt *st, void *userdata)
{
	(void)userdata;
	int64_t id = sqlite3_column_int64(st, 0);
	if (id < 0 || id >= HARTS_MAX)
		return 0;
	r->hart[id] = (struct rollup_hart){
		.known = true,
		.rung = (uint8_t)sqlite3_column_int64(st, 1),
		.leader = (uint32_t)sqlite3_column_int64(st, 2),
		.user_only = sqlite3_column_int64(st, 3) != 0,
	};
	return 0;
}

/* What shares out a hart's time has changed: say which event did at which rung. Where one rung had
 * both, 0 says that any does. */
static int write_leaders(
	struct rollup *r, int64_t id, const struct rollup_hart *was, const struct rollup_hart *is)
{
	char key[64];
	bool both = was->rung == is->rung;
	snprintf(key, sizeof(key), "leader:%lld:%u", (long long)id, was->rung);
	int outcome = PUT(r, WRITE_META, CELL_T(key), CELL_I(both ? 0 : was->leader));
	snprintf(key, sizeof(key), "leader:%lld:%u", (long long)id, is->rung);
	return outcome == 0 && !both ? PUT(r, WRITE_META, CELL_T(key), CELL_I(is->leader))
				     : outcome;
}

static int take_hart(struct rollup *r, struct rollup_hart *of_source)
{
	sqlite3_stmt *st = r->read[READ_HART];
	int64_t id = sqlite3_column_int64(st, 0), leader = sqlite3_column_int64(st, 3);
	if (id < 0 || id >= HARTS_MAX)
		return 0;
	struct rollup_hart hart = {
		.known = true,
		.rung = (uint8_t)sqlite3_column_int64(st, 1),
		.user_only = sqlite3_column_int64(st, 4) != 0,
	};
	if (leader > 0 && leader <= ROLLUP_EVENTS_MAX && r->event[leader] != ROLLUP_NO_EVENT)
		hart.leader = r->event[leader];
	of_source[id] = hart;
	for (int16_t i = 0; r->tier == TIER_HOUR && hart.rung != RUNG_NONE && i < id; i++)
		if (r->core[i] == r->core[id] && memcmp(&of_source[i], &hart, sizeof(hart)) == 0) {
			r->hart_as[id] = i;
			return 0;
		}
	const struct rollup_hart *was = &r->hart[id];
	int outcome = 0;
	if (was->known && was->leader != hart.leader)
		outcome = write_leaders(r, id, was, &hart);
	if (outcome == 0 && (!was->known || memcmp(was, &hart, sizeof(hart)) != 0))
		outcome = PUT(r, WRITE_HART, CELL_I(id), CELL_I(hart.rung),
			CELL_T(sqlite3_column_text(st, 2)),
			CELL_I_OR_NULL(hart.leader, hart.leader), CELL_I(hart.user_only));
	r->hart[id] = hart;
	return outcome;
}

int rollup_take_harts(struct rollup *r)
{
	struct rollup_hart *of_source = calloc(HARTS_MAX, sizeof(*of_source));
	if (!of_source)
		return -ENOMEM;
	for (int16_t i = 0; i < HARTS_MAX; i++)
		r->hart_as[i] = i;
	int outcome = rollup_get(r, READ_HART, INT64_MIN);
	while (outcome == 0) {
		outcome = take_hart(r, of_source);
		if (outcome == 0)
			outcome = rollup_next(r, READ_HART);
	}
	free(of_source);
	return outcome == ROLLUP_NO_ROW ? 0 : outcome;
}

/* --- the target's ----------------------------------------------------------------------------- */

static int load_count(struct rollup *r, sqlite3_stmt *st, void *userdata)
{
	(void)r;
	*(int64_t *)userdata = sqlite3_column_int64(st, 0);
	return 0;
}

int rollup_load_names(struct rollup *r)
{
	int outcome = rollup_each(r, "SELECT max(id) FROM window", load_count, &r->n_windows);
	if (outcome == 0)
		outcome = rollup_each(r, "SELECT max(id) FROM sample", load_count, &r->n_samples);
	if (outcome == 0)
		outcome = rollup_each(r,
			"SELECT id, pmu, type, config, config1, config2, modifiers FROM event",
			load_event, NULL);
	if (outcome == 0)
		outcome = rollup_each(
			r, "SELECT id, rung, leader, user_only FROM hart", load_hart, NULL);
	if (outcome == 0)
		outcome = rollup_each(
			r, "SELECT id, name FROM function ORDER BY id", load_name, &r->functions);
	if (outcome == 0)
		outcome = rollup_each(
			r, "SELECT id, path FROM source ORDER BY id", load_name, &r->sources);
	if (outcome == 0)
		outcome = rollup_each(
			r, "SELECT id, path FROM cgroup ORDER BY id", load_name, &r->cgroups);
	if (outcome == 0)
		outcome =
			rollup_each(r, "SELECT id, uid || ' ' || labels FROM label_set ORDER BY id",
				load_name, &r->labels);
	return outcome;
}

void rollup_forget_names(struct rollup *r)
{
	struct rows *rows[] = {&r->functions, &r->sources, &r->cgroups, &r->labels};
	struct translation *translations[] = {
		&r->task, &r->function, &r->source_name, &r->cgroup, &r->label_set};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		free(rows[i]->row);
	for (size_t i = 0; i < sizeof(translations) / sizeof(*translations); i++)
		free(translations[i]->index);
	entries_clear(&r->tasks);
}
