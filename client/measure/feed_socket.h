/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Feed socket: where an instrumented command reports to our own daemon
 *
 * The service's socket has a fixed path. A private daemon's socket is in a folder of ours, and the
 * command gets its path in the environment. The daemon makes the socket and removes it.
 */

struct feed_socket {
	char *folder, *path; /* NULL: none */
};

/* Make the folder, and set MPERF_FEED. 0; RUN_FAILED (run.h), after an error message. */
int feed_socket_make(struct feed_socket *s);

/* Remove the folder; the daemon must have ended. */
void feed_socket_clear(struct feed_socket *s);
