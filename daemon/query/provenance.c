/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What an answer owes its reader besides the figures: which event was shared out, by which rung on
 * which harts, at which rate, over how many samples and seconds, what was lost in that time, how
 * many leaves have a name, and where a figure means less than it seems to.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/query/provenance.h"
#include "proto/loss.h"
#include "proto/unit.h"

/* Rows of `loss` that are read: windows of a week at one a second, with some causes each. */
#define LOSS_ROWS_MAX (1u << 24)
/* A hart that holds this multiple of its rate, and at least this many samples, holds far more. */
#define HELD_MORE 1.5
#define HELD_SAMPLES_MIN 100u
/* A throttle lasts until the next tick of the slowest clock (attribute/silence.c), and is missing from
 * cycles and from instructions. */
#define THROTTLED_NS_MAX (2 * 10e6)
#define COST_LIVE_SECONDS_MIN 10 /* of a live answer, which is known to two seconds */

void provenance_expect(struct provenance *p, const struct query_question *question)
{
	const struct query_filter *f = question->filter;
	const char **hours = &p->coarse_says[TIER_HOUR], **minutes = &p->coarse_says[TIER_MINUTE];
	p->of_code = question->by == QUERY_BY_FUNCTION || question->by == QUERY_BY_MODULE ||
		     question->by == QUERY_BY_LINE || question->by == QUERY_BY_ADDRESS;
	p->of_all = !f->only_uid &&
		    f->n_pids + f->n_comms + f->n_cgroups + f->n_labels + f->n_jobs == 0;
	p->only_own = f->only_uid;
	p->group = f->group;
	if (question->by == QUERY_BY_PROCESS)
		*hours = "processes are summed by program";
	else if (question->by == QUERY_BY_LINE)
		*hours = "lines are not known";
	else if (question->by == QUERY_BY_ADDRESS)
		*hours = "addresses are those of whole functions";
	else if (question->by == QUERY_BY_HART || f->n_cpus > 0)
		*hours = "harts of one kind are summed under the first of them";
	else if (question->inlined)
		*hours = "inlined functions count as their callers";
	if (question->by == QUERY_BY_THREAD) {
		*hours = "threads are summed by program";
		*minutes = "threads are summed by process";
	} else if (f->n_comms > 0)
		*minutes = "threads have the name of their process";
	if (f->n_pids > 0)
		*hours = "pids are not known, and nothing is counted";
}

enum tier query_coarsest(const struct query_question *question)
{
	struct provenance p = {0};
	provenance_expect(&p, question);
	if (question->by == QUERY_BY_THREAD)
		return TIER_WINDOW;
	/* that a thread's own name is gone is no reason to read a week of windows */
	return p.coarse_says[TIER_HOUR] ? TIER_MINUTE : TIER_HOUR;
}

void provenance_row(struct provenance *p, const struct loaded *l, const struct scan_row *row)
{
	p->samples += row->count;
	p->uncounted += row->uncounted;
	const struct loaded_frame *leaf = loaded_leaf(l, row->stack);
	if (leaf->state == FRAME_NAMED)
		p->named += row->count;
	else if (leaf != &l->frame[0] && leaf->state <= FRAME_ASKED)
		p->unread += row->count;
	p->rung[row->rung][row->hart] |= row->count > 0;
	const struct loaded_event *e = &l->event[row->event];
	bool each = !e->clock && (e->type == PERF_TYPE_SOFTWARE || e->type == PERF_TYPE_TRACEPOINT);
	if (l->tier == TIER_WINDOW && !each)
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
		return; /* causes that we do not know, and more than there are */
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

/* Where nothing was sampled, say what would have been. */
static void add_plan(struct provenance *p, const struct loaded *l, const struct row_filter *f)
{
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

/* Is it about what is in the answer? */
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
			add_text(p->event, &p->n_events, l->event[i].name);
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
	p->uncut |= notes->uncut && notes->enabled_ns > 0;
	p->enabled_ns += notes->enabled_ns;
	p->running_ns += notes->running_ns;
	add_notes(p, l, f, notes);
}

int provenance_segment(struct provenance *p, struct loaded *l, const struct row_filter *f,
	const struct scan_notes *notes)
{
	provenance_source(p, l, f, notes);
	return l->pin == QUERY_PIN_BESIDE ? 0 : add_losses(p, l, f);
}

/* --- telling ---------------------------------------------------------------------------------- */

struct line {
	char text[512];
	size_t n;
};

static void __attribute__((format(printf, 2, 3))) line_add(struct line *l, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vsnprintf(l->text + l->n, sizeof(l->text) - l->n, format, args);
	va_end(args);
	if (n > 0)
		l->n += (size_t)n;
	if (l->n >= sizeof(l->text))
		l->n = sizeof(l->text) - 1;
}

/* "0-3,5" */
static void line_add_harts(struct line *l, const bool *hart)
{
	for (int i = 0, first = true; i < HARTS_MAX; i++) {
		if (!hart[i])
			continue;
		int end = i;
		while (end + 1 < HARTS_MAX && hart[end + 1])
			end++;
		line_add(l, end > i ? "%s%d-%d" : "%s%d", first ? "" : ",", i, end);
		first = false;
		i = end;
	}
}

static void tell_rungs(const struct provenance *p, struct line *l)
{
	int n_rungs = 0;
	for (int rung = 0; rung <= RUNG_ASKED; rung++)
		n_rungs += memchr(p->rung[rung], 1, HARTS_MAX + 1) != NULL;
	for (int rung = 0; rung <= RUNG_ASKED; rung++) {
		if (!memchr(p->rung[rung], 1, HARTS_MAX + 1))
			continue;
		line_add(l, "%s%s: %s", l->n ? "; " : "", rung_letter((enum rung)rung),
			rung_says((enum rung)rung));
		if (n_rungs < 2)
			continue;
		line_add(l, " (harts ");
		line_add_harts(l, p->rung[rung]);
		line_add(l, ")");
	}
}

static void tell_texts(
	const struct text_table *texts, const uint32_t *text, uint32_t n, struct line *l)
{
	for (uint32_t i = 0; i < n; i++)
		line_add(l, "%s%s", i ? ", " : "", text_of(texts, text[i]));
}

/* A cause that we do not know, of another version, is taken for the worse. */
static struct answer_loss answer_loss(const char *cause, uint64_t count)
{
	struct answer_loss loss = {cause ?: "unknown", count, true};
	for (int i = 0; i < N_LOSSES; i++)
		if (strcmp(loss.cause, loss_kinds[i].name) == 0)
			loss.samples = loss_kinds[i].samples;
	return loss;
}

static bool is_cause(
	const struct provenance *p, const struct text_table *texts, uint32_t i, enum loss cause)
{
	return strcmp(text_of(texts, p->loss[i].cause) ?: "", loss_kinds[cause].name) == 0;
}

static bool is_cost(const struct provenance *p, const struct text_table *texts, uint32_t i)
{
	return is_cause(p, texts, i, LOSS_COST);
}

/* What mperf took of the harts' time. Hours do not know how many harts they sum up, and a frame of top
 * is too short: cost is counted every two seconds. */
static double cost_share(const struct provenance *p, const struct text_table *texts)
{
	double us = 0, n_harts = 0;
	for (uint32_t i = 0; i < p->n_losses; i++)
		us += is_cost(p, texts, i) ? (double)p->loss[i].count : 0;
	for (int i = 0; i < HARTS_MAX; i++)
		n_harts += p->measured[i];
	bool known = n_harts > 0 && p->seconds > 0 && !p->coarse_until_ns[TIER_HOUR] &&
		     !(p->live && p->seconds < COST_LIVE_SECONDS_MIN);
	return known ? us / 1e6 / n_harts / p->seconds : 0;
}

/* "2026-11-21 12:00", of the clock that people here go by. */
static void line_add_time(struct line *l, int64_t realtime_ns)
{
	time_t t = (time_t)(realtime_ns / 1000000000);
	struct tm tm;
	char text[32];
	if (localtime_r(&t, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &tm) > 0)
		line_add(l, "%s", text);
}

/* What coarser tiers do not know of what was asked. */
static struct line *tell_tiers(const struct provenance *p, struct line *l)
{
	for (int tier = TIER_HOUR; tier > TIER_WINDOW; tier--) {
		if (!p->coarse_until_ns[tier] || !p->coarse_says[tier])
			continue;
		line_add(l, "before ");
		line_add_time(l, p->coarse_until_ns[tier]);
		line_add(l++, " %s", p->coarse_says[tier]);
	}
	/* one in a hundred is not worth a line */
	if (p->of_code && p->coarse_cut * 100 > p->coarse_samples) {
		line_add(l, "before ");
		line_add_time(l, p->coarse_until_ns[TIER_HOUR]);
		line_add(l++, " callers of %.0f %% of the samples were not found or not kept",
			(double)p->coarse_cut / (double)p->coarse_samples * 100);
	}
	return l;
}

static struct line *tell_sources(const struct provenance *p, struct line *l)
{
	const uint32_t *n = p->n_sources;
	if (n[QUERY_BROKEN] == 1)
		line_add(l++, "%s is damaged and left out", p->broken);
	else if (n[QUERY_BROKEN] > 1)
		line_add(l++, "%s and %u more files are damaged and left out", p->broken,
			n[QUERY_BROKEN] - 1);
	if (n[QUERY_GONE] > 0)
		line_add(l++, "%u file%s removed by retention meanwhile", n[QUERY_GONE],
			n[QUERY_GONE] > 1 ? "s were" : " was");
	if (n[QUERY_HELD] > 0)
		line_add(l++, "%u file%s could not be read now", n[QUERY_HELD],
			n[QUERY_HELD] > 1 ? "s" : "");
	if (p->n_pins > 0)
		line_add(l++, "%u pinned job%s read as sampled", p->n_pins,
			p->n_pins > 1 ? "s were" : " was");
	if (p->n_growing > 0)
		line_add(l++, "not verified: %u file%s still written to", p->n_growing,
			p->n_growing > 1 ? "s are" : " is");
	if (n[QUERY_WITHOUT] > 0)
		line_add(l++, "%u of %u files did not count that event", n[QUERY_WITHOUT],
			n[QUERY_WITHOUT] + n[QUERY_READ]);
	return l;
}

/* What is known of counts that were not cut at switches. */
static struct line *tell_uncut(const struct provenance *p, struct line *l)
{
	if (p->uncut)
		line_add(l++, "counts may be another task's: nothing cut them at context switches");
	if (p->uncounted == 0)
		return l;
	if ((p->switches & (CUT_COUNT | CUT_NONE)) == CUT_NONE) {
		line_add(l++,
			"nothing is counted: counts are not cut at context switches, which could "
			"not be counted either");
		return l;
	}
	if (p->uncounted == p->samples) {
		line_add(l++,
			"counts cover none of the samples: a context switch came, or may have "
			"come, before each");
		return l;
	}
	char text[UNIT_TEXT_BYTES] = "nearly all";
	(void)unit_part_text(1 - (double)p->uncounted / (double)p->samples, text);
	line_add(l++,
		"counts cover %s of the samples: those without a context switch since the sample "
		"before",
		text);
	return l;
}

/* Time in which always-on sampling was lowered. Hours do not know how many harts they sum up. */
static struct line *tell_paused(const struct provenance *p, uint64_t seconds, struct line *l)
{
	uint64_t n_harts = 0;
	for (int i = 0; i < HARTS_MAX; i++)
		n_harts += p->measured[i];
	if (seconds == 0)
		return l;
	if (n_harts == 0 || p->coarse_until_ns[TIER_HOUR])
		line_add(l++, "sampling was lowered for a time, while roofs were measured");
	else
		line_add(l++, "sampling was lowered for %llu s, while roofs were measured",
			(unsigned long long)((seconds + n_harts - 1) / n_harts));
	return l;
}

uint64_t provenance_lost(
	const struct provenance *p, const struct text_table *texts, enum loss cause)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < p->n_losses; i++)
		count += is_cause(p, texts, i, cause) ? p->loss[i].count : 0;
	return count;
}

/* Why counts are scaled, as far as that is known: what throttles cannot account for was the time of
 * other users of the counters. */
static const char *scaled_by(const struct provenance *p, uint64_t n_throttles)
{
	if (n_throttles == 0)
		return "counters are shared";
	return p->enabled_ns - p->running_ns > (double)n_throttles * THROTTLED_NS_MAX
		       ? "counters are shared, besides throttled,"
		       : "counters are throttled, or shared,";
}

/* Counters that did not count all of the time, and harts with fewer samples than their rate and their
 * time promise. */
static struct line *tell_few(
	const struct provenance *p, const struct text_table *texts, struct line *l)
{
	uint64_t n_throttles = provenance_lost(p, texts, LOSS_THROTTLE);
	uint64_t n_sparse = provenance_lost(p, texts, LOSS_SPARSE);
	char counted[UNIT_TEXT_BYTES];
	bool scaled = p->enabled_ns > 0 && unit_part_text(p->running_ns / p->enabled_ns, counted);
	if (scaled)
		line_add(l++, "cycles and instructions are scaled: %s and counted %s of the time",
			scaled_by(p, n_throttles), counted);
	if (n_sparse == 0)
		return l;
	line_add(l, "%llu busy second%s brought less than a tenth of the samples of the rate: ",
		(unsigned long long)n_sparse, n_sparse > 1 ? "s" : "");
	if (n_throttles > 0)
		line_add(l, "the kernel throttled sampling %llu times",
			(unsigned long long)n_throttles);
	else
		line_add(l, "the kernel did not throttle it%s",
			scaled ? ", but others use the counters" : "");
	return l + 1;
}

/* Samples whose stack is cut, of *ret_of: those of this answer where callers matter to it; else of all
 * tasks, as they were sampled, unless some were asked for. */
static uint64_t count_cut(
	const struct provenance *p, const struct text_table *texts, uint64_t *ret_of)
{
	uint64_t cut = p->of_code  ? p->cut
		       : p->of_all ? provenance_lost(p, texts, LOSS_STACK_TRUNCATED)
				   : 0;
	*ret_of = p->of_code ? p->samples - p->coarse_samples : p->samples;
	return cut < *ret_of ? cut : *ret_of;
}

/* One in a hundred is not worth a line: a program's start is in code without frame pointers. */
static struct line *tell_cut(
	const struct provenance *p, const struct text_table *texts, struct line *l)
{
	uint64_t of, cut = count_cut(p, texts, &of);
	if (cut * 100 > of)
		line_add(l++, "the stacks of %.1f %% of the samples are cut: callers are missing",
			(double)cut / (double)of * 100);
	return l;
}

static void tell_losses(
	const struct provenance *p, const struct text_table *texts, struct answer_provenance *a)
{
	uint64_t of, cut = count_cut(p, texts, &of);
	for (uint32_t i = 0; i < p->n_losses; i++)
		if (!is_cost(p, texts, i) && !is_cause(p, texts, i, LOSS_STACK_TRUNCATED))
			a->loss[a->n_losses++] =
				answer_loss(text_of(texts, p->loss[i].cause), p->loss[i].count);
	if (cut > 0 && a->n_losses < N_LOSSES)
		a->loss[a->n_losses++] = answer_loss(loss_kinds[LOSS_STACK_TRUNCATED].name, cut);
}

static int tell_notes(const struct provenance *p, const struct text_table *texts,
	struct line note[QUERY_NOTES_MAX])
{
	struct line *l = note;
	int n_without = 0;
	if (p->only_own && p->group)
		line_add(l++, "only your own processes (the group %s sees all)", p->group);
	else if (p->only_own)
		line_add(l++, "only your own processes (root sees all)");
	for (int i = 0; i < HARTS_MAX; i++)
		n_without += p->without[i];
	if (n_without > 0) {
		line_add(l, "%d hart%s without sampling: ", n_without, n_without > 1 ? "s" : "");
		line_add_harts(l++, p->without);
	}
	if (p->mixed_modes)
		line_add(l++, "IPC mixes user and kernel modes");
	for (uint32_t i = 0; i < p->n_notes; i++)
		line_add(l++, "%s", text_of(texts, p->note[i]));
	l = tell_paused(p, provenance_lost(p, texts, LOSS_PAUSED), l);
	l = tell_cut(p, texts, l);
	l = tell_few(p, texts, l);
	l = tell_uncut(p, l);
	if (p->hz_lowest)
		line_add(l++,
			"the kernel allowed no more than %u samples a second without throttling "
			"(kernel.perf_event_max_sample_rate)",
			p->hz_lowest);
	if (p->n_others > 0) {
		line_add(l, "also sampled, shown with --event: ");
		tell_texts(texts, p->other, p->n_others, l++);
	}
	if (p->many_hz)
		line_add(l++, "recordings of different rates; samples are weighted by time");
	if (p->many_boots)
		line_add(l++, "recordings of different boots or machines");
	/* one in a hundred is not worth a line */
	if (p->live && p->unread * 100 > p->samples)
		line_add(l++, "the names of %.0f %% of the samples are still coming",
			(double)p->unread / (double)p->samples * 100);
	else if (p->unread * 100 > p->samples)
		line_add(l++,
			"%llu samples (%.0f %%) have no name, since the namer had not reached "
			"them yet; ask again later",
			(unsigned long long)p->unread,
			(double)p->unread / (double)p->samples * 100);
	for (uint32_t i = 0; i < p->n_losses; i++)
		if (is_cause(p, texts, i, LOSS_SHARE))
			line_add(l++,
				"%llu samples have less detail: their users wrote more than their "
				"share of the store",
				(unsigned long long)p->loss[i].count);
	l = tell_tiers(p, l);
	return (int)(tell_sources(p, l) - note);
}

/* The rate that was asked for; or, where a hart holds far more samples, what it holds. */
static uint32_t rate_told(const struct provenance *p)
{
	uint64_t most = 0;
	for (int i = 0; i < HARTS_MAX; i++)
		most = p->by_rate[i] > most ? p->by_rate[i] : most;
	if (most < HELD_SAMPLES_MIN || p->by_rate_seconds <= 0 || p->hz == 0)
		return p->hz;
	double held = (double)most / p->by_rate_seconds;
	return held > HELD_MORE * p->hz && held < UINT32_MAX ? (uint32_t)(held + 0.5) : p->hz;
}

int provenance_tell(
	const struct provenance *p, const struct text_table *texts, const struct answer *answer)
{
	struct line event = {0}, rung = {0}, note[QUERY_NOTES_MAX] = {0};
	tell_texts(texts, p->event, p->n_events, &event);
	tell_rungs(p, &rung);
	struct answer_provenance a = {
		.event = event.text,
		.rung = rung.text,
		.switches = cut_name(p->switches),
		.hz = rate_told(p),
		.samples = p->samples,
		.named_share = p->samples ? (double)p->named / (double)p->samples : 0,
		.coming_share = p->live && p->samples ? (double)p->unread / (double)p->samples : 0,
		.seconds = p->seconds,
		.cost_share = cost_share(p, texts),
		.uncounted_share = p->samples ? (double)p->uncounted / (double)p->samples : 0,
		.n_notes = (uint32_t)tell_notes(p, texts, note),
	};
	tell_losses(p, texts, &a);
	for (uint32_t i = 0; i < a.n_notes; i++)
		a.note[i] = note[i].text;
	return answer->provenance(answer->userdata, &a);
}
