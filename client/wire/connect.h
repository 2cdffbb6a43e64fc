/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The link to mperfd: the service's socket, or a daemon of our own
 *
 * $MPERF_SOCKET if set (empty: no service), else the service's own socket if it answers, else
 * `mperfd --private=FD` at the other end of a socketpair, which ends when the link does.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/frame.h"

#define LINK_SERVICE_SOCKET "/run/mperf/mperfd.sock"
#define LINK_HELLO_MS 10000 /* a daemon silent for longer is not ours, or hangs */
#define LINK_TRY_MS 2000    /* the same of link_try_service */

enum {
	LINK_FAILED = 1, /* no daemon that we can talk to; printed on stderr */
	LINK_ABSENT,     /* no service; nothing printed */
};

struct link {
	int fd;
	pid_t daemon_pid; /* of a private daemon, our child; 0: a service */
	struct frame_buffer in, out;
	char software[64]; /* the daemon's name and version */
	uint32_t minor;    /* of the protocol that it speaks */
	uint32_t last_id;  /* of our requests */
	bool quiet;        /* print nothing about the link: the caller can do without */
};

/* Connect and exchange Hello. 0, or LINK_FAILED. */
int link_open(struct link *l);

/* Connect to the service, never to a daemon of our own. 0; LINK_FAILED; LINK_ABSENT if none
 * answers, or MPERF_SOCKET is set and empty: the caller tries another way or reports it. */
int link_open_service(struct link *l);

/* Connect to the service for optional parts of an answer: prints nothing, and does not wait for long. 0;
 * LINK_ABSENT. */
int link_try_service(struct link *l);

/* Do as link_try_service, or else start a daemon of our own. */
int link_try(struct link *l);

/* Start a daemon of our own even if a service answers: it opens files with the caller's rights. 0,
 * or LINK_FAILED. */
int link_open_private(struct link *l);

/* After LINK_ABSENT: print that no service answers, so `what` ("there is nothing to show"). */
void link_say_no_service(const char *what);

/* The handshake over l->fd, part of link_open. Exported for tests. 0, LINK_FAILED, -errno. */
int link_greet(struct link *l);

/* Hang up; waits for a private daemon (and kills it if it lingers). Safe on a zeroed link whose fd
 * is -1. */
void link_close(struct link *l);

/* Report that the daemon went away, with the cause as far as known. */
void link_say_lost(struct link *l);
