/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* How the main thread of a process ended or did not. */
enum mperf_main {
	MPERF_MAIN_RUNS,  /* or nobody knows: /proc is not there */
	MPERF_MAIN_ENDED, /* by pthread_exit, and others go on */
	MPERF_MAIN_LAST,  /* and nobody but the calling thread is left */
};

/* Look at the calling process, whose pid that is. */
enum mperf_main mperf_main_look(pid_t pid);
