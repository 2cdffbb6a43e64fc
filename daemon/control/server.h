/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The server: the listening socket and all connected peers
 *
 * One process, one loop: no client may make another wait. So every peer has quotas (conf/conf.h:
 * [control]), child processes answer queries (offload.h), and a peer that does not read is not
 * written to. A client over a limit gets an error that names the limit, and is disconnected.
 */

#include <poll.h>

#include "daemon/conf/conf.h"
#include "daemon/control/peer.h"
#include "daemon/session/listener.h"

/* Maximum descriptors the server waits for: one for the socket and all peers (epoll), and those of
 * the peers' jobs. Jobs beyond it run at their deadline, not on events. */
#define SERVER_FDS_MAX 8192

struct server;

/* Listen at o->conf->socket_path, or take over listen_fd (socket activation; -1: none). A socket
 * left behind by a dead daemon is replaced; if one answers, LISTENER_BUSY. 0, LISTENER_* with
 * *ret_error, -errno. */
int server_new(const struct control_options *o, int listen_fd, struct server **ret_server,
	struct listener_error *ret_error);

/* Descriptors to wait for. Cost: linear in the number of peers with requests. */
size_t server_fds(struct server *s, struct pollfd *fds, size_t n);
/* After server_fds; UINT64_MAX: nothing is timed. */
uint64_t server_deadline_ns(const struct server *s);
/* Accept, read, run the jobs that are due, write; fds as the last server_fds filled them, with
 * revents. Does a bounded amount of work for each peer, and for at most SERVER_EVENTS_MAX of them;
 * call again for the rest. 0 or -errno (fatal for the daemon, never because of a client). */
#define SERVER_EVENTS_MAX 64
int server_dispatch(struct server *s, const struct pollfd *fds, size_t n, uint64_t now_ns);

/* CPU time that the loop's thread has spent for clients so far: time charged to their users, and
 * the remaining time of the rounds. */
uint64_t server_spent_ns(const struct server *s);
/* Charge ns of the loop's thread, spent for clients since the last call. Part of it may be charged
 * already: the remainder is divided among the users who were served in this round. */
void server_spend(struct server *s, uint64_t ns);

/* Follow a configuration that changed in place: look up the group again, and the peers in it. The
 * socket does not move. */
void server_reload(struct server *s);

struct server_status {
	uint32_t n_peers, n_queries; /* now */
	/* since the start: accepted, over a limit, disconnected for invalid input */
	uint64_t n_accepted, n_refused, n_hung_up;
};
void server_status(const struct server *s, struct server_status *ret_status);

/* Stop listening (and remove the socket file, unless it was passed to us), notify all peers and
 * disconnect. */
struct server *server_free(struct server *s);
