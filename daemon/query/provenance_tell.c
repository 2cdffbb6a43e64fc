/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Provenance in words: one line about events and rungs, what was lost, and notes where a figure
 * means less than it seems to.
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/query/provenance.h"
#include "daemon/sampler/annotate.h"
#include "proto/loss.h"
#include "proto/syntax/unit.h"

/* A hart has far more samples than its rate gives if it has this multiple, and at least this
 * many. */
#define HELD_MORE 1.5
#define HELD_SAMPLES_MIN 100u
/* A throttle lasts until the next tick of the slowest clock (attribute/throttle.c); cycles and
 * instructions of that time are missing. */
#define THROTTLED_NS_MAX (2 * 10e6)
#define COST_SECONDS_MIN 2       /* cost is counted as often */
#define COST_LIVE_SECONDS_MIN 10 /* seconds of a live answer, which are known to within two */

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

/* An unknown cause, of another version, counts as one that loses samples. */
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

/* Share of the harts' time that mperf took. Not shown for hours, whose number of harts is not
 * known, nor for what is shorter than the two seconds after which cost is counted. */
static double cost_share(const struct provenance *p, const struct text_table *texts)
{
	double us = 0, n_harts = 0;
	for (uint32_t i = 0; i < p->n_losses; i++)
		us += is_cost(p, texts, i) ? (double)p->loss[i].count : 0;
	for (int i = 0; i < HARTS_MAX; i++)
		n_harts += p->measured[i];
	bool known = n_harts > 0 && p->seconds >= COST_SECONDS_MIN &&
		     !p->coarse_until_ns[TIER_HOUR] &&
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

/* Report the requested details that coarser tiers lack. */
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
		line_add(l++, "%u pinned job%s read in full", p->n_pins,
			p->n_pins > 1 ? "s were" : " was");
	if (p->n_growing > 0)
		line_add(l++, "not verified: %u file%s still being written", p->n_growing,
			p->n_growing > 1 ? "s are" : " is");
	if (n[QUERY_WITHOUT] > 0)
		line_add(l++,
			p->of_wall ? "%u of %u files have only sums of minutes or hours, so they "
				     "are left out"
				   : "%u of %u files did not count that event",
			n[QUERY_WITHOUT], n[QUERY_WITHOUT] + n[QUERY_READ]);
	return l;
}

/* Report counts that were not cut at switches. */
static struct line *tell_uncut(const struct provenance *p, struct line *l)
{
	if (p->uncounted == 0)
		return l;
	if ((p->switches & (CUT_COUNT | CUT_NONE)) == CUT_NONE) {
		line_add(l++, "no sample has counts: counts are not cut at context switches, and "
			      "switches could not be counted either");
		return l;
	}
	if (p->uncounted == p->samples) {
		line_add(l++, "counts cover none of the samples: before each, there was or may "
			      "have been a context switch");
		return l;
	}
	char text[UNIT_TEXT_BYTES] = "nearly all";
	(void)unit_part_text(1 - (double)p->uncounted / (double)p->samples, text);
	line_add(l++,
		"counts cover %s of the samples: those without a context switch since the previous "
		"sample",
		text);
	return l;
}

/* Time in which always-on sampling was lowered. Not shown for hours, whose number of harts is not
 * known. */
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

/* Explain why counts are scaled, as far as known: throttling, and for the remaining time other
 * users of the counters. */
static const char *scaled_by(const struct provenance *p, uint64_t n_throttles)
{
	if (n_throttles == 0)
		return "counters are shared";
	return p->enabled_ns - p->running_ns > (double)n_throttles * THROTTLED_NS_MAX
		       ? "counters are shared and throttled,"
		       : "counters are throttled, or shared,";
}

/* Report counters that did not count all of the time, and harts with fewer samples than their rate
 * and their time suggest. */
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
	line_add(l, "%llu busy second%s gave less than a tenth of the expected samples: ",
		(unsigned long long)n_sparse, n_sparse > 1 ? "s" : "");
	if (n_throttles > 0)
		line_add(l, "the kernel throttled sampling %llu times",
			(unsigned long long)n_throttles);
	else
		line_add(l, "the kernel did not throttle sampling%s",
			scaled ? ", but other programs use the counters" : "");
	return l + 1;
}

/* Number of samples whose stack is cut, out of *ret_of. If callers matter to this answer, both are
 * of its samples; else of the samples of all tasks, unless the query selects some. */
static uint64_t count_cut(
	const struct provenance *p, const struct text_table *texts, uint64_t *ret_of)
{
	uint64_t cut = p->of_code  ? p->cut
		       : p->of_all ? provenance_lost(p, texts, LOSS_STACK_TRUNCATED)
				   : 0;
	*ret_of = p->of_code ? p->samples - p->coarse_samples : p->samples;
	return cut < *ret_of ? cut : *ret_of;
}

/* The cause of most cut stacks, and what helps. */
static const char *cut_remedy(const struct provenance *p, const struct text_table *texts)
{
	const uint64_t all = provenance_lost(p, texts, LOSS_STACK_TRUNCATED);

	if (p->looked == p->samples)
		return "; there was no room for all of them, they could not be read, or waits were "
		       "read from /proc, "
		       "which has no callers (without BPF, as mperfctl status says, that is so of "
		       "waits "
		       "that began before the recording)";
	for (uint32_t i = 0; i < p->n_notes; i++)
		if (strcmp(text_of(texts, p->note[i]) ?: "", NOTE_TABLES) == 0)
			return provenance_lost(p, texts, LOSS_DEEP) * 2 > all
				       ? "; most are deeper than the copies of them, which -g "
					 "tables,65528 makes as large as the kernel can"
				       : "";
	return "; code without frame pointers hides them: use -g tables, or callers = tables in "
	       "mperf.conf";
}

/* Report cut stacks if they are more than one in a hundred; from one in twenty on, say what to do. */
static struct line *tell_cut(
	const struct provenance *p, const struct text_table *texts, struct line *l)
{
	uint64_t of, cut = count_cut(p, texts, &of);
	if (cut * 100 > of)
		line_add(l++, "the stacks of %.1f %% of the samples are cut: callers are missing%s",
			(double)cut / (double)of * 100, cut * 20 > of ? cut_remedy(p, texts) : "");
	return l;
}

/* The number of samples that may be missing: of a clock, as many as it could have fired; else any
 * number. */
static uint64_t missing_max(const struct provenance *p)
{
	double n_harts = 0;
	for (int i = 0; i < HARTS_MAX; i++)
		n_harts += p->measured[i];
	double all = p->hz * n_harts * p->seconds;
	if (!p->by_clock || p->by_others || p->many_hz || all <= 0)
		return UINT64_MAX;
	return all > (double)p->samples ? (uint64_t)(all - (double)p->samples + 0.5) : 0;
}

static void add_loss(struct answer_provenance *a, const char *cause, uint64_t count)
{
	uint32_t i = 0;
	while (i < a->n_losses && strcmp(a->loss[i].cause, cause) != 0)
		i++;
	if (count == 0 || i == N_LOSSES)
		return;
	if (i == a->n_losses)
		a->loss[a->n_losses++] = answer_loss(cause, 0);
	a->loss[i].count += count;
}

/* Report losses. Records that found a ring full and exceed the samples that may be missing were of
 * the side band, which shares the ring. */
static void tell_losses(
	const struct provenance *p, const struct text_table *texts, struct answer_provenance *a)
{
	uint64_t of, cut = count_cut(p, texts, &of), max = missing_max(p);
	for (uint32_t i = 0; i < p->n_losses; i++) {
		uint64_t n = p->loss[i].count, beyond = 0;
		if (is_cost(p, texts, i) || is_cause(p, texts, i, LOSS_STACK_TRUNCATED))
			continue;
		if (is_cause(p, texts, i, LOSS_RING) && n > max)
			beyond = n - max;
		add_loss(a, text_of(texts, p->loss[i].cause) ?: "unknown", n - beyond);
		add_loss(a, loss_kinds[LOSS_SIDEBAND].name, beyond);
	}
	add_loss(a, loss_kinds[LOSS_STACK_TRUNCATED].name, cut);
}

static int tell_notes(const struct provenance *p, const struct text_table *texts,
	struct line note[ANSWER_NOTES_MAX])
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
	if (p->split_missing)
		line_add(l++,
			"inlined functions of %.255s%s are missing: no .dwo or .dwp file with them "
			"could be read; keep the .dwo files where they were made, or make a .dwp "
			"file beside the program: dwp -e PROGRAM -o PROGRAM.dwp",
			text_of(texts, p->split_missing),
			p->many_split_missing ? " and others" : "");
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
		line_add(l++, "recordings with different rates; samples are weighted by time");
	if (p->many_boots)
		line_add(l++, "recordings of different boots or machines");
	/* one in a hundred is not worth a line */
	if (p->live && p->unread * 100 > p->samples)
		line_add(l++, "the names of %.0f %% of the samples are still coming",
			(double)p->unread / (double)p->samples * 100);
	else if (p->unread * 100 > p->samples)
		line_add(l++, "%llu samples (%.0f %%) have no names yet; ask again later",
			(unsigned long long)p->unread,
			(double)p->unread / (double)p->samples * 100);
	for (uint32_t i = 0; i < p->n_losses; i++)
		if (is_cause(p, texts, i, LOSS_SHARE))
			line_add(l++,
				"%llu samples have less detail: their users exceeded their share "
				"of the store",
				(unsigned long long)p->loss[i].count);
	l = tell_tiers(p, l);
	return (int)(tell_sources(p, l) - note);
}

/* The requested rate; or, if a hart has far more samples, the rate that these give. */
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
	struct line event = {0}, rung = {0}, note[ANSWER_NOTES_MAX] = {0};
	tell_texts(texts, p->event, p->n_events, &event);
	tell_rungs(p, &rung);
	struct answer_provenance a = {
		.event = event.text,
		.rung = rung.text,
		.switches = cut_name(p->switches),
		.hz = p->looked && p->looked == p->samples ? 0 : rate_told(p),
		.period = p->many_periods ? 0 : p->period,
		.samples = p->samples,
		.named_share = p->samples ? (double)p->named / (double)p->samples : 0,
		.placed_share =
			p->samples ? (double)(p->named + p->placed) / (double)p->samples : 0,
		.coming_share = p->live && p->samples ? (double)p->unread / (double)p->samples : 0,
		.seconds = p->seconds,
		.cost_share = cost_share(p, texts),
		.uncounted_share = p->samples ? (double)p->uncounted / (double)p->samples : 0,
		.threads = p->threads_missing ? (struct answer_threads){0} : p->threads,
		.look_every_s = p->looked ? p->looked_ns / (double)p->looked / 1e9 : 0,
		.has_waiting = p->has_waiting,
		.wall = p->of_wall ? &p->wall : NULL,
		.n_notes = (uint32_t)tell_notes(p, texts, note),
	};
	tell_losses(p, texts, &a);
	for (uint32_t i = 0; i < a.n_notes; i++)
		a.note[i] = note[i].text;
	return answer->provenance(answer->userdata, &a);
}
