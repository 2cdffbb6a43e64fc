/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each run is read from the finest files that still have it. Notes give the number of runs found, their
 * users, and the runs left out; each run has a row of its own.
 */
#include "daemon/control/compare_runs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/answer/row.h"
#include "daemon/compare/answer.h"
#include "daemon/compare/compare.h"
#include "daemon/compare/values.h"
#include "daemon/query/load.h"
#include "daemon/query/runs.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"
#include "proto/syntax/label.h"

#define RUNS_SIDE_MAX ((size_t)COMPARE_SIDE_MAX)
#define NOTE_BYTES 512
#define UIDS_SAID 8 /* jobs named in a note; of further ones only the number */

struct chosen {
	struct found_run run; /* labels NULL: a stretch of time */
	bool candidate;
	const Mperf__RunSelection *of;
};

struct comparing {
	struct question *q;
	const struct answer *to;
	struct query_error *error;
	const Mperf__CompareRequest *m;
	const struct known_runs *known;
	bool is_gate;
	struct gather *gather;
	struct chosen *chosen; /* those of the baseline first */
	size_t n, size, n_side[2];
	char note[ANSWER_NOTES_MAX][NOTE_BYTES];
	uint32_t n_notes;
};

static void __attribute__((format(printf, 2, 3))) note(struct comparing *c, const char *format, ...)
{
	va_list args;
	if (c->n_notes == ANSWER_NOTES_MAX)
		return;
	va_start(args, format);
	vsnprintf(c->note[c->n_notes++], NOTE_BYTES, format, args);
	va_end(args);
}

static const char *side_says(bool candidate)
{
	return candidate ? "candidate" : "baseline";
}

static const char *side_begins(bool candidate)
{
	return candidate ? "Candidate" : "Baseline";
}

/* --- choosing --------------------------------------------------------------------------------- */

static bool is_same(const struct found_run *a, const struct found_run *b)
{
	for (size_t i = 0; i < a->n_jobs; i++)
		for (size_t k = 0; k < b->n_jobs; k++)
			if (a->job[i].uid == b->job[k].uid &&
				strcmp(a->job[i].labels, b->job[k].labels) == 0)
				return true;
	return false;
}

/* Takes the contents of run, unless this side has the run. 0, QUERY_FAILED, -ENOMEM. */
static int choose(
	struct comparing *c, bool candidate, const Mperf__RunSelection *of, struct found_run *run)
{
	for (size_t i = 0; i < c->n; i++) {
		if (!is_same(&c->chosen[i].run, run))
			continue;
		if (c->chosen[i].candidate == candidate)
			return 0;
		return query_fail(c->error, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Name labels by which the sides differ.", "'%.300s' is on both sides",
			run->says);
	}
	if (c->n_side[candidate] == RUNS_SIDE_MAX)
		return query_fail(c->error, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Select fewer with last= or since=.", "the %s has more than %zu runs",
			side_says(candidate), RUNS_SIDE_MAX);
	if (c->n == c->size) {
		const size_t size = c->size ? 2 * c->size : 64;
		struct chosen *grown = reallocarray(c->chosen, size, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		c->chosen = grown;
		c->size = size;
	}
	c->chosen[c->n++] = (struct chosen){*run, candidate, of};
	c->n_side[candidate]++;
	*run = (struct found_run){0};
	return 0;
}

static int64_t end_of(const struct comparing *c, const Mperf__RunSelection *s)
{
	return s->until_ns && s->until_ns < c->known->until_ns ? s->until_ns : c->known->until_ns;
}

static int choose_stretch(struct comparing *c, bool candidate, const Mperf__RunSelection *s)
{
	char from[40], to[40];
	struct found_run run = {
		.begin_ns = s->since_ns, .first_ns = s->since_ns, .until_ns = end_of(c, s)};
	if (asprintf(&run.says, "from %s to %s", clock_local_text(s->since_ns, from),
		    clock_local_text(run.until_ns, to)) < 0)
		return -ENOMEM;
	note(c, "%s: all samples that you may see %s, as one run", side_begins(candidate),
		run.says);
	int r = choose(c, candidate, s, &run);
	free(run.says);
	return r;
}

/* "branch=main, job=bench" of a selection. */
static const char *selection_says(const Mperf__RunSelection *s, char *text, size_t size)
{
	size_t at = 0;
	*text = '\0';
	for (size_t i = 0; i < s->n_label && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s", i ? ", " : "", s->label[i]);
	return text;
}

static const char *uids_say(const uint32_t *uid, size_t n, char *text, size_t size)
{
	size_t at = 0;
	for (size_t i = 0; i < n && i < UIDS_SAID && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%u", i ? ", " : "uid ", uid[i]);
	if (n > UIDS_SAID && at < size)
		snprintf(text + at, size - at, " and %zu more", n - UIDS_SAID);
	return text;
}

static bool is_by_cgroup(const Mperf__RunSelection *s)
{
	for (size_t i = 0; i < s->n_label; i++)
		if (label_is_of_cgroup(s->label[i]))
			return true;
	return false;
}

static int fail_nothing(const struct comparing *c, const Mperf__RunSelection *s, const char *labels,
	const char *uids, const struct found_runs *found)
{
	char remedy[sizeof(c->error->remedy)];
	if (found->n_unfinished)
		snprintf(remedy, sizeof(remedy),
			"%zu have not ended: wait, or end them with `mperfctl job end --pid`; "
			"`mperfctl job` lists them.",
			found->n_unfinished);
	else if (is_by_cgroup(s))
		snprintf(remedy, sizeof(remedy),
			"Processes without a job's labels form no runs. 'job-environment = "
			"run=INVOCATION_ID' in mperf.conf makes a job of each start of a unit; "
			"those "
			"of another user need user=NAME.");
	else
		snprintf(remedy, sizeof(remedy),
			"See which jobs there are: mperfctl hotspots --since -1d --by job. Those "
			"of another user need user=NAME.");
	return query_fail(c->error, MPERF__FAILURE_KIND__FAILURE_MISSING, remedy,
		"no job of %s with %.300s has ended and has samples in the store", uids, labels);
}

static void note_found(struct comparing *c, bool candidate, const char *labels, const char *uids,
	const struct found_runs *found)
{
	size_t n[N_TIERS] = {0};
	for (size_t i = 0; i < found->n; i++)
		n[found->run[i].coarsest]++;
	note(c, "%s: %zu run%s of %s with %.300s", side_begins(candidate), found->n,
		found->n == 1 ? "" : "s", uids, labels);
	if (found->n_unfinished)
		note(c, "Left out, since %s not ended: %zu of the %s, as '%.300s'",
			found->n_unfinished == 1 ? "it has" : "they have", found->n_unfinished,
			side_says(candidate), found->unfinished);
	if (n[TIER_MINUTE])
		note(c,
			"%zu of these runs of the %s are kept, wholly or in part, as sums of "
			"minutes: threads and lines are gone",
			n[TIER_MINUTE], side_says(candidate));
	if (n[TIER_HOUR])
		note(c,
			"%zu of these runs of the %s are kept, wholly or in part, as sums of "
			"hours: small functions are one, and the order of runs in an hour is lost",
			n[TIER_HOUR], side_says(candidate));
}

static int choose_jobs(struct comparing *c, bool candidate, const Mperf__RunSelection *s)
{
	const uint32_t own = c->q->filter.uid;
	struct found_runs found = {0};
	char labels[NOTE_BYTES], uids[200];
	const struct runs_wish wish = {.label = (const char *const *)s->label,
		.n_labels = s->n_label,
		.uid = s->n_uid ? s->uid : &own,
		.n_uids = s->n_uid ? s->n_uid : 1,
		.since_ns = s->since_ns,
		.until_ns = end_of(c, s),
		.last = s->last,
		.without = c->q->filter.without,
		.n_without = c->q->filter.n_without,
		.alive = c->known->alive,
		.n_alive = c->known->n_alive};
	int r = runs_find(c->q->source, c->q->n_sources, &wish, &found, c->error);
	if (r != 0)
		return r;
	selection_says(s, labels, sizeof(labels));
	uids_say(wish.uid, wish.n_uids, uids, sizeof(uids));
	if (found.n == 0)
		r = fail_nothing(c, s, labels, uids, &found);
	else
		note_found(c, candidate, labels, uids, &found);
	for (size_t i = 0; i < found.n && r == 0; i++)
		r = choose(c, candidate, s, &found.run[i]);
	found_runs_clear(&found);
	return r;
}

static int choose_side(struct comparing *c, bool candidate, Mperf__RunSelection *const *s, size_t n)
{
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = s[i]->n_label ? choose_jobs(c, candidate, s[i])
				  : choose_stretch(c, candidate, s[i]);
	return r;
}

/* --- gathering -------------------------------------------------------------------------------- */

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Find the files that have a part of the run, with the time range of that part. at[i] is the origin
 * of source i. */
static size_t sources_of(const struct comparing *c, const struct found_run *run,
	struct query_source *source, size_t *at)
{
	size_t n = 0;
	for (size_t i = 0; i < c->q->n_sources; i++) {
		struct query_source s = c->q->source[i];
		s.since_ns = later(s.since_ns, run->first_ns);
		s.until_ns = earlier(s.until_ns, run->until_ns);
		if (s.since_ns >= s.until_ns ||
			(s.outcome != QUERY_READ && s.outcome != QUERY_WITHOUT))
			continue;
		at[n] = i;
		source[n++] = s;
	}
	return n;
}

static int gather_one(struct comparing *c, const struct chosen *chosen)
{
	const size_t n_all = c->q->n_sources;
	_cleanup_(freep) struct query_source *source = calloc(n_all + 1, sizeof(*source));
	_cleanup_(freep) size_t *at = calloc(n_all + 1, sizeof(*at));
	struct query_filter filter = c->q->filter;
	const size_t n_labels = filter.n_labels + chosen->of->n_label;
	_cleanup_(freep) const char **label = calloc(n_labels + 1, sizeof(*label));
	struct query_question question = c->q->query;
	struct query_error error = {"", "", 0};
	if (!source || !at || !label)
		return -ENOMEM;
	for (size_t i = 0; i < n_labels; i++)
		label[i] = i < filter.n_labels ? filter.label[i]
					       : chosen->of->label[i - filter.n_labels];
	question.filter = &filter;
	filter.label = label;
	filter.n_labels = n_labels;
	filter.job = chosen->run.job;
	filter.n_jobs = chosen->run.n_jobs;
	const size_t n = sources_of(c, &chosen->run, source, at);
	int r = gather_store_run(
		c->gather, chosen->candidate, chosen->run.begin_ns, source, n, &question, &error);
	for (size_t i = 0; i < n; i++) {
		c->q->source[at[i]].verified = source[i].verified;
		c->q->source[at[i]].is_verified_anew |= source[i].is_verified_anew;
		c->q->source[at[i]].outcome = source[i].outcome;
		c->q->source[at[i]].live = source[i].live;
	}
	if (r == GATHER_FULL)
		return query_fail(c->error, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			COMPARE_TOO_MANY_REMEDY,
			"the runs have more than %u rows, or values in them", GATHER_ROWS_MAX);
	if (r == QUERY_FAILED)
		return query_fail(c->error, error.kind, error.remedy, "%.200s: %.280s",
			chosen->run.says, error.text);
	return r;
}

static int gather_all(struct comparing *c)
{
	struct row_stream *stream = c->to->userdata;
	int r = 0;
	for (size_t i = 0; i < c->n && r == 0; i++) {
		r = request_progress(stream->request, "reading runs", i, c->n);
		if (r == 0)
			r = gather_one(c, &c->chosen[i]);
	}
	return r;
}

/* --- answering -------------------------------------------------------------------------------- */

#define RUN_TABLE(COLUMN, KNOWN_IF)                                                                \
	COLUMN(side, "Side", text, side_says(of->candidate))                                       \
	COLUMN(run, "Run", text, of->run.says)                                                     \
	KNOWN_IF(uid, "User", number, of->run.n_jobs, of->run.uid)                                 \
	COLUMN(begin, "Begin", time, of->run.begin_ns)                                             \
	COLUMN(samples, "Samples", count, s.samples)                                               \
	COLUMN(ns, "Time", ns, s.ns + 0.5)                                                         \
	COLUMN(hz, "Rate", hz, s.hz)                                                               \
	COLUMN(rung, "Rung", text, s.rung)                                                         \
	COLUMN(kept, "Kept as", text, tier_name(of->run.coarsest))

static int tell_runs(const struct comparing *c)
{
	int r = TABLE_BEGIN(c->to, "run", RUN_TABLE);
	for (size_t i = 0; i < c->n && r == 0; i++) {
		const struct chosen *of = &c->chosen[i];
		const struct gathered_source s = gather_source(c->gather, i);
		r = TABLE_ROW(c->to, RUN_TABLE);
	}
	return r;
}

static int tell_notes(const struct comparing *c)
{
	struct answer_provenance p = {
		.event = "", .rung = "", .switches = "", .n_notes = c->n_notes};
	for (uint32_t i = 0; i < c->n_notes; i++)
		p.note[i] = c->note[i];
	return c->to->provenance(c->to->userdata, &p);
}

static int answer(struct comparing *c)
{
	_cleanup_(freep) const char **name = calloc(c->n + 1, sizeof(*name));
	if (!name)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++)
		name[i] = c->chosen[i].run.says;
	const struct compare_sides sides = {.asked = c->m,
		.is_gate = c->is_gate,
		.gather = c->gather,
		.name = name,
		.n_side = {c->n_side[0], c->n_side[1]}};
	int r = compare_answer(&sides, c->to, &c->q->status, c->error);
	char says[NOTE_BYTES];
	for (size_t i = 0; compare_value_note(c->gather, c->n, i, says, sizeof(says)); i++)
		note(c, "%s", says);
	if (r == 0)
		r = tell_runs(c);
	return r == 0 ? tell_notes(c) : r;
}

int compare_runs_answer(struct question *q, const Mperf__CompareRequest *m, bool is_gate,
	const struct answer *to, struct query_error *ret_error)
{
	struct comparing c = {.q = q,
		.to = to,
		.error = ret_error,
		.m = m,
		.known = q->known,
		.is_gate = is_gate};
	int r = gather_new(gather_by_parse(*m->by ? m->by : "function"), &c.gather);
	if (r == 0)
		r = choose_side(&c, false, m->baseline_run, m->n_baseline_run);
	if (r == 0)
		r = choose_side(&c, true, m->candidate_run, m->n_candidate_run);
	if (r == 0)
		r = gather_all(&c);
	if (r == 0)
		r = answer(&c);
	for (size_t i = 0; i < c.n; i++)
		found_run_clear(&c.chosen[i].run);
	free(c.chosen);
	gather_free(c.gather);
	return r;
}
