/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The link to mperfd: the service's socket, or a daemon of our own
 *
 * $MPERF_SOCKET if set (empty: no service), else the service's own socket if it answers, else
 * `mperfd --private=FD` at the other end of a socketpair, which ends when the link does.
 */

#include <stdint.h>
#include <sys/types.h>

#include "proto/frame.h"

#define LINK_SERVICE_SOCKET "/run/mperf/mperfd.sock"
#define LINK_HELLO_MS 10000 /* a daemon that says nothing for so long is not ours, or hangs */

enum {
	LINK_FAILED = 1, /* no daemon, or none that we can talk to: has been said on stderr */
	LINK_ABSENT,     /* no service: nothing has been said */
};

struct link {
	int fd;
	pid_t daemon_pid; /* of a private daemon, ours to wait for; 0: a service */
	struct frame_buffer in, out;
	char software[64]; /* what the daemon calls itself */
	uint32_t last_id;  /* of our requests */
};

/* Connect and exchange Hello. 0, or LINK_FAILED. */
int link_open(struct link *l);

/* Connect to the service, never to a daemon of our own. 0; LINK_FAILED; LINK_ABSENT if none
 * answers, or MPERF_SOCKET is set and empty, and the caller has another way or says it. */
int link_open_service(struct link *l);

/* A daemon of our own, whatever service there is: files are opened with the rights of who names
 * them. 0, or LINK_FAILED. */
int link_open_private(struct link *l);

/* After LINK_ABSENT: say that no service answers, so `what` ("there is nothing to tell"). */
void link_say_no_service(const char *what);

/* The handshake over l->fd, which link_open does: exported for tests. 0, LINK_FAILED, -errno. */
int link_greet(struct link *l);

/* Hang up; a private daemon is waited for (and ended if it lingers). Safe on a zeroed link whose
 * fd is -1. */
void link_close(struct link *l);

/* Say that the daemon went away, with what is known of why. */
void link_say_lost(struct link *l);
