/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * job report: the latest run of a selection, also one that has not ended, or the command of a recording. Runs are found
 * and read as diff and gate do it.
 */
#include "daemon/control/job_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/peer.h"
#include "daemon/control/run_selection.h"
#include "daemon/query/load.h"
#include "daemon/query/processes/report.h"
#include "daemon/query/runs.h"
#include "daemon/service/service.h"
#include "proto/base/memory.h"

#define SELECTION_BYTES 512

/* "branch=main, job=bench" */
static const char *selection_says(const Mperf__RunSelection *s, char *text, size_t size)
{
	size_t at = 0;
	*text = '\0';
	for (size_t i = 0; i < s->n_label && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%s", i ? ", " : "", s->label[i]);
	return text;
}

/* --- a recording ------------------------------------------------------------------------------ */

static int report_file(struct question *a, const struct answer *to, struct query_error *ret_error)
{
	const Mperf__RunSelection *run = a->request->job->run;
	char labels[SELECTION_BYTES], says[SELECTION_BYTES + 300];
	const char *name = strrchr(a->path[0], '/');
	name = name ? name + 1 : a->path[0];
	if (run && run->n_label > 0)
		snprintf(says, sizeof(says), "%s in %.255s",
			selection_says(run, labels, sizeof(labels)), name);
	else
		snprintf(says, sizeof(says), "the command in %.255s", name);
	a->filter.label = run ? (const char *const *)run->label : NULL;
	a->filter.n_labels = run ? run->n_label : 0;
	const struct report_of of = {.says = says, .is_recording = true};
	return query_report(a->source, a->n_sources, &a->query, &of, to, ret_error);
}

/* --- the store -------------------------------------------------------------------------------- */

static int fail_nothing(const Mperf__RunSelection *run, struct query_error *ret_error)
{
	char labels[SELECTION_BYTES];
	return query_fail(ret_error, MPERF__FAILURE_KIND__FAILURE_MISSING,
		"See which jobs there are: mperfctl hotspots --since -1d --by job. Those of "
		"another user "
		"need user=NAME.",
		"the store has no job %s%.300s",
		run->n_uid ? "of these users with " : "of yours with ",
		selection_says(run, labels, sizeof(labels)));
}

/* Is a process of the run alive? */
static bool is_alive(const struct known_runs *known, const struct found_run *run)
{
	for (size_t i = 0; i < known->n_alive; i++)
		for (size_t k = 0; k < run->n_jobs; k++)
			if (known->alive[i].uid == run->job[k].uid &&
				strcmp(known->alive[i].labels, run->job[k].labels) == 0)
				return true;
	return false;
}

/* Copy the sources with a part of the run into `part`, and their indices into `at`. Returns their number. */
static size_t sources_of(const struct question *a, const struct found_run *run,
	struct query_source *part, size_t *at)
{
	size_t n = 0;
	for (size_t i = 0; i < a->n_sources; i++) {
		struct query_source s = a->source[i];
		if (s.outcome != QUERY_READ && s.outcome != QUERY_WITHOUT)
			continue;
		if (s.since_ns < run->first_ns)
			s.since_ns = run->first_ns;
		if (s.until_ns == 0 || s.until_ns > run->until_ns)
			s.until_ns = run->until_ns;
		if (s.since_ns >= s.until_ns)
			continue;
		at[n] = i;
		part[n++] = s;
	}
	return n;
}

static int report_run(struct question *a, const struct found_run *run, const struct answer *to,
	struct query_error *ret_error)
{
	_cleanup_(freep) struct query_source *part = calloc(a->n_sources + 1, sizeof(*part));
	_cleanup_(freep) size_t *at = calloc(a->n_sources + 1, sizeof(*at));
	const struct report_of of = {
		.says = run->says,
		.begin_ns = run->begin_ns,
		.begin_boot_ns = run->begin_boot_ns,
		.unfinished = is_alive(a->known, run),
	};
	if (!part || !at)
		return -ENOMEM;
	a->filter.label = (const char *const *)a->request->job->run->label;
	a->filter.n_labels = a->request->job->run->n_label;
	a->filter.job = run->job;
	a->filter.n_jobs = run->n_jobs;
	const size_t n = sources_of(a, run, part, at);
	int r = query_report(part, n, &a->query, &of, to, ret_error);
	for (size_t i = 0; i < n; i++) {
		a->source[at[i]].verified = part[i].verified;
		a->source[at[i]].is_verified_anew |= part[i].is_verified_anew;
		a->source[at[i]].outcome = part[i].outcome;
	}
	return r;
}

static int report_store(struct question *a, const struct answer *to, struct query_error *ret_error)
{
	const Mperf__RunSelection *s = a->request->job->run;
	const struct known_runs *known = a->known;
	const uint32_t own = a->filter.uid;
	struct found_runs found = {0};
	const struct runs_wish wish = {.label = (const char *const *)s->label,
		.n_labels = s->n_label,
		.uid = s->n_uid ? s->uid : &own,
		.n_uids = s->n_uid ? s->n_uid : 1,
		.since_ns = s->since_ns,
		.until_ns = s->until_ns && s->until_ns < known->until_ns ? s->until_ns
									 : known->until_ns,
		.last = 1,
		.without = a->filter.without,
		.n_without = a->filter.n_without,
		.unfinished = true};
	int r = runs_find(a->source, a->n_sources, &wish, &found, ret_error);
	if (r == 0 && found.n == 0)
		r = fail_nothing(s, ret_error);
	if (r == 0)
		r = report_run(a, &found.run[found.n - 1], to, ret_error);
	found_runs_clear(&found);
	return r;
}

/* ---------------------------------------------------------------------------------------------- */

static size_t labels_of(const Mperf__Request *m, size_t i, char *const **ret_label)
{
	if (i > 0)
		return 0;
	*ret_label = m->job->run->label;
	return m->job->run->n_label;
}

static int check_run(struct request *q, const Mperf__RunSelection *run)
{
	if (run && run->n_label > 0)
		return run_selection_check(q, run);
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
		       "Name it: mperfctl job report NAME.", "a report is of one job")
		       ?: 1;
}

static int make(struct request *q, struct question *a)
{
	const Mperf__JobRequest *m = a->request->job;
	question_about(q, a, &m->path, NULL);
	a->query.limit = m->limit;
	a->coarsest = STORE_FINEST_FIRST;
	if (!question_is_of_store(q, a)) {
		a->run = report_file;
		return m->run && m->run->n_label > 0 ? run_selection_check(q, m->run) : 0;
	}
	a->all_time = a->fresh = true;
	a->labels = labels_of;
	a->know = run_selection_know;
	a->forget = run_selection_forget;
	a->run = report_store;
	return check_run(q, m->run);
}

int job_report(struct request *q, const Mperf__Request *request)
{
	return question_ask(q, request, make);
}
