/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What a source's meta says of its harts and events goes on in the roll-up, with their numbers
 * there. A note is its own key, so what many sources say is said once.
 */

#include <stdio.h>
#include <string.h>

#include "daemon/pmu/cores.h"
#include "daemon/store/rollup/rollup_private.h"
#include "daemon/store/segment/note.h"

/* Rows of one source: its notes, a leader for each hart and rung, its cores, and their passes. */
#define ROWS_MAX (NOTES_MAX + HARTS_MAX * (RUNG_ASKED + 2) + EVENTS_MAX)

static uint32_t event_row(const struct rollup *r, int64_t id)
{
	const uint32_t row = id > 0 && id <= ROLLUP_EVENTS_MAX ? r->event[id] : 0;
	return row == ROLLUP_NO_EVENT ? 0 : row;
}

/* What these harts of the source count as. */
static struct hart_set harts_as(const struct rollup *r, const struct hart_set *theirs)
{
	struct hart_set ours = {0};
	for (int i = 0; i < HARTS_MAX; i++)
		if (hart_set_has(theirs, i))
			hart_set_add(&ours, r->hart_as[i]);
	return ours;
}

static int take_note(struct rollup *r, const char *key)
{
	struct note note;
	char made[NOTE_KEY_BYTES_MAX];
	if (!note_parse(key, &note))
		return 0;
	struct hart_set ours = harts_as(r, &note.harts);
	uint32_t row = event_row(r, note.event);
	if (note.event != 0 && row == 0)
		return 0;
	note.harts = ours;
	note.event = row;
	return PUT(r, WRITE_META, CELL_T(note_key(&note, made)), CELL_I(1));
}

/* "leader:HART:RUNG" */
static int take_leader(struct rollup *r, const char *key, int64_t event)
{
	unsigned hart, rung;
	char made[64];
	if (sscanf(key, "leader:%u:%u", &hart, &rung) != 2 || hart >= HARTS_MAX ||
		rung > RUNG_ASKED)
		return 0;
	snprintf(made, sizeof(made), "leader:%d:%u", r->hart_as[hart], rung);
	return PUT(r, WRITE_META, CELL_T(made), CELL_I(event_row(r, event)));
}

/* "core:HARTS", where HARTS is a list; false: it is not. */
static bool core_harts(const char *key, struct hart_set *ret_harts)
{
	return strncmp(key, "core:", 5) == 0 && hart_set_parse(key + 5, ret_harts) == 0;
}

static int take_core(struct rollup *r, const char *key)
{
	char made[NOTE_KEY_BYTES_MAX], list[NOTE_KEY_BYTES_MAX - 8];
	struct hart_set harts;
	if (!core_harts(key, &harts))
		return 0;
	struct hart_set ours = harts_as(r, &harts);
	snprintf(made, sizeof(made), "core:%s", hart_set_says(&ours, list, sizeof(list)));
	return PUT(r, WRITE_META, CELL_T(made), CELL_T(sqlite3_column_text(r->read[READ_NOTE], 1)));
}

/* Of several sources the worst holds. */
static int take_turn(struct rollup *r, const char *key, int64_t theirs)
{
	char made[NOTE_KEY_BYTES_MAX];
	struct hart_set harts;
	unsigned pass;
	int64_t ours;
	if (!note_turn_parse(key, &harts, &pass))
		return 0;
	harts = harts_as(r, &harts);
	note_turn_key(&harts, pass, made);
	int outcome = rollup_meta(r, made, 0, &ours);
	return outcome == 0 && theirs > ours ? PUT(r, WRITE_META, CELL_T(made), CELL_I(theirs))
					     : outcome;
}

/* Into r->core. */
static int learn_core(struct rollup *r)
{
	const char *key = (const char *)sqlite3_column_text(r->read[READ_NOTE], 0);
	struct hart_set harts;
	uint32_t text;
	if (!key || !core_harts(key, &harts))
		return 0;
	int outcome = rollup_text(r, r->read[READ_NOTE], 1, &text);
	for (int i = 0; i < HARTS_MAX && outcome == 0; i++)
		if (hart_set_has(&harts, i))
			r->core[i] = text;
	return outcome;
}

static int take_lowest(struct rollup *r, int64_t theirs)
{
	int64_t ours;
	int outcome = rollup_meta(r, "hz_lowest", INT64_MAX, &ours);
	return outcome == 0 && theirs > 0 && theirs < ours
		       ? PUT(r, WRITE_META, CELL_T("hz_lowest"), CELL_I(theirs))
		       : outcome;
}

static int take(struct rollup *r)
{
	const char *key = (const char *)sqlite3_column_text(r->read[READ_NOTE], 0);
	int64_t value = rollup_integer(r, READ_NOTE, 1);
	if (!key)
		return 0;
	if (strncmp(key, "note:", 5) == 0)
		return take_note(r, key);
	if (*key == 'c')
		return take_core(r, key);
	if (*key == 't')
		return take_turn(r, key, value);
	return *key == 'l' ? take_leader(r, key, value) : take_lowest(r, value);
}

static int each(struct rollup *r, int (*take_one)(struct rollup *r))
{
	int outcome = rollup_get(r, READ_NOTE, 1);
	for (uint32_t n = 0; outcome == 0 && n < ROWS_MAX; n++) {
		outcome = take_one(r);
		if (outcome == 0)
			outcome = rollup_next(r, READ_NOTE);
	}
	return outcome == ROLLUP_NO_ROW ? 0 : outcome;
}

int rollup_take_cores(struct rollup *r)
{
	return each(r, learn_core);
}

int rollup_take_notes(struct rollup *r)
{
	return each(r, take);
}
