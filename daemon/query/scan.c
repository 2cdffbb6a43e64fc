/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Value of a row
 *
 * If no event is requested, time is attributed, each hart's time only once: only rows of the event
 * that leads that hart count, not those of other events that sampled on it. If an event is
 * requested, a row's value is the count of that event while the row gathered. Counts of a counter
 * that had to share its hardware are multiplied by the time that it was enabled over the time that
 * it ran; a counter that never ran has measured nothing.
 */

#include <stdio.h>

#include "daemon/query/load_part.h"
#include "daemon/query/scan.h"
#include "daemon/store/segment/open.h"

struct scan {
	struct loaded *l;
	const struct row_filter *f;
	struct scan_notes *notes;
	struct cursor samples, readings;
	struct cursor moments;
	uint32_t moments_window; /* where that cursor stands; 0: there are no moments */
	uint32_t last_window;    /* of the row before */
	size_t position;         /* samples of that window in the rows so far */
	bool reading;            /* the readings' cursor stands on a row */
	bool contributes;        /* the row being read has the requested event */
	/* by sampling event: its group has the requested event, which all its samples would have
	 * counted; only of files with samples without counts */
	bool reads[QUERY_EVENTS_MAX];
	struct scan_reading read[SCAN_READS_MAX]; /* of the row under way, with `every` */
	size_t n_reads;
};

static bool mixes_modes(const struct loaded *l, const struct scan_row *row)
{
	return l->hart[row->hart].user_only;
}

bool scan_read(const struct loaded *l, const struct row_filter *f, struct scan_notes *notes,
	struct scan_row *row, const struct scan_reading *reading)
{
	const struct loaded_event *e = &l->event[reading->event];
	double value = reading->value;
	double enabled = reading->enabled_ns, running = reading->running_ns;
	if (!e->known || value < 0)
		return false;
	if (enabled > 0) {
		if (running <= 0)
			return false;
		value *= enabled / running;
	}
	if (f->event[reading->event]) {
		row->value += value;
		notes->events[reading->event] = true;
	}
	if ((e->cycles && row->cycles < 0) || (e->instructions && row->instructions < 0)) {
		notes->counted[reading->event] = true;
		notes->enabled_ns += enabled;
		notes->running_ns += running;
		/* neither user nor kernel is excluded (schema.sql, event.modifiers) */
		if (!(e->modifiers & 3) && mixes_modes(l, row))
			notes->mixed_modes = true;
	}
	if (e->cycles && row->cycles < 0)
		row->cycles = value;
	if (e->instructions && row->instructions < 0)
		row->instructions = value;
	return f->event[reading->event];
}

static void take_reading(struct scan *s, struct scan_row *row)
{
	sqlite3_stmt *st = s->readings.statement;
	struct scan_reading reading = {
		.event = cursor_id(&s->readings, 1, QUERY_EVENTS_MAX - 1),
		.value = (double)sqlite3_column_int64(st, 2),
		.enabled_ns = (double)sqlite3_column_int64(st, 3),
	};
	reading.running_ns = reading.enabled_ns;
	if (sqlite3_column_type(st, 3) != SQLITE_NULL && sqlite3_column_type(st, 4) != SQLITE_NULL)
		reading.running_ns = (double)sqlite3_column_int64(st, 4);
	if (s->f->every && s->n_reads < SCAN_READS_MAX)
		s->read[s->n_reads++] = reading;
	s->contributes |= scan_read(s->l, s->f, s->notes, row, &reading);
}

/* Take the readings of the sample of that id, passing over those of rows that are not wanted. */
static int take_readings(struct scan *s, int64_t sample, struct scan_row *row)
{
	while (s->reading && s->readings.last <= sample) {
		if (s->readings.last == sample)
			take_reading(s, row);
		int r = cursor_next(&s->readings);
		if (r == CURSOR_END)
			s->reading = false;
		else if (r != 0)
			return r;
	}
	return 0;
}

static int next_moments(struct scan *s)
{
	int r = cursor_next(&s->moments);
	s->moments_window = r == 0 ? cursor_id(&s->moments, 0, s->l->n_windows) : 0;
	return r == CURSOR_END ? 0 : r;
}

static int open_moments(struct scan *s)
{
	bool is_there = false;
	int r = s->f->tells_moments ? load_has_table(s->l, "moment", &is_there) : 0;
	if (r != 0 || !is_there)
		return r;
	r = cursor_open(&s->moments, s->l, "SELECT window, at FROM moment ORDER BY window");
	return r == 0 ? next_moments(s) : r;
}

/* The moments of the row at which the cursor stands, whether the filter wants it or not. *ret_at NULL: not known, also
 * where windows are not written in their order. */
static int find_moments(struct scan *s, const uint8_t **ret_at)
{
	*ret_at = NULL;
	if (s->moments_window == 0)
		return 0;
	const int64_t count = cursor_integer(&s->samples, 6);
	const uint32_t window = cursor_id(&s->samples, 8, s->l->n_windows);
	if (window < s->last_window || count < 0) {
		s->moments_window = 0;
		return 0;
	}
	if (window > s->last_window)
		s->position = 0;
	s->last_window = window;
	while (s->moments_window != 0 && s->moments_window < window) {
		int r = next_moments(s);
		if (r != 0)
			return r;
	}
	const size_t n = (size_t)sqlite3_column_bytes(s->moments.statement, 1) / 2,
		     at = s->position;
	if (s->moments_window != window || at > n || (uint64_t)count > n - at)
		return 0;
	*ret_at = (const uint8_t *)sqlite3_column_blob(s->moments.statement, 1) + 2 * at;
	s->position += (size_t)count;
	return 0;
}

/* The row as the cursor has it; false if the filter does not want it. */
static bool read_row(struct scan *s, struct scan_row *row)
{
	const struct loaded *l = s->l;
	const struct cursor *c = &s->samples;
	*row = (struct scan_row){.cycles = -1, .instructions = -1, .hart = HART_UNKNOWN};
	row->task = cursor_id(c, 1, l->n_tasks);
	int64_t hart = cursor_integer(c, 2);
	if (hart >= 0 && hart < HARTS_MAX)
		row->hart = (uint32_t)hart;
	if (!s->f->task[row->task] || !s->f->hart[row->hart])
		return false;
	row->window = cursor_id(c, 8, l->n_windows);
	if (s->f->windows && !l->window[row->window].wanted)
		return false;
	if (s->f->without && filter_leaves_out(l, s->f, row->task, row->window))
		return false;
	int64_t count = cursor_integer(c, 6), weight_ns = cursor_integer(c, 7);
	/* hart counts are no samples */
	if (cursor_integer(c, 5) > RUNG_ASKED)
		return false;
	row->stack = cursor_id(c, 3, l->n_stacks);
	row->event = (uint8_t)cursor_id(c, 4, QUERY_EVENTS_MAX - 1);
	row->rung = (uint8_t)cursor_id(c, 5, RUNG_ASKED);
	row->count = count > 0 ? (uint64_t)count : 0;
	row->weight_ns = weight_ns > 0 ? (uint64_t)weight_ns : 0;
	if (cursor_integer(c, 9) > 0 && !(l->whole && l->whole[loaded_sleeper(l, row->stack)]))
		row->cut = (uint64_t)cursor_integer(c, 9);
	if (row->cut > row->count)
		row->cut = row->count;
	if (cursor_integer(c, 10) > 0)
		row->uncounted = (uint64_t)cursor_integer(c, 10);
	if (row->uncounted > row->count)
		row->uncounted = row->count;
	return true;
}

/* Is this row of the event that attributes its hart's time? For queries without an event. */
static bool leads(const struct loaded *l, struct scan_notes *notes, const struct scan_row *row)
{
	if (l->event[row->event].offcpu) {
		notes->has_offcpu = true;
		return false;
	}
	uint32_t leader = loaded_leader(l, row->hart, row->rung);
	if (leader == 0 || leader == row->event)
		return true;
	notes->others[row->event] |= row->count > 0;
	return false;
}

bool scan_weigh(const struct loaded *l, const struct row_filter *f, struct scan_notes *notes,
	struct scan_row *row, bool *ret_contributes)
{
	*ret_contributes = !f->asked;
	if (!f->asked) {
		if (!leads(l, notes, row))
			return false;
		notes->events[row->event] |= row->count > 0;
		row->value = (double)row->weight_ns;
	} else if (f->event[row->event] && l->event[row->event].clock) {
		row->value = (double)row->weight_ns;
		notes->events[row->event] = *ret_contributes = true;
	}
	return true;
}

static int take_row(struct scan *s, scan_take *take, void *userdata)
{
	struct scan_row row;
	const uint8_t *at;
	int r = find_moments(s, &at);
	if (r != 0)
		return r;
	if (!read_row(s, &row) || !scan_weigh(s->l, s->f, s->notes, &row, &s->contributes))
		return 0;
	row.at = at;
	s->n_reads = 0;
	if (s->f->every && s->l->event[row.event].clock) /* the event's own count is its time */
		s->read[s->n_reads++] =
			(struct scan_reading){.event = row.event, .value = (double)row.weight_ns};
	r = take_readings(s, s->samples.last, &row);
	row.read = s->read;
	row.n_reads = s->n_reads;
	if (!take)
		s->reads[row.event] |= s->contributes;
	s->contributes |= row.uncounted > 0 && s->reads[row.event];
	if (r != 0 || !s->contributes || !take)
		return r;
	return take(userdata, &row);
}

static bool needs_readings(const struct scan *s)
{
	for (size_t i = 0; i < QUERY_EVENTS_MAX; i++) {
		const struct loaded_event *e = &s->l->event[i];
		if (s->f->every || e->cycles || e->instructions || (s->f->event[i] && !e->clock))
			return true;
	}
	return false;
}

/* Move both cursors over all rows. take NULL: only find the groups that have the requested
 * event. */
static int scan_rows(struct scan *s, const char *samples, scan_take *take, void *userdata)
{
	static const char readings[] =
		"SELECT sample, event, value, enabled_ns, running_ns FROM reading "
		"WHERE sample BETWEEN ?1 AND ?2 ORDER BY sample, event";
	struct loaded *l = s->l;
	s->readings = (struct cursor){0};
	s->reading = false;
	s->moments = (struct cursor){0};
	s->moments_window = s->last_window = 0;
	int r = cursor_open(&s->samples, l, samples);
	if (r == 0)
		r = open_moments(s);
	if (r == 0)
		r = cursor_bind(&s->samples, l->first, l->last);
	if (r == 0 && needs_readings(s)) {
		r = cursor_open(&s->readings, l, readings);
		s->readings.pairs = true;
		if (r == 0)
			r = cursor_bind(&s->readings, l->first, l->last);
		if (r == 0)
			r = cursor_next(&s->readings);
		s->reading = r == 0;
		r = r == CURSOR_END ? 0 : r;
	}
	while (r == 0) {
		r = cursor_next(&s->samples);
		if (r == 0)
			r = take_row(s, take, userdata);
	}
	cursor_close(&s->samples);
	cursor_close(&s->readings);
	cursor_close(&s->moments);
	return r == CURSOR_END ? 0 : r;
}

int scan_samples(struct loaded *l, const struct row_filter *f, struct scan_notes *notes,
	scan_take *take, void *userdata)
{
	struct scan_notes nothing = {0};
	struct scan s = {.l = l, .f = f, .notes = &nothing};
	char samples[256];
	int r = 0;
	bool uncut = l->cut & (CUT_NONE | CUT_COUNT); /* some samples may have no counts */
	/* a column that is not looked at costs a tenth of the row */
	snprintf(samples, sizeof(samples),
		"SELECT id, task, hart, stack, event, rung, count, weight_ns, %s, %s, %s "
		"FROM sample WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
		f->windows || f->tells_windows || f->every ? "window" : "0",
		l->whole || l->tier == TIER_HOUR ? "truncated" : "0", uncut ? "uncounted" : "0");
	if (uncut && f->asked)
		r = scan_rows(&s, samples, NULL, NULL);
	s.notes = notes;
	return r == 0 ? scan_rows(&s, samples, take, userdata) : r;
}

int scan_counted(struct loaded *l, const struct row_filter *f,
	int (*take)(void *userdata, const struct scan_counted *c), void *userdata)
{
	static const char text[] =
		"SELECT s.id, r.event, s.hart, s.rung, s.window, r.value, r.enabled_ns, "
		"coalesce(r.running_ns, r.enabled_ns) FROM sample s JOIN reading r ON r.sample = "
		"s.id WHERE s.rung > 5 AND s.id BETWEEN ?1 AND ?2 ORDER BY s.id, r.event";
	_Static_assert(RUNG_ASKED == 5, "the last rung that samples");
	struct cursor c;
	int r = cursor_open(&c, l, text);
	c.pairs = true;
	if (r == 0)
		r = cursor_bind(&c, l->first, l->last);
	while (r == 0 && (r = cursor_next(&c)) == 0) {
		const struct scan_counted row = {
			.hart = cursor_id(&c, 2, HARTS_MAX - 1),
			.window = cursor_id(&c, 4, l->n_windows),
			.pass = cursor_id(&c, 3, RUNG_COUNTED_LAST) - RUNG_COUNTED,
			.read = {.event = cursor_id(&c, 1, QUERY_EVENTS_MAX - 1),
				.value = (double)cursor_integer(&c, 5),
				.enabled_ns = (double)cursor_integer(&c, 6),
				.running_ns = (double)cursor_integer(&c, 7)},
		};
		bool is_wanted = f->hart[row.hart] && l->window[row.window].wanted;
		if (is_wanted && row.pass <= RUNG_COUNTED_LAST - RUNG_COUNTED)
			r = take(userdata, &row);
	}
	cursor_close(&c);
	return r == CURSOR_END ? 0 : r;
}
