/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Job watch: which jobs begin and end, for schedules
 *
 * A job is a set of labels that some process has (`mperfctl job run`, job-environment), or a unit of
 * the system's systemd that some process is in. Both are found by looking at the live processes. A
 * unit is known by the first component of a control group that is no slice, which only systemd can
 * make: what a user's own systemd calls its units, or a service the groups below its own, does not
 * count.
 */

#include "daemon/session/walk.h"

/* Jobs of both kinds; more are not watched. Label sets are limited, and a machine has some hundred units. */
#define JOBS_WATCHED_MAX (LABEL_SETS_MAX + 4096)
/* A job is over after that long without a process: steps of a CI job are processes one after another. */
#define JOB_GONE_NS 2000000000u

struct watched_job {
	char *key;        /* of units: the path of the control group */
	const char *unit; /* within key, not ended by NUL: n_unit bytes; NULL: of labels */
	size_t n_unit;
	struct label_set *labels; /* held; NULL: the job is a unit */
	uid_t uid;                /* of labels: whose they are */
	gid_t gid;                /* and of one of its processes */
	uint64_t seen_ns;         /* last, CLOCK_MONOTONIC */
	uint64_t missed_ns;       /* the first look since that found nobody; 0: none did */
	bool is_new, is_old;      /* since the last look; it ran when watching began */
	bool gone;                /* it is over; freed at the next look unless n_users */
	unsigned n_users;
	UT_hash_handle hh;
};

struct job_watch {
	struct watched_job *job;    /* uthash by key */
	bool labels, units;         /* these are watched */
	bool has_labels, has_units; /* a look has found those that ran before */
	uint64_t next_look_ns;
};

/* Watch these kinds from now on. w: the walk of the last look, NULL: there was none. */
void job_watch_set(struct job_watch *j, struct walk *w, bool labels, bool units);
/* Look at all live processes, if it is time: at most for one part in JOB_WATCH_PART of it. Jobs found
 * have is_new until the next look. True if it looked. */
#define JOB_WATCH_PART 500
bool job_watch_look(struct job_watch *j, struct walk *w, uint64_t now_ns);
/* A process has just been given labels: its job, if that begins with it; else NULL. The next look finds it
 * again, and does not report it. Borrowed until then. */
struct watched_job *job_watch_meet(
	struct job_watch *j, const struct task *process, uint64_t now_ns);
void job_watch_clear(struct job_watch *j, struct walk *w);

/* The unit of a control group's path, of the system's systemd: n bytes at *ret_unit, which lie in path.
 * 0: none. Exported for tests. */
size_t job_watch_unit(const char *path, const char **ret_unit);
