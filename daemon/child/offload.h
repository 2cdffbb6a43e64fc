/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Offload: work done in a child process
 *
 * A forked child does work that may take longer than a few milliseconds (a query over a week, a
 * roll-up). It has only copies of our memory: no perf event, no socket, no capability, limited
 * memory and time.
 */

#include <sys/types.h>

/* RLIMIT_DATA of a child: a million rows take 10 MB, a week of 64 harts 200. The queries of one user, who has two
 * of four places, take at most half of the unit's MemoryMax. */
#define OFFLOAD_BYTES_MAX (512ull << 20)
#define OFFLOAD_SECONDS_MAX 120 /* RLIMIT_CPU */

struct offload;

/* Do the work, in the child. The return value, 0 to 255, is the exit status. */
typedef int offload_plain_function(void *userdata);

/* Fork a child that runs `run` with the limits above and a lower priority; there, userdata is as it
 * was at the call. It may open SQLite files, even those that we have open. 0, -errno. */
int offload_run(offload_plain_function *run, void *userdata, struct offload **ret_offload);

/* Readable once the child has ended. Borrowed. */
int offload_fd(const struct offload *o);
/* Its process, to kill it. Exported for tests. */
pid_t offload_pid(const struct offload *o);

/* The end of a child: by an exit status, or by a signal (then status is -1; SIGKILL and SIGXCPU may come
 * from its limits). */
struct offload_end {
	int status;
	int signal; /* 0: none */
};
/* 0 with *ret_end once it has ended (and again at each later call); OFFLOAD_RUNNING. */
enum { OFFLOAD_RUNNING = 1 };
int offload_poll(struct offload *o, struct offload_end *ret_end);

/* Kill it if it still runs, and reap it. */
struct offload *offload_free(struct offload *o);
