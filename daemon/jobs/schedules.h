/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Schedules: recordings of the service that nobody waits for
 *
 *      jobs that begin (job_watch.h) ─▶ draw ─┐
 *      a timer's request ────────────────────┴▶ allowed? ─▶ a tap on the walk ─▶ schedules/NAME/….mprf
 *                                                   └─ no ─▶ skipped, and why (runs_log.h)
 *
 * A run takes the samples that the service takes anyway; for a higher rate it asks within the budget of
 * mperf.conf. Runs at once, those of a user, their time, number and bytes are limited.
 *
 * A job of labels is its user's: its recording has only what belongs wholly to that user, who may read
 * it. The recording of a unit or of a time is for root and the group.
 */

#include "daemon/budget/overhead.h"
#include "daemon/conf/conf.h"
#include "daemon/jobs/job_watch.h"
#include "daemon/jobs/runs_log.h"
#include "proto/syntax/schedule.h"

/* Runs at once. Each looks at every sample and writes a file, as recordings of clients do (RECORDINGS_MAX). */
#define RUNS_AT_ONCE_MAX 16
/* Runs at once of jobs of users other than root, so that some are left for units, times and root; and of one user. */
#define RUNS_AT_ONCE_USERS_MAX 12
#define RUNS_AT_ONCE_USER_MAX 4

struct schedules_options {
	const char *folder;              /* of drop-ins; borrowed */
	const struct conf *conf;         /* borrowed */
	const struct overhead *overhead; /* borrowed */
	/* service_want_rate and service_held, with their owner. */
	int (*want_rate)(void *owner, const void *who, uint32_t hz, uint32_t overhead_ppm);
	const struct overhead_held *(*held)(void *owner, const void *who);
	void *owner;
	void (*say)(void *userdata, int syslog_level, const char *text);
	void *userdata;
};

struct schedule_count {
	uint64_t n_jobs,
		n_drawn; /* that matched since mperfd began; and of them those that the share took */
};

struct schedule_run;

struct schedules {
	struct schedules_options o;
	struct schedule_list list;
	struct schedule_count count[SCHEDULES_MAX]; /* of each */
	struct runs_log log;
	uint32_t
		log_serial; /* grows when another store's log takes its place: ids are of one log */
	char *path; /* of the runs: the folder `schedules` of the store; NULL: not opened yet */
	struct job_watch jobs;
	struct schedule_run *run[RUNS_AT_ONCE_MAX];
	size_t n_runs;
	bool said_full; /* that the log cannot be written */
};

/* Read the drop-ins and the log. 0 or -ENOMEM. */
int schedules_new(const struct schedules_options *o, struct schedules **ret_schedules);
/* Read the drop-ins again; runs that go on keep to what they began with. w NULL: nothing is sampled.
 * 0 or -ENOMEM. */
int schedules_reload(struct schedules *s, struct walk *w);
/* After the walk's dispatch: begin, go on with and end runs. 0 or -errno. */
int schedules_dispatch(struct schedules *s, struct walk *w, uint64_t now_ns);
/* When there is more to write: 0, else UINT64_MAX. */
uint64_t schedules_deadline_ns(const struct schedules *s);
/* The process of that pid has just been given labels: begin runs of its job before it goes on. 0 or
 * -errno. */
int schedules_job_began(struct schedules *s, struct walk *w, pid_t pid, uint64_t now_ns);
/* End all runs and seal what they have. */
void schedules_stop(struct schedules *s);
/* w: as in schedules_reload. */
struct schedules *schedules_free(struct schedules *s, struct walk *w);

/* Begin a run of the schedule of that name, which must have a time: its id, for runs_log_find, also if it
 * was skipped. 0; SCHEDULES_UNKNOWN; SCHEDULES_OF_JOBS; SCHEDULES_GOES_ON: it has not ended yet;
 * -errno. */
enum { SCHEDULES_UNKNOWN = 1, SCHEDULES_OF_JOBS, SCHEDULES_GOES_ON };
int schedules_begin(
	struct schedules *s, struct walk *w, const char *name, uint64_t now_ns, uint64_t *ret_id);
/* End that run now, and why; its recording is kept. Nothing happens if it has ended. */
void schedules_end(struct schedules *s, uint64_t id, const char *why);
/* Samples that a run has so far; 0 also if there is none. */
uint64_t schedules_samples(const struct schedules *s, uint64_t id);
