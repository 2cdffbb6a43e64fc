/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Peers: connected clients
 *
 * A peer says Hello, then asks; its requests are answered in any order, each under its own id. Who
 * it is comes from SO_PEERCRED, never from what it says. A peer that breaks the protocol is told why
 * if it can be told, and hung up on; nobody else notices.
 */

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/control/request.h"
#include "proto/frame.h"

#define PEER_REQUESTS_MAX 16            /* at once; mperfctl needs two */
#define PEER_OUT_BYTES_MAX (64u << 20)  /* unread answers; a flame graph of 200,000 nodes is 20 MB */

struct service;
struct conf;

/* What the commands need to know of their daemon; borrowed by every peer. */
struct control_options {
	const char *namer;                  /* path of mperf-namer; NULL: beside mperfd */
	bool private;                       /* one client, whose rights are ours */
	struct service *service;            /* NULL when private */
	const struct conf *conf;            /* NULL when private */
};

struct peer {
	const struct control_options *options;
	int fd;
	uid_t uid;
	gid_t gid;
	pid_t pid;
	bool sees_all;                      /* root, the daemon's own user, a member of the group; in
	                                       private mode always: the kernel decides */
	bool greeted;                       /* its Hello was good */
	bool closing;                       /* hang up once `out` is empty */
	struct frame_buffer in, out;
	struct request *request[PEER_REQUESTS_MAX];
};

/* Take over a connected socket and greet. 0 or -errno (the socket is closed then too). */
int peer_new(const struct control_options *o, int fd, struct peer **ret_peer);

/* Read, act, write. 0; PEER_GONE when the peer is to be freed; -errno fatal for the daemon. */
enum { PEER_GONE = 1 };
int peer_dispatch(struct peer *p, short revents);
/* Let all jobs that are due run. 0 or -errno. */
int peer_run_jobs(struct peer *p, uint64_t now_ns);

/* What to poll: the socket first, then what its jobs wait for. */
size_t peer_fds(const struct peer *p, struct pollfd *fds, size_t n);
uint64_t peer_deadline_ns(const struct peer *p);

struct peer *peer_free(struct peer *p);
