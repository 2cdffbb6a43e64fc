/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A workload: the command that is measured
 *
 * It is forked first and held, so that its pid can be a target before it runs, and released when
 * the daemon counts. A poll loop can watch for its end by a descriptor.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	WORKLOAD_NOT_RUN = 1, /* exec failed, message printed; exit_status is 126 or 127 */
};

struct workload {
	pid_t pid;  /* 0: none */
	int end_fd; /* pidfd: readable after its end; -1: none */
	int hold_fd, trouble_fd;
	char **argv; /* borrowed */

	/* after release */
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	/* after wait */
	bool ended;
	int exit_status;                         /* as in a shell: 128 + signal */
	int signal;                              /* that killed it, or 0 */
	uint64_t elapsed_ns, user_ns, system_ns; /* of the command and the children it waited for */
};

/* Fork and hold. The child's signal mask is emptied. 0 or -errno. */
int workload_fork(struct workload *w, char **argv);

/* Let the command run. 0, WORKLOAD_NOT_RUN, -errno. */
int workload_release(struct workload *w);

/* Wait for the command's end (blocks unless end_fd is readable). 0 or -errno. */
int workload_wait(struct workload *w);

/* Close its descriptors; a workload that was never released exits. A running one is left alone. */
void workload_clear(struct workload *w);
