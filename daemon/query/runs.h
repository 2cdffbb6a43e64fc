/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Runs: jobs of a store, found by their labels
 *
 * A run is all tasks with one set of labels of one user. Sets with the same job and run are one
 * run: the environment of a process that a job started may add labels to those that it inherited. A
 * run begins with the first of its processes that started in the window of its first samples, else
 * with that window. Labels that control groups show (job_label.h) select among them, by the control
 * groups of their processes: then a run is of those that are in such a group. They make no run by
 * themselves, since the name of a service does not say how often it started, and sums of minutes do
 * not keep its groups apart. All times are on one clock, since the realtime clock may have been set
 * between two runs: the monotonic one of a boot, and the distance of both clocks when the boot's
 * newest file was begun.
 */

#include "daemon/query/query.h"
#include "proto/syntax/label.h"

/* Jobs that one selection looks at; at a KB each, 16 MB. */
#define RUNS_MAX 16384u
/* The longest time without a sample in a run that began before the requested time. Files of this
 * time before the requested one are read too, to find that such a run began earlier. */
#define RUNS_BEFORE_NS (3600 * 1000000000ll)

struct runs_wish {
	const char *const *label; /* as query_filter has them; at least one */
	size_t n_labels;
	const uint32_t *uid;
	size_t n_uids;
	int64_t since_ns, until_ns; /* when runs began; 0: open */
	uint32_t last;              /* the last N of them; 0: all */
	/* what pins have of a job, so that other sources leave it to them, as query_filter has them */
	const struct query_without *without;
	size_t n_without;
	/* sets of labels that processes have still: their runs have not ended */
	const struct query_job *alive;
	size_t n_alive;
};

struct found_run {
	uint32_t uid;
	char *says; /* its labels, for people */
	struct query_job *
		job; /* sets of labels; their texts are owned. With the wished labels, what it is */
	size_t n_jobs;
	int64_t begin_ns;           /* CLOCK_REALTIME, as above */
	int64_t first_ns, until_ns; /* CLOCK_REALTIME of its windows' starts; until is exclusive */
	enum tier coarsest;         /* of the files that have it */
	bool unfinished;
};

struct found_runs {
	struct found_run *run; /* finished ones that are wished, by begin */
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
