/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* One pass over the live tasks, some 50 ns each: nothing is kept of a process, so nothing of it can be
 * stale. Where there are many tasks and a pass takes long, passes are rarer. */

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

/* Jobs of a kind that is watched no longer are over. */
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

/* Its job; NULL: none yet, since what belongs to a user is known by a process that wholly does. */
static struct watched_job *see_labels(
	struct job_watch *j, const struct task *process, uint64_t now_ns, bool *ret_is_new)
{
	char key[32]; /* no path, and an id is never given again */
	const struct label_set *labels = process->labels;
	bool is_new = false, is_users = labels->uid == 0 || process->uid == labels->uid;
	struct watched_job *job;
	*ret_is_new = false;
	size_t n = (size_t)snprintf(key, sizeof(key), "%u", labels->id);
	HASH_FIND(hh, j->job, key, n, job);
	if (!job && is_users)
		job = job_get(j, key, n, &is_new);
	if (!job)
		return NULL;
	job->seen_ns = now_ns;
	if (!is_new)
		return job;
	*ret_is_new = true;
	job->labels = label_set_ref(process->labels);
	job->uid = labels->uid;
	job->gid = process->gid;
	job->is_new = true;
	job->is_old = !j->has_labels;
	return job;
}

struct watched_job *job_watch_meet(struct job_watch *j, const struct task *process, uint64_t now_ns)
{
	bool is_new;
	if (!j->labels || !j->has_labels || !process->labels)
		return NULL;
	struct watched_job *job = see_labels(j, process, now_ns, &is_new);
	return is_new ? job : NULL;
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

/* Before a look: what the one before found is new no longer, and what is over goes. */
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

/* After it: looks may be rare, so what counts is for how long they have found nobody. */
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
	/* neighbours in the table often have the same */
	const struct label_set *labels = NULL;
	uint64_t cgroup = 0;
	bool is_new;
	if ((!j->labels && !j->units) || now_ns < j->next_look_ns)
		return false;
	uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	forget(j, w);
	for (const struct task *t = w->tasks.live; t; t = t->hh.next) {
		if (j->labels && t->process == t && t->labels && t->labels != labels &&
			see_labels(j, t, now_ns, &is_new))
			labels = t->labels;
		/* of threads too: a process is known to have moved when one of them was sampled */
		if (j->units && !t->kernel_thread && t->cgroup && t->cgroup != cgroup)
			see_unit(j, w, t, now_ns);
		cgroup = t->cgroup;
	}
	miss(j, now_ns);
	j->has_labels = j->labels;
	j->has_units = j->units;
	j->next_look_ns = now_ns + JOB_WATCH_PART * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
	return true;
}
