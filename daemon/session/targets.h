/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Targets: the tasks whose samples a tap keeps from a walk that delivers the samples of all
 *
 * Targets are named processes and all that they start, one user's processes, or those of a job or a unit. A
 * process is identified by its pid and by being alive when the targets were set, since pids are reused.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/attribute/task.h"

/* processes of one recording, each with a descriptor that watches it */
#define TARGETS_MAX 64

struct targets {
	bool all;        /* no process was named: everyone's, except for only_uid */
	bool after_exec; /* each pid counts only from its next exec */
	bool only_uid;   /* only what belongs wholly to this user (attribute/rights.h) */
	uid_t uid;
	gid_t gid;
	/* of all, only processes with these labels, or tasks in this control group and those below it.
	 * Borrowed; NULL: any. `tasks` names control groups */
	const struct label_set *labels;
	const char *cgroup;
	const struct task_table *tasks;
	uint64_t since_ns; /* CLOCK_MONOTONIC: when they were set */
	pid_t pid[TARGETS_MAX];
	size_t n_pids;
};

/* Is the task a target? Borrows it; walks up at most TARGETS_PARENTS_MAX of its parents. */
#define TARGETS_PARENTS_MAX 1024
bool targets_want(const struct targets *t, const struct task *task);

/* The same, in a walk of one recording, too: it delivers only tasks that it wants, though its table has others. */
bool targets_take(const struct targets *t, const struct task *task);

/* Are the samples of all users kept, without exception? */
bool targets_are_all(const struct targets *t);
