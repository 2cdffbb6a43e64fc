/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Job watch: which jobs begin and end, for schedules
 *
 * A job is a set of labels that some process has (`mperfctl job run`, job-environment), or a unit of
 * the system's systemd that some process is in. Both are found by scanning live processes. A unit
 * is the first component of a control group's path that is not a slice, since only the system's
 * systemd can create it: units of a user's own systemd, and groups that a service makes below its
 * own, do not count.
 */

#include "daemon/session/walk.h"

/* Limit of jobs of both kinds; more are not watched. Label sets are limited, and a machine has some
 * hundred units. */
#define JOBS_WATCHED_MAX (LABEL_SETS_MAX + 4096)
/* A job has ended after that long without a process: the steps of a CI job are processes one after
 * another. */
#define JOB_GONE_NS 2000000000u

struct watched_job {
	char *key;        /* of units: the path of the control group */
	const char *unit; /* within key, not ended by NUL: n_unit bytes; NULL: of labels */
	size_t n_unit;
	struct label_set *labels; /* held; NULL: the job is a unit */
	uid_t uid;                /* of labels: their user */
	gid_t gid;                /* and of one of its processes */
	uint64_t seen_ns;         /* last, CLOCK_MONOTONIC */
	uint64_t missed_ns;       /* time of the first scan without a process; 0: it has processes
				   * */
	bool is_new, is_old;      /* found by the last scan; it was running when watching began */
	bool gone;                /* it has ended; freed at the next scan unless n_users */
	unsigned n_users;
	UT_hash_handle hh;
};

struct job_watch {
	struct watched_job *job;    /* uthash by key */
	bool labels, units;         /* these are watched */
	bool has_labels, has_units; /* a scan has found the jobs that were running before */
	uint64_t next_look_ns;
};

/* Watch these kinds from now on. w: the walk of the last look, NULL: there was none. */
void job_watch_set(struct job_watch *j, struct walk *w, bool labels, bool units);
/* Scan all live processes, if it is time: scans take at most 1/JOB_WATCH_PART of the time. New jobs
 * have is_new until the next scan. True if it scanned. */
#define JOB_WATCH_PART 500
bool job_watch_look(struct job_watch *j, struct walk *w, uint64_t now_ns);
/* Call when a process was given labels: returns its job, if that begins now; otherwise NULL. The
 * next scan finds the job again, but does not report it as new. Borrowed until then. */
struct watched_job *job_watch_meet(
	struct job_watch *j, const struct task *process, uint64_t now_ns);
void job_watch_clear(struct job_watch *j, struct walk *w);

/* The unit of a control group's path, of the system's systemd: n bytes at *ret_unit, which lie in path.
 * 0: none. Exported for tests. */
size_t job_watch_unit(const char *path, const char **ret_unit);
