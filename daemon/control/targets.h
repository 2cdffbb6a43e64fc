/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Targets: whose samples a tap keeps, where the walk brings everybody's
 *
 * Processes that were named, and all that they start; or one user's. A process is named by pid and
 * by having lived when the targets were set, since pids are used again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/attribute/task.h"

#define TARGETS_MAX 64        /* processes of one recording, each with a descriptor that watches it */

struct targets {
	bool all;                /* no process was named: everybody's, but for only_uid */
	bool after_exec;         /* each pid counts from its next exec on */
	bool only_uid;           /* of what is wholly this user's alone (attribute/rights.h) */
	uid_t uid;
	gid_t gid;
	uint64_t since_ns;       /* CLOCK_MONOTONIC: when they were set */
	pid_t pid[TARGETS_MAX];
	size_t n_pids;
};

/* Is it wanted? Borrows the task; walks up its parents, at most TARGETS_PARENTS_MAX of them. */
#define TARGETS_PARENTS_MAX 1024
bool targets_want(const struct targets *t, const struct task *task);
