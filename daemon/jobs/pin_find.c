/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/jobs/pin_find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/key.h"
#include "daemon/store/pin.h"
#include "daemon/store/segment/segment.h"
#include "proto/base/array.h"
#include "proto/base/memory.h"

/* Largest gap between two files of one job: storing may have paused (RETRY_NS of keeper.c), and the
 * start in a file's name is in seconds. */
#define GAP_NS 60000000000ll

DEFINE_CLEANUP(sqlite3 *, sqlite3_close)
DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)

/* One row a job; a task without an end is assumed to run to the end of the file. Times of tasks are
 * CLOCK_MONOTONIC; an instant in meta, and the windows, convert them to CLOCK_REALTIME. */
static const char jobs_text[] =
	"SELECT l.uid, l.labels, min(t.start_ns) + m.shift, "
	"max(coalesce(t.end_ns, m.end_ns)) + m.shift, m.boot "
	"FROM (SELECT (SELECT value FROM meta WHERE key = 'realtime_ns') - "
	"             (SELECT value FROM meta WHERE key = 'monotonic_ns') AS shift, "
	"      (SELECT value FROM meta WHERE key = 'boot_id') AS boot, "
	"      (SELECT max(end_ns) FROM window) AS end_ns) m, "
	"label_set l JOIN task_label_set s ON s.label_set = l.id JOIN task t ON t.id = s.task "
	"GROUP BY l.id";

static bool is_wanted(const struct pin_wanted *w, uint32_t uid, const char *labels)
{
	if (!w->all_users && uid != w->uid)
		return false;
	return w->exact ? strcmp(labels, w->exact) == 0
			: store_pin_matches(labels, w->label, w->n_labels);
}

static struct found_job *find(struct found_jobs *jobs, uint32_t uid, const char *labels)
{
	for (size_t i = 0; i < jobs->n; i++)
		if (jobs->job[i].uid == uid && strcmp(jobs->job[i].labels, labels) == 0)
			return &jobs->job[i];
	return NULL;
}

static int add(
	struct found_jobs *jobs, uint32_t uid, const char *labels, struct found_job **ret_job)
{
	if (jobs->n == PIN_FOUND_MAX)
		return -E2BIG;
	int r = array_grow(&jobs->job, &jobs->size, jobs->n + 1, sizeof(*jobs->job));
	char *copy = r == 0 ? strdup(labels) : NULL;
	if (!copy)
		return -ENOMEM;
	jobs->job[jobs->n] = (struct found_job){.uid = uid, .labels = copy, .start_ns = INT64_MAX};
	*ret_job = &jobs->job[jobs->n++];
	return 0;
}

static int add_source(struct found_job *job, const char *path)
{
	int r = array_grow(&job->source, &job->size, job->n_sources + 1, sizeof(*job->source));
	char *copy = r == 0 ? strdup(path) : NULL;
	if (!copy)
		return -ENOMEM;
	job->source[job->n_sources++] = copy;
	return 0;
}

static int take(
	struct found_jobs *jobs, const struct pin_wanted *w, sqlite3_stmt *q, const char *path)
{
	uint32_t uid = (uint32_t)sqlite3_column_int64(q, 0);
	const char *labels = (const char *)sqlite3_column_text(q, 1);
	const char *boot = (const char *)sqlite3_column_text(q, 4);
	if (!labels || !boot || !is_wanted(w, uid, labels))
		return 0;
	struct found_job *job = find(jobs, uid, labels);
	int r = job ? 0 : add(jobs, uid, labels, &job);
	if (r < 0)
		return r;
	int64_t start_ns = sqlite3_column_int64(q, 2), end_ns = sqlite3_column_int64(q, 3);
	/* files are sorted by their start: a job with these labels in an earlier boot is another
	 * run */
	if (strcmp(job->boot_id, boot) != 0) {
		while (job->n_sources > 0)
			free(job->source[--job->n_sources]);
		job->start_ns = INT64_MAX;
		snprintf(job->boot_id, sizeof(job->boot_id), "%s", boot);
	}
	job->start_ns = start_ns < job->start_ns ? start_ns : job->start_ns;
	job->end_ns = end_ns > job->end_ns ? end_ns : job->end_ns;
	return add_source(job, path);
}

/* 0; LOOK_UNREAD: some or all of the file cannot be read now; -ENOMEM. A damaged file has no jobs,
 * nor has a file without these tables, from a version without labels. */
enum { LOOK_UNREAD = 1 };
static int outcome_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
	case SQLITE_ERROR:
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return 0;
	default:
		return (rc & 0xff) == SQLITE_NOMEM ? -ENOMEM : LOOK_UNREAD;
	}
}

/* Read the jobs of one file. Returns as outcome_of does; or -E2BIG. */
static int look(struct found_jobs *jobs, const struct pin_wanted *w, const char *path)
{
	struct segment_error error;
	_cleanup_(sqlite3_closep) sqlite3 *db = NULL;
	_cleanup_(sqlite3_finalizep) sqlite3_stmt *q = NULL;
	int r = segment_open_live(path, &db, &error);
	if (r == SEGMENT_HELD || r == SEGMENT_REFUSED || (r < 0 && r != -ENOMEM))
		return LOOK_UNREAD;
	if (r != 0)
		return r < 0 ? r : 0;
	int rc = sqlite3_prepare_v2(db, jobs_text, -1, &q, NULL);
	if (rc != SQLITE_OK)
		return outcome_of(rc);
	while (r == 0 && (rc = sqlite3_step(q)) == SQLITE_ROW)
		r = take(jobs, w, q, path);
	return r == 0 ? outcome_of(rc) : r;
}

/* Mark jobs that may have samples in this file as incomplete. */
static void note_unread(struct found_jobs *jobs, const struct store_file *f)
{
	jobs->any_unread = true;
	for (size_t i = 0; i < jobs->n; i++) {
		struct found_job *job = &jobs->job[i];
		job->is_partly_unread |= job->end_ns >= f->start_ns - GAP_NS &&
					 (f->end_ns == 0 || job->start_ns <= f->end_ns + GAP_NS);
	}
}

static int latest_first(const void *a, const void *b)
{
	const struct found_job *x = a, *y = b;
	return x->end_ns != y->end_ns ? (x->end_ns < y->end_ns ? 1 : -1)
				      : (x->start_ns < y->start_ns) - (x->start_ns > y->start_ns);
}

int pin_find(const struct store *s, const struct pin_wanted *w, struct found_jobs *ret_jobs)
{
	struct found_jobs jobs = {0};
	_cleanup_(freep) bool *unread = calloc(s->n_files + 1, sizeof(*unread));
	int r = unread ? 0 : -ENOMEM;
	for (size_t i = 0; i < s->n_files && r == 0; i++) {
		const struct store_file *f = &s->file[i];
		_cleanup_(freep) char *path = NULL;
		if (f->tier != TIER_WINDOW || f->corrupt || f->other_version)
			continue;
		if (asprintf(&path, "%s/%s", s->path, f->name) < 0) {
			path = NULL;
			r = -ENOMEM;
		} else
			r = look(&jobs, w, path);
		unread[i] = r == LOOK_UNREAD;
		r = r == LOOK_UNREAD ? 0 : r;
	}
	for (size_t i = 0; i < s->n_files && r == 0; i++)
		if (unread[i])
			note_unread(&jobs, &s->file[i]);
	if (r < 0) {
		found_jobs_clear(&jobs);
		return r;
	}
	if (jobs.n > 0)
		qsort(jobs.job, jobs.n, sizeof(*jobs.job), latest_first);
	*ret_jobs = jobs;
	return 0;
}

void found_jobs_clear(struct found_jobs *jobs)
{
	for (size_t i = 0; i < jobs->n; i++) {
		while (jobs->job[i].n_sources > 0)
			free(jobs->job[i].source[--jobs->job[i].n_sources]);
		free(jobs->job[i].source);
		free(jobs->job[i].labels);
	}
	free(jobs->job);
	*jobs = (struct found_jobs){0};
}
