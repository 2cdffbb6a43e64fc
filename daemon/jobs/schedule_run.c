/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* One run: a recording into its own file, with the targets of its job. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/schedules_private.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

static struct targets targets_of(const struct schedule_run_options *o)
{
	const struct watched_job *job = o->job;
	struct targets t = {.all = true, .tasks = &o->walk->tasks};
	if (job && job->labels) {
		t.labels = job->labels;
		t.only_uid = job->uid != 0;
		t.uid = job->uid;
		t.gid = job->gid;
	} else if (job) {
		t.cgroup = job->key;
	}
	return t;
}

static int start(struct schedule_run *run, const struct schedule_run_options *o)
{
	char title[RUN_JOB_BYTES + 32];
	if (o->job)
		snprintf(title, sizeof(title), "%s %s", o->job->labels ? "job" : "unit",
			o->entry->job);
	else
		snprintf(title, sizeof(title), "the whole system, by schedule %s",
			o->schedule->name);
	const struct targets targets = targets_of(o);
	const struct recording_options recording = {
		.walk = o->walk,
		.shared = true,
		.targets = targets,
		.hide_kernel = targets.only_uid,
		.no_callers = !o->schedule->callers,
		.window_ns = o->conf->flush_ns,
		.command = title,
		.path = o->path,
		.hz = o->schedule->hz ? o->schedule->hz : o->conf->rate,
	};
	struct event_error error = {""};
	int r = recording_new(&recording, &run->recording, &error);
	if (r > 0)
		snprintf(o->entry->why, RUN_WHY_BYTES, "%.*s", RUN_WHY_BYTES - 1, error.text);
	return r > 0 ? SCHEDULE_RUN_FAILED : r;
}

int schedule_run_new(const struct schedule_run_options *o, struct schedule_run **ret_run)
{
	struct schedule_run *run = calloc(1, sizeof(*run));
	if (!run)
		return -ENOMEM;
	run->schedule = *o->schedule;
	run->id = o->entry->id;
	run->job = o->job;
	run->uid = o->entry->uid;
	if (run->job)
		run->job->n_users++;
	run->until_ns = o->now_ns + o->schedule->duration_ns;
	int r = start(run, o);
	if (r != 0) {
		schedule_run_free(run);
		return r;
	}
	*ret_run = run;
	return 0;
}

int schedule_run_finish(
	struct schedule_run *run, enum run_outcome outcome, const char *why, uint64_t now_ns)
{
	if (run->finishing)
		return 0;
	run->finishing = true;
	run->outcome = outcome;
	snprintf(run->why, sizeof(run->why), "%s", why);
	return recording_finish(run->recording, now_ns);
}

int schedule_run_dispatch(struct schedule_run *run, uint64_t now_ns)
{
	struct recording_state state;
	int r = recording_dispatch(run->recording, now_ns);
	if (r == RECORDING_SEALED)
		return SCHEDULE_RUN_OVER;
	if (r != RECORDING_LOST_STORE)
		return r;
	recording_state(run->recording, &state);
	run->outcome = RUN_FAILED;
	run->end_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	snprintf(run->why, sizeof(run->why), "its samples cannot be stored: %s",
		state.outcome == SEGMENT_NO_SPACE ? "no space is left"
		: state.outcome < 0               ? strerror(-state.outcome)
						  : "its file accepts no more writes");
	return SCHEDULE_RUN_OVER;
}

struct schedule_run *schedule_run_free(struct schedule_run *run)
{
	if (!run)
		return NULL;
	recording_free(run->recording);
	if (run->job)
		run->job->n_users--;
	free(run);
	return NULL;
}
