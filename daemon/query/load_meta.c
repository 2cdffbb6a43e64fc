/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Facts about a segment as a whole, its harts and its events, from its meta table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/load_part.h"
#include "daemon/store/segment/note.h"

static int set_leader(struct loaded *l, const char *key, int64_t event)
{
	unsigned hart, rung;
	if (sscanf(key, "leader:%u:%u", &hart, &rung) != 2 || hart >= HARTS_MAX ||
		rung > RUNG_ASKED)
		return 0;
	if (!l->leaders) {
		l->leaders = malloc(sizeof(*l->leaders));
		if (!l->leaders)
			return -ENOMEM;
		memset(l->leaders, 0xff, sizeof(*l->leaders)); /* LEADER_AS_HART */
	}
	l->leaders->at[hart][rung] = event > 0 && event < QUERY_EVENTS_MAX ? (uint16_t)event : 0;
	return 0;
}

/* "period:EVENT" */
static void set_period(struct loaded *l, const char *key, int64_t period)
{
	unsigned event;
	if (sscanf(key, "period:%u", &event) == 1 && event < QUERY_EVENTS_MAX && period > 0)
		l->event[event].period = (uint64_t)period;
}

/* "core:HARTS" */
static int set_core(struct loaded *l, const char *key, const char *platform)
{
	struct hart_set harts;
	uint32_t text;
	if (hart_set_parse(key + 5, &harts) != 0)
		return 0;
	int r = query_fail_full(l, text_get(l->texts, platform, &text));
	for (int i = 0; i < HARTS_MAX && r == 0; i++)
		if (hart_set_has(&harts, i))
			l->hart[i].core = text;
	return r;
}

/* A share above 1 cannot have been measured. */
static void add_turn(struct loaded *l, const char *key, int64_t millionths)
{
	struct loaded_turn turn = {.part = (double)millionths / 1e6};
	if (l->n_turns == LOADED_TURNS_MAX || millionths <= 0 || millionths > 1000000 ||
		!note_turn_parse(key, &turn.harts, &turn.pass))
		return;
	l->turn[l->n_turns++] = turn;
}

static int add_note(struct loaded *l, const char *key)
{
	struct note note;
	if (l->n_notes >= NOTES_MAX || !note_parse(key, &note) || note.event >= QUERY_EVENTS_MAX)
		return 0;
	int r = array_grow(&l->note, &l->size_notes, l->n_notes + 1, sizeof(*l->note));
	if (r < 0)
		return r;
	struct loaded_note *to = &l->note[l->n_notes++];
	to->harts = note.harts;
	to->event = (uint32_t)note.event;
	return query_fail_full(l, text_get(l->texts, note.says, &to->says));
}

/* Keys come in order, but are no numbers. */
static int take_meta(struct loaded *l, struct cursor *c)
{
	const char *key = (const char *)sqlite3_column_text(c->statement, 2);
	const char *text = (const char *)sqlite3_column_text(c->statement, 1);
	if (!key || !text)
		return 0;
	if (strcmp(key, "boot_id") == 0)
		return query_fail_full(l, text_get(l->texts, text, &l->boot));
	if (strcmp(key, "hz") == 0)
		l->hz = cursor_id(c, 1, SAMPLER_HZ_MAX);
	else if (strcmp(key, "hz_lowest") == 0)
		l->hz_lowest = cursor_id(c, 1, SAMPLER_HZ_MAX);
	else if (strncmp(key, "note:", 5) == 0)
		return add_note(l, key);
	else if (strncmp(key, "core:", 5) == 0)
		return set_core(l, key, text);
	else if (strncmp(key, "turn:", 5) == 0)
		add_turn(l, key, cursor_integer(c, 1));
	else if (strncmp(key, "period:", 7) == 0)
		set_period(l, key, cursor_integer(c, 1));
	else if (strcmp(key, "hz_mixed") == 0)
		l->hz_mixed = cursor_integer(c, 1) != 0;
	else if (strcmp(key, "switches") == 0)
		l->cut = cursor_id(c, 1, CUTS - 1);
	else if (strcmp(key, "tier") == 0)
		l->tier = strcmp(text, "hour") == 0     ? TIER_HOUR
			  : strcmp(text, "minute") == 0 ? TIER_MINUTE
							: TIER_WINDOW;
	else
		return set_leader(l, key, cursor_integer(c, 1));
	return 0;
}

static int take_labels(struct loaded *l, struct cursor *c)
{
	uint32_t id = cursor_id(c, 0, l->n_tasks);
	if (id == 0 || !l->task[id].known)
		return 0;
	l->task[id].labels_uid = (uint32_t)cursor_integer(c, 2);
	return cursor_text(c, 1, &l->task[id].labels);
}

/* Labels belong to processes; threads get those of their process. */
int load_labels(struct loaded *l)
{
	int r = load_each(l,
		"SELECT task, labels, uid FROM task_label_set JOIN label_set s ON s.id = label_set "
		"ORDER BY task",
		false, take_labels);
	for (uint32_t i = 1; i <= l->n_tasks && r == 0; i++) {
		l->task[i].labels = l->task[l->task[i].process].labels;
		l->task[i].labels_uid = l->task[l->task[i].process].labels_uid;
	}
	return r;
}

int load_meta(struct loaded *l)
{
	struct cursor c;
	int r = cursor_open(&c, l,
		"SELECT 1, value, key FROM meta WHERE key IN ('boot_id', 'hz', 'hz_lowest', "
		"'hz_mixed', 'switches', 'tier') OR key BETWEEN 'leader:' AND 'leader;' "
		"OR key BETWEEN 'note:' AND 'note;' OR key BETWEEN 'core:' AND 'core;' "
		"OR key BETWEEN 'turn:' AND 'turn;' OR key BETWEEN 'period:' AND 'period;' LIMIT "
		"?1");
	c.ties = true;
	/* the six, a leader for each hart and rung, notes, cores, turns, and periods */
	if (r == 0)
		r = cursor_bind(&c,
			6 + HARTS_MAX * (RUNG_ASKED + 2) + NOTES_MAX + LOADED_TURNS_MAX +
				QUERY_EVENTS_MAX,
			0);
	while (r == 0 && (r = cursor_next(&c)) == 0)
		r = take_meta(l, &c);
	cursor_close(&c);
	return r == CURSOR_END ? 0 : r;
}
