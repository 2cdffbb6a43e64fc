/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Runs: jobs of a store, found by their labels
 *
 * A run is all tasks with one set of labels of one user. Sets with the same job and run are one
 * run: the environment of a process that a job started may add labels to those that it inherited. A
 * run begins with the first of its processes that started in the window of its first samples, else
 * with that window. Labels of control groups (job_label.h) select among runs by the control groups
 * of their processes: a run then consists of the processes in such a group. These labels alone make
 * no run, since the name of a service does not show how often it started, and sums of minutes do
 * not distinguish its groups. All times are on one clock, since the realtime clock may have been
 * set between two runs: a boot's monotonic clock, plus the difference of both clocks when the
 * boot's newest file was begun.
 */

#include "daemon/query/query.h"
#include "proto/syntax/label.h"

/* Maximum jobs of one selection; at a KB each, 16 MB. */
#define RUNS_MAX 16384u
/* The longest gap between samples of a run that began before the requested time. Files from this
 * long before that time are read too, to find that such a run began earlier. */
#define RUNS_BEFORE_NS (3600 * 1000000000ll)

struct runs_wish {
	const char *const *label; /* as query_filter has them; at least one */
	size_t n_labels;
	const uint32_t *uid;
	size_t n_uids;
	int64_t since_ns, until_ns; /* when runs began; 0: open */
	uint32_t last;              /* the last N of them; 0: all */
	/* the times that pins have of a job, which are not taken from other sources, as in
	 * query_filter */
	const struct query_without *without;
	size_t n_without;
	/* sets of labels that live processes have: their runs have not ended */
	const struct query_job *alive;
	size_t n_alive;
	bool unfinished; /* these are runs, too */
};

struct found_run {
	uint32_t uid;
	char *says; /* its labels, for people */
	/* sets of labels, whose texts are owned; with the requested labels, they define the run */
	struct query_job *job;
	size_t n_jobs;
	int64_t begin_ns;           /* CLOCK_REALTIME, as above */
	int64_t begin_boot_ns;      /* the same as CLOCK_MONOTONIC of its boot */
	int64_t first_ns, until_ns; /* CLOCK_REALTIME of its windows' starts; until is exclusive */
	enum tier coarsest;         /* of the files that have it */
	bool unfinished;
};

struct found_runs {
	struct found_run *run; /* requested runs, those that have finished or all, by begin */
	size_t n;
	size_t n_unfinished;
	char *unfinished; /* labels of one of them, for people; NULL: none */
};

/* Find runs in the sources, the newest first. 0, QUERY_FAILED with *ret_error (too many), -ENOMEM. Sources
 * that cannot be read are left out, with their outcome. */
int runs_find(struct query_source *source, size_t n_sources, const struct runs_wish *wish,
	struct found_runs *ret_runs, struct query_error *ret_error);
void found_run_clear(struct found_run *run);
void found_runs_clear(struct found_runs *r);
