/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Each scan goes through the sets of labels, which know their live processes, and, for units,
 * through all live tasks, some 50 ns each. It stores nothing about a process, so nothing can become
 * stale. If scans take long, they are made less often. */

#include "daemon/jobs/job_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* Source: systemd 257, src/basic/cgroup-util.c, cg_path_get_unit and skip_slices: slices are the
 * components that end so, and a leading _ escapes a name. */
#define SLICE ".slice"

static bool is_slice(const char *name, size_t n)
{
	size_t n_slice = sizeof(SLICE) - 1;
	return n > n_slice && memcmp(name + n - n_slice, SLICE, n_slice) == 0;
}

size_t job_watch_unit(const char *path, const char **ret_unit)
{
	while (*path == '/') {
		const char *name = path + 1;
		size_t n = strcspn(name, "/");
		path = name + n;
		if (is_slice(name, n))
			continue;
		if (n > 1 && *name == '_') {
			name++;
			n--;
		}
		/* a control group of another kind has no type behind a dot */
		if (n < 3 || *name == '.' || !memchr(name, '.', n))
			return 0;
		*ret_unit = name;
		return n;
	}
	return 0;
}

/* --- the table -------------------------------------------------------------------------------- */

static void job_free(struct job_watch *j, struct walk *w, struct watched_job *job)
{
	HASH_DEL(j->job, job);
	if (w)
		(void)label_set_unref(&w->tasks.label_sets, job->labels);
	free(job->key);
	free(job);
}

void job_watch_clear(struct job_watch *j, struct walk *w)
{
	struct watched_job *job, *next;
	for (job = j->job; job; job = next) {
		next = job->hh.next;
		job_free(j, w, job);
	}
	*j = (struct job_watch){.job = NULL};
}

/* End jobs of a kind that is no longer watched. */
void job_watch_set(struct job_watch *j, struct walk *w, bool labels, bool units)
{
	struct watched_job *job, *next;
	for (job = j->job; job; job = next) {
		next = job->hh.next;
		if (job->labels ? labels : units)
			continue;
		job->gone = true;
		if (job->n_users == 0)
			job_free(j, w, job);
	}
	j->has_labels &= labels;
	j->has_units &= units;
	j->labels = labels;
	j->units = units;
	j->next_look_ns = 0;
}

/* NULL: there is no room, or no memory. */
static struct watched_job *job_get(struct job_watch *j, const char *key, size_t n, bool *ret_is_new)
{
	struct watched_job *job;
	*ret_is_new = false;
	HASH_FIND(hh, j->job, key, n, job);
	if (job || HASH_COUNT(j->job) >= JOBS_WATCHED_MAX)
		return job;
	job = calloc(1, sizeof(*job));
	if (!job)
		return NULL;
	job->key = strndup(key, n);
	if (job->key)
		HASH_ADD_KEYPTR(hh, j->job, job->key, n, job);
	if (!job->key || !job->hh.tbl) {
		free(job->key);
		free(job);
		return NULL;
	}
	*ret_is_new = true;
	return job;
}

/* --- looking ---------------------------------------------------------------------------------- */

/* A process that wholly belongs to the user of these labels; NULL: there is none. */
static const struct task *whole_process(const struct label_set *labels)
{
	const struct task *process = labels->live;
	while (process && labels->uid != 0 && process->uid != labels->uid)
		process = process->labels_next;
	return process;
}

/* The job of labels that live processes have. True: it is new. */
static bool see_labels(struct job_watch *j, struct label_set *labels, uint64_t now_ns,
	struct watched_job **ret_job)
{
	char key[32]; /* it has no path, and ids are never reused */
	bool is_new = false;
	struct watched_job *job;
	const size_t n = (size_t)snprintf(key, sizeof(key), "%u", labels->id);
	HASH_FIND(hh, j->job, key, n, job);
	const struct task *process = job ? NULL : whole_process(labels);
	if (process)
		job = job_get(j, key, n, &is_new);
	if (job)
		job->seen_ns = now_ns;
	if (!is_new)
		return false;
	job->labels = label_set_hold(labels);
	job->uid = labels->uid;
	job->gid = process->gid;
	job->is_new = true;
	job->is_old = !j->has_labels;
	*ret_job = job;
	return true;
}

struct watched_job *job_watch_meet(struct job_watch *j, const struct task *process, uint64_t now_ns)
{
	struct watched_job *job = NULL;
	if (j->labels && j->has_labels && process->labels)
		(void)see_labels(j, process->labels, now_ns, &job);
	return job;
}

static void see_unit(
	struct job_watch *j, const struct walk *w, const struct task *task, uint64_t now_ns)
{
	const struct cgroup *in = cgroup_find(&w->tasks, task->cgroup);
	const char *unit;
	bool is_new;
	size_t n = in ? job_watch_unit(in->path, &unit) : 0;
	if (n == 0)
		return;
	struct watched_job *job = job_get(j, in->path, (size_t)(unit - in->path) + n, &is_new);
	if (!job)
		return;
	if (is_new) {
		job->unit = job->key + (unit - in->path);
		job->n_unit = n;
		job->is_new = true;
		job->is_old = !j->has_units;
	}
	job->seen_ns = now_ns;
}

/* Before a scan: jobs found by the previous one are no longer new; free jobs that have ended. */
static void forget(struct job_watch *j, struct walk *w)
{
	struct watched_job *job, *next;
	for (job = j->job; job; job = next) {
		next = job->hh.next;
		job->is_new = false;
		if (job->gone && job->n_users == 0)
			job_free(j, w, job);
	}
}

/* After a scan: a job has ended if scans have found no process for that long, since scans may be
 * rare. */
static void miss(struct job_watch *j, uint64_t now_ns)
{
	for (struct watched_job *job = j->job; job; job = job->hh.next) {
		if (job->seen_ns == now_ns)
			job->missed_ns = 0;
		else if (job->missed_ns == 0)
			job->missed_ns = now_ns;
		job->gone |= job->missed_ns && now_ns - job->missed_ns >= JOB_GONE_NS;
	}
}

bool job_watch_look(struct job_watch *j, struct walk *w, uint64_t now_ns)
{
	struct watched_job *job;
	uint64_t cgroup = 0; /* neighbours in the table often have the same */
	if ((!j->labels && !j->units) || now_ns < j->next_look_ns)
		return false;
	uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	forget(j, w);
	for (struct label_set *set = j->labels ? w->tasks.label_sets.set : NULL; set;
		set = set->hh.next)
		if (set->n_live > 0)
			(void)see_labels(j, set, now_ns, &job);
	/* check threads too: if a process moved to another group, we may have sampled only one of
	 * its threads since */
	for (const struct task *t = j->units ? w->tasks.live : NULL; t; t = t->hh.next) {
		if (!t->kernel_thread && t->cgroup && t->cgroup != cgroup)
			see_unit(j, w, t, now_ns);
		cgroup = t->cgroup;
	}
	miss(j, now_ns);
	j->has_labels = j->labels;
	j->has_units = j->units;
	j->next_look_ns = now_ns + JOB_WATCH_PART * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
	return true;
}
