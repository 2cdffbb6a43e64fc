/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The server: the listening socket and all who are connected
 *
 * One process, one loop: nothing that a client does may make another wait. So every peer has quotas
 * (conf.h: [control]), queries are answered by processes of their own (offload.h), and a peer that
 * does not read is not written to. A client over a limit is told which, and hung up on.
 */

#include <poll.h>

#include "daemon/conf.h"
#include "daemon/control/peer.h"

/* Descriptors that the server may wait for: one that stands for the socket and all peers, and what
 * the peers' jobs wait for. Jobs beyond it run when their time comes, not when there is news. */
#define SERVER_FDS_MAX 8192

struct server;

struct server_error {
	char text[512];
	char remedy[256];
};

/* Listen at o->conf->socket_path, or take over listen_fd (socket activation; -1: none). A socket
 * that was left behind by a daemon that died is replaced; one that answers is SERVER_BUSY. 0,
 * SERVER_* with *ret_error, -errno. */
enum { SERVER_BUSY = 1, SERVER_REFUSED };
int server_new(const struct control_options *o, int listen_fd, struct server **ret_server,
	struct server_error *ret_error);

/* What to wait for. Costs as much as there are peers that have asked something. */
size_t server_fds(struct server *s, struct pollfd *fds, size_t n);
/* After server_fds; UINT64_MAX: nothing is timed. */
uint64_t server_deadline_ns(const struct server *s);
/* Accept, read, run the jobs that are due, write; fds as the last server_fds filled them, with
 * revents. Does a bounded amount for each peer, and for at most SERVER_EVENTS_MAX of them; the rest
 * is had by calling again. 0 or -errno (fatal for the daemon, never because of a client). */
#define SERVER_EVENTS_MAX 64
int server_dispatch(struct server *s, const struct pollfd *fds, size_t n, uint64_t now_ns);

/* The configuration has changed in place: look up the group again, and who of the peers is in it.
 * The socket stays where it is. */
void server_reload(struct server *s);

struct server_status {
	uint32_t n_peers, n_queries;     /* now */
	uint64_t n_accepted, n_refused, n_hung_up; /* so far: welcome, over a limit, for what they sent */
};
void server_status(const struct server *s, struct server_status *ret_status);

/* Stop listening (the socket file goes too, unless it was handed to us), tell all and hang up. */
struct server *server_free(struct server *s);
