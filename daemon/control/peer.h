/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Peers: connected clients
 *
 * A peer sends Hello, then requests; answers come in any order, each under its request's id. Its
 * identity comes from SO_PEERCRED, never from what it sends. A peer that breaks the protocol is
 * sent the reason, if possible, and disconnected; other peers are not affected.
 */

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/control/request.h"
#include "daemon/control/user.h"
#include "daemon/sampler/sampler.h"
#include "proto/frame.h"

#define PEER_REQUESTS_MAX 16 /* at the same time; mperfctl needs two */
/* Unread reply bytes allowed; a flame graph of 200,000 nodes takes 20 MB. For a service it is
 * client_bytes_max (conf/conf.h), for all peers of one user together. */
#define PEER_OUT_BYTES_MAX (64u << 20)
/* Limits of a service, so that no peer delays others or occupies a place while idle: */
#define PEER_MESSAGES_ROUND_MAX 16  /* messages taken from one peer before the next is served */
#define PEER_HELLO_NS 10000000000u  /* until Hello must have arrived; clients send it at once */
#define PEER_FRAME_NS 30000000000u  /* until a frame that has begun must be complete */
#define PEER_CLOSING_NS 5000000000u /* to read the reason of its disconnection */
/* Unread reply bytes, or bytes of an incomplete frame, always allowed per peer, whatever its user's
 * other peers hold: one stopped client (in a pager) does not block the user's others. */
#define PEER_BYTES_MIN 32768u

struct service;
struct conf;
struct cores;
struct offload_queue;
struct stack_starts;

/* Parts of the daemon that commands need; borrowed by every peer. */
struct control_options {
	const char *namer;     /* path of mperf-namer; NULL: beside mperfd */
	struct graves *graves; /* workers that outlived their namers */
	struct quota *pool; /* memory of clients' walks, recordings and tops; NULL: not limited */
	enum sampler_switches switches;    /* how counts are cut at switches */
	bool private;                      /* one client, with our own rights */
	struct service *service;           /* NULL when private */
	const struct conf *conf;           /* NULL when private */
	struct cores *cores;               /* of this machine; NULL: not known */
	const struct stack_starts *starts; /* where stacks begin; NULL: not known */
	struct proc_reader *reader;        /* reader of /proc; NULL: /proc is read at once */
	/* filled in by the server, in a copy of its own: */
	struct offload_queue *queue; /* NULL when private */
	struct users *users;         /* NULL when private */
	struct aside *closers;       /* of sockets; NULL when private */
	bool group_known;            /* the group of mperf.conf exists; it is: */
	gid_t group;
};

struct peer {
	const struct control_options *options;
	int fd;
	bool descriptors_may_come; /* aside/descriptors.h */
	uid_t uid;
	struct user *user; /* its account; NULL in private mode */
	gid_t gid;
	pid_t pid;
	/* true for root, the daemon's own user and members of the group; always true in private
	 * mode, where the kernel decides */
	bool sees_all;
	bool greeted; /* its Hello was good */
	bool closing; /* disconnect once `out` is empty */
	struct frame_buffer in, out;
	struct request *request[PEER_REQUESTS_MAX];

	/* CLOCK_MONOTONIC, set by the dispatcher before each call; 0 in private mode, where nothing
	 * below is used */
	uint64_t now_ns;
	uint64_t came_ns;    /* when it connected */
	uint64_t half_ns;    /* when the incomplete frame began; 0: there is none */
	uint64_t closing_ns; /* since when `closing` */
	uint64_t unread;     /* bytes of both buffers charged to its user */
	uint32_t n_turns;    /* messages taken and jobs run so far */
	bool backlog;        /* `in` holds a complete frame that waits for its turn */
	bool misbehaved;     /* disconnected for what it sent or did not send */
	/* called after each message put into `out`, if nobody polls (offload.c); else NULL. 0 or
	 * -errno */
	int (*sent)(struct peer *p);
};

/* Take over a connected socket and greet. 0 or -errno (which also closes the socket). */
int peer_new(const struct control_options *o, int fd, struct peer **ret_peer);
/* Ask the kernel again whether the peer sees all: the group may have changed. */
void peer_look_up_rights(struct peer *p);
/* Send it the reason, and disconnect once it has read that. 0 or -errno. */
int peer_hang_up(struct peer *p, Mperf__FailureKind kind, const char *remedy, const char *why);

/* Read, act, write. 0; PEER_GONE when the peer is to be freed; -errno fatal for the daemon. */
enum { PEER_GONE = 1 };
int peer_dispatch(struct peer *p, short revents);
/* Run all jobs that are due. 0 or -errno. */
int peer_run_jobs(struct peer *p, uint64_t now_ns);

/* Descriptors to poll: the socket first, then those that its jobs wait for. */
size_t peer_fds(const struct peer *p, struct pollfd *fds, size_t n);
uint64_t peer_deadline_ns(const struct peer *p);

/* The same in parts, for a caller that waits for many sockets by other means (epoll). */

/* POLLIN and POLLOUT as needed for the socket; 0: the peer waits for something else. */
short peer_events(const struct peer *p);
/* Descriptors that its jobs wait for; each request remembers how many entries it filled. */
size_t peer_job_fds(struct peer *p, struct pollfd *fds, size_t n);
/* Run only the jobs that are due or have an event in fds, as peer_job_fds filled them (NULL: no
 * events). 0, -errno. */
int peer_run_due_jobs(struct peer *p, const struct pollfd *fds, uint64_t now_ns);
/* Entries of fds that belong to its jobs. */
size_t peer_n_job_fds(const struct peer *p);
/* Disconnect the peer if it missed a deadline. 0; PEER_GONE; -errno. */
int peer_check_times(struct peer *p);
/* Has jobs, a backlog or a running deadline, so that peer_deadline_ns matters. */
bool peer_is_busy(const struct peer *p);
/* Unread reply bytes allowed. */
size_t peer_out_bytes_max(const struct peer *p);
/* Have the peer and its user's other peers read enough, so that more may be sent? */
bool peer_has_out_room(const struct peer *p);

/* In private mode, in the middle of an answer: wait until the client has read all but
 * PEER_AHEAD_BYTES of it. 0; -EPIPE if the client is gone; -errno. */
#define PEER_AHEAD_BYTES (1u << 20) /* enough that neither side waits for each chunk */
int peer_flush(struct peer *p);

struct peer *peer_free(struct peer *p);
