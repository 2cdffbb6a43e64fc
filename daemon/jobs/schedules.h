/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Schedules: recordings of the service without a waiting client
 *
 *      jobs that begin (job_watch.h) ─▶ draw ─┐
 *      a timer's request ────────────────────┴▶ allowed? ─▶ a tap on the walk ─▶ schedules/NAME/….mprf
 *                                                   └─ no ─▶ skipped, and why (runs_log.h)
 *
 * A run uses the samples that the service takes anyway; a higher rate must fit into the budget of
 * mperf.conf. The number of runs at once, in total and of a user, their time, count and bytes are
 * limited.
 *
 * A job with labels belongs to its user: its recording contains only processes that belong wholly
 * to that user, who may read it. Only root and the group may read recordings of units and times.
 */

#include "daemon/budget/overhead.h"
#include "daemon/conf/conf.h"
#include "daemon/jobs/job_watch.h"
#include "daemon/jobs/runs_log.h"
#include "proto/syntax/schedule.h"

/* Limit of runs at once. Each checks every sample and writes a file, as recordings of clients do
 * (RECORDINGS_MAX). */
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
		n_drawn; /* jobs that matched since mperfd started; and how many of them the share
			  * chose */
};

struct schedule_run;

struct schedules {
	struct schedules_options o;
	struct schedule_list list;
	struct schedule_count count[SCHEDULES_MAX]; /* of each */
	struct runs_log log;
	uint32_t
		log_serial; /* grows when another store's log replaces this one, since ids belong to
			     * one log */
	char *path; /* of the runs: the folder `schedules` of the store; NULL: not opened yet */
	struct job_watch jobs;
	struct schedule_run *run[RUNS_AT_ONCE_MAX];
	size_t n_runs;
	bool said_full; /* a warning was logged that the log cannot be written */
};

/* Read the drop-ins and the log. 0 or -ENOMEM. */
int schedules_new(const struct schedules_options *o, struct schedules **ret_schedules);
/* Read the drop-ins again; running recordings keep their schedules. w NULL: nothing is sampled. 0
 * or -ENOMEM. */
int schedules_reload(struct schedules *s, struct walk *w);
/* After the walk's dispatch: begin, continue and end runs. 0 or -errno. */
int schedules_dispatch(struct schedules *s, struct walk *w, uint64_t now_ns);
/* When there is more to write: 0, else UINT64_MAX. */
uint64_t schedules_deadline_ns(const struct schedules *s);
/* Call when the process of that pid was given labels: begin runs of its job before it continues. 0
 * or -errno. */
int schedules_job_began(struct schedules *s, struct walk *w, pid_t pid, uint64_t now_ns);
/* End all runs and seal their recordings. */
void schedules_stop(struct schedules *s);
/* w: as in schedules_reload. */
struct schedules *schedules_free(struct schedules *s, struct walk *w);

/* Begin a run of the schedule of that name, which must have a time: its id, for runs_log_find, also if it
 * was skipped. 0; SCHEDULES_UNKNOWN; SCHEDULES_OF_JOBS; SCHEDULES_GOES_ON: it has not ended yet;
 * -errno. */
enum { SCHEDULES_UNKNOWN = 1, SCHEDULES_OF_JOBS, SCHEDULES_GOES_ON };
int schedules_begin(
	struct schedules *s, struct walk *w, const char *name, uint64_t now_ns, uint64_t *ret_id);
/* End that run now, for this reason; its recording is kept. No effect if it has ended. */
void schedules_end(struct schedules *s, uint64_t id, const char *why);
/* Samples of a run so far; 0 if there is no such run. */
uint64_t schedules_samples(const struct schedules *s, uint64_t id);
