/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Facts that an answer owes its reader besides the figures: the event whose time was attributed,
 * the rungs and their harts, the rate, the number of samples and seconds, the losses in that time,
 * the number of leaves with a name, and caveats of figures. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/query/load_part.h"
#include "daemon/query/provenance.h"
#include "proto/syntax/event_name.h"

/* Rows of `loss` that are read: windows of a week at one a second, with some causes each. */
#define LOSS_ROWS_MAX (1u << 24)

void provenance_expect(struct provenance *p, const struct query_question *question)
{
	const struct query_filter *f = question->filter;
	const struct query_by_kind *by = &query_by_kinds[question->by];
	const char *hours = by->hours, *minutes = by->minutes;
	p->of_code = by->frames;
	p->of_inlined = query_needs_places(question->by, question->inlined);
	p->of_all = !f->only_uid &&
		    f->n_pids + f->n_comms + f->n_cgroups + f->n_labels + f->n_jobs == 0;
	p->of_wall = f->wall;
	p->only_own = f->only_uid;
	p->group = f->group;
	if (!hours && f->n_cpus > 0)
		hours = query_by_kinds[QUERY_BY_HART].hours;
	else if (!hours && question->inlined)
		hours = "inlined functions count as their callers";
	if (!minutes && f->n_comms > 0)
		minutes = "threads have the name of their process";
	if (f->event && event_name_is_waiting(f->event))
		hours = "nothing is known of threads that waited";
	if (f->n_pids > 0)
		hours = "pids are not known, and nothing is counted";
	p->coarse_says[TIER_HOUR] = hours;
	p->coarse_says[TIER_MINUTE] = minutes;
}

enum tier query_coarsest(const struct query_question *question)
{
	struct provenance p = {0};
	provenance_expect(&p, question);
	if (question->filter->wall)
		return STORE_FINEST_FIRST; /* where there are only sums, they are left out with a word */
	if (query_by_kinds[question->by].minutes)
		return TIER_WINDOW;
	/* a lost name of a thread is no reason to read a week of windows */
	return p.coarse_says[TIER_HOUR] ? TIER_MINUTE : TIER_HOUR;
}

static void add_split_missing(
	struct provenance *p, const struct loaded *l, const struct scan_row *row)
{
	if (!p->of_inlined || !l->split_missing || row->count == 0 || row->stack > l->n_stacks)
		return;
	const uint32_t module = l->file[l->split_missing[row->stack]].module;
	p->many_split_missing |= module && p->split_missing && p->split_missing != module;
	p->split_missing = p->split_missing ? p->split_missing : module;
}

void provenance_row(struct provenance *p, const struct loaded *l, const struct scan_row *row)
{
	p->samples += row->count;
	p->uncounted += row->uncounted;
	const struct loaded_frame *leaf = loaded_leaf(l, row->stack);
	if (leaf->state == FRAME_NAMED)
		p->named += row->count;
	else if (leaf->state == FRAME_PLACED)
		p->placed += row->count;
	else if (leaf != &l->frame[0] && leaf->state <= FRAME_ASKED)
		p->unread += row->count;
	add_split_missing(p, l, row);
	const struct loaded_event *e = &l->event[row->event];
	if (e->offcpu) {
		p->looked += row->count;
		p->looked_ns += (double)row->weight_ns;
	} else {
		p->rung[row->rung][row->hart] |= row->count > 0;
	}
	const bool by_clock = e->clock && !e->offcpu && l->tier == TIER_WINDOW;
	p->by_clock |= row->count > 0 && by_clock;
	p->by_others |= row->count > 0 && !by_clock;
	bool each = !e->clock && (e->type == PERF_TYPE_SOFTWARE || e->type == PERF_TYPE_TRACEPOINT);
	if (l->tier == TIER_WINDOW && !each && !e->offcpu)
		p->by_rate[row->hart] += row->count;
	if (l->tier == TIER_HOUR) {
		p->coarse_samples += row->count;
		p->coarse_cut += row->cut;
	} else {
		p->cut += row->cut;
	}
}

static void add_text(uint32_t *text, uint32_t *n, uint32_t id)
{
	for (uint32_t i = 0; i < *n; i++)
		if (text[i] == id)
			return;
	if (id != 0 && *n < EVENTS_MAX)
		text[(*n)++] = id;
}

void provenance_loss(struct provenance *p, uint32_t cause, uint64_t count)
{
	uint32_t i = 0;
	while (i < p->n_losses && p->loss[i].cause != cause)
		i++;
	if (i == N_LOSSES)
		return; /* more causes than exist: unknown ones */
	if (i == p->n_losses)
		p->loss[p->n_losses++].cause = cause;
	p->loss[i].count += count;
}

static int add_losses(struct provenance *p, struct loaded *l, const struct row_filter *f)
{
	struct cursor c;
	int r = cursor_open(
		&c, l, "SELECT window, hart, cause, count FROM loss ORDER BY window, hart, cause");
	c.ties = true;
	for (uint32_t n = 0; r == 0; n++) {
		r = cursor_next(&c);
		if (r != 0)
			break;
		if (n >= LOSS_ROWS_MAX)
			r = query_fail_damaged(l, "it has too many losses");
		int64_t hart = cursor_integer(&c, 1), count = cursor_integer(&c, 3);
		bool known = hart >= 0 && hart < HARTS_MAX;
		uint32_t window = cursor_id(&c, 0, l->n_windows), cause = 0;
		if (!f->hart[known ? hart : HART_UNKNOWN] || count <= 0 ||
			(f->windows && !l->window[window].wanted))
			continue;
		if (r == 0)
			r = cursor_text(&c, 2, &cause);
		provenance_loss(p, cause, (uint64_t)count);
	}
	cursor_close(&c);
	return r == CURSOR_END ? 0 : r;
}

static bool has_all_harts(const struct row_filter *f)
{
	for (uint32_t i = 0; i < HARTS_MAX; i++)
		if (!f->hart[i])
			return false;
	return true;
}

static double seconds_of(struct cursor *c, int column)
{
	const int64_t ns = cursor_integer(c, column);
	return ns > 0 ? (double)ns / 1e9 : 0;
}

/* Their times are of no single hart. */
static int add_threads(struct provenance *p, struct loaded *l, const struct row_filter *f)
{
	struct answer_threads sum = {0};
	struct cursor c;
	bool is_there;
	int r = load_has_table(l, "thread_time", &is_there);
	p->threads_missing |= !is_there || !has_all_harts(f);
	if (r != 0 || p->threads_missing)
		return r;
	r = cursor_open(&c, l,
		"SELECT window, task, lived_ns, ran_ns, ready_ns, unsplit_ns FROM thread_time "
		"ORDER BY window, task");
	c.pairs = true;
	while (r == 0 && (r = cursor_next(&c)) == 0) {
		const uint32_t window = cursor_id(&c, 0, l->n_windows);
		const uint32_t task = cursor_id(&c, 1, l->n_tasks);
		if (!f->task[task] || (f->windows && !l->window[window].wanted))
			continue;
		sum.lived += seconds_of(&c, 2);
		sum.ran += seconds_of(&c, 3);
		sum.ready += seconds_of(&c, 4);
		sum.unsplit += seconds_of(&c, 5);
	}
	cursor_close(&c);
	p->threads_missing |= sum.lived <= 0;
	p->threads.lived += sum.lived;
	p->threads.ran += sum.ran;
	p->threads.ready += sum.ready;
	p->threads.unsplit += sum.unsplit;
	return r == CURSOR_END ? 0 : r;
}

/* If nothing was sampled, name the events that would have been. */
static void add_plan(struct provenance *p, const struct loaded *l, const struct row_filter *f)
{
	bool asked_waiting = false;
	for (uint32_t i = 1; i < QUERY_EVENTS_MAX; i++)
		asked_waiting |= f->event[i] && l->event[i].offcpu;
	if (asked_waiting) /* no hart samples them */
		return;
	for (uint32_t i = 0; i < HARTS_MAX; i++) {
		const struct loaded_hart *hart = &l->hart[i];
		if (!hart->known || !f->hart[i] || hart->rung == RUNG_NONE ||
			hart->rung > RUNG_ASKED)
			continue;
		p->rung[hart->rung][i] = true;
		if (hart->leader)
			add_text(p->event, &p->n_events, l->event[hart->leader].name);
	}
}

/* Is the note about something in the answer? */
static bool note_concerns(const struct provenance *p, const struct loaded_note *note,
	const struct row_filter *f, const struct scan_notes *notes)
{
	if (note->event && !notes->events[note->event] && !notes->counted[note->event])
		return false;
	for (uint32_t i = 0; i < HARTS_MAX; i++) {
		bool sampled = false;
		for (int rung = 0; rung <= RUNG_ASKED; rung++)
			sampled |= p->rung[rung][i];
		if (sampled && f->hart[i] && hart_set_has(&note->harts, (int)i))
			return true;
	}
	return false;
}

static void add_notes(struct provenance *p, const struct loaded *l, const struct row_filter *f,
	const struct scan_notes *notes)
{
	for (uint32_t i = 0; i < l->n_notes; i++) {
		uint32_t known = 0;
		while (known < p->n_notes && p->note[known] != l->note[i].says)
			known++;
		if (known == p->n_notes && known < PROVENANCE_NOTES_MAX &&
			note_concerns(p, &l->note[i], f, notes))
			p->note[p->n_notes++] = l->note[i].says;
	}
	if (l->hz_lowest && l->hz_lowest <= l->hz &&
		(p->hz_lowest == 0 || l->hz_lowest < p->hz_lowest))
		p->hz_lowest = l->hz_lowest;
}

static void add_event(struct provenance *p, const struct loaded_event *e)
{
	p->many_periods |= p->n_events > 0 && p->period != e->period;
	p->period = e->period;
	add_text(p->event, &p->n_events, e->name);
}

void provenance_source(struct provenance *p, const struct loaded *l, const struct row_filter *f,
	const struct scan_notes *notes)
{
	p->n_pins += l->pin != QUERY_NO_PIN;
	for (uint32_t i = 1; i <= l->n_windows && l->pin != QUERY_PIN_BESIDE; i++) {
		const struct loaded_window *w = &l->window[i];
		if (!w->known || !w->wanted || w->end_ns <= w->start_ns)
			continue;
		int64_t step_ns = (int64_t)tier_step_ns(l->tier), until_ns;
		if (!__builtin_add_overflow(w->realtime_ns, step_ns, &until_ns) &&
			until_ns > p->coarse_until_ns[l->tier])
			p->coarse_until_ns[l->tier] = until_ns;
		double seconds = ((double)w->end_ns - (double)w->start_ns) / 1e9;
		p->seconds += seconds;
		p->by_rate_seconds += l->tier == TIER_WINDOW ? seconds : 0;
	}
	p->switches |= l->cut;
	p->many_hz |= l->hz_mixed;
	p->many_hz |= p->hz != 0 && l->hz != 0 && p->hz != l->hz;
	p->many_boots |= p->boot != 0 && l->boot != 0 && p->boot != l->boot;
	p->hz = l->hz > p->hz ? l->hz : p->hz;
	p->boot = p->boot ? p->boot : l->boot;
	for (uint32_t i = 1; i < QUERY_EVENTS_MAX; i++) {
		if (notes->events[i])
			add_event(p, &l->event[i]);
		if (notes->others[i])
			add_text(p->other, &p->n_others, l->event[i].name);
	}
	if (p->samples == 0)
		add_plan(p, l, f);
	for (uint32_t i = 0; i < HARTS_MAX; i++)
		p->measured[i] |= l->hart[i].known && f->hart[i];
	for (uint32_t i = 0; i < HARTS_MAX; i++)
		p->without[i] |= l->hart[i].known && l->hart[i].rung == RUNG_NONE && f->hart[i];
	p->mixed_modes |= notes->mixed_modes;
	p->has_waiting |= notes->has_offcpu;
	p->wall.busy += notes->wall.ns / 1e9;
	p->wall.least += notes->wall.least_ns / 1e9;
	p->wall.most += notes->wall.most_ns / 1e9;
	p->wall.cpu += notes->wall.cpu_ns / 1e9;
	p->enabled_ns += notes->enabled_ns;
	p->running_ns += notes->running_ns;
	add_notes(p, l, f, notes);
}

int provenance_segment(struct provenance *p, struct loaded *l, const struct row_filter *f,
	const struct scan_notes *notes)
{
	provenance_source(p, l, f, notes);
	int r = l->pin == QUERY_PIN_BESIDE ? 0 : add_losses(p, l, f);
	return r == 0 ? add_threads(p, l, f) : r;
}
