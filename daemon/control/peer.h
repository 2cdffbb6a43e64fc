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
#include "daemon/control/user.h"
#include "daemon/pmu/sampler.h"
#include "proto/frame.h"

#define PEER_REQUESTS_MAX 16            /* at once; mperfctl needs two */
#define PEER_OUT_BYTES_MAX (64u << 20)  /* unread answers; a flame graph of 200,000 nodes is 20 MB;
                                           of a service conf.h: client_bytes_max, of all that are
                                           its user's */
/* Of a service, so that no peer keeps others waiting, or holds a place for nothing: */
#define PEER_MESSAGES_ROUND_MAX 16      /* taken from one peer before the next has his turn */
#define PEER_HELLO_NS 10000000000u      /* until its Hello must have come; clients say it at once */
#define PEER_FRAME_NS 30000000000u      /* until a frame that has begun must be whole */
#define PEER_CLOSING_NS 5000000000u     /* for reading why it is hung up on */
/* What a peer may leave unread, or send of a frame, whatever else its user has: a client that is
 * stopped (a pager) does not keep the user's other ones from being answered. */
#define PEER_BYTES_MIN 32768u

struct service;
struct conf;
struct cores;
struct offload_queue;
struct stack_starts;

/* What the commands need to know of their daemon; borrowed by every peer. */
struct control_options {
	const char *namer;                  /* path of mperf-namer; NULL: beside mperfd */
	struct graves *graves;              /* workers of namers that were not gone at their end */
	enum sampler_switches switches;     /* what cuts counts at switches */
	bool private;                       /* one client, whose rights are ours */
	struct service *service;            /* NULL when private */
	const struct conf *conf;            /* NULL when private */
	struct cores *cores;                /* of this machine; NULL: nothing is known of them */
	const struct stack_starts *starts;  /* where stacks begin; NULL: not known */
	/* filled in by the server, in a copy of its own: */
	struct offload_queue *queue;        /* NULL when private */
	struct users *users;                /* NULL when private */
	bool group_known;                   /* conf's group exists, and is: */
	gid_t group;
};

struct peer {
	const struct control_options *options;
	int fd;
	uid_t uid;
	struct user *user;                  /* its account; NULL in private mode */
	gid_t gid;
	pid_t pid;
	bool sees_all;                      /* root, the daemon's own user, a member of the group; in
	                                       private mode always: the kernel decides */
	bool greeted;                       /* its Hello was good */
	bool closing;                       /* hang up once `out` is empty */
	struct frame_buffer in, out;
	struct request *request[PEER_REQUESTS_MAX];

	uint64_t now_ns;                    /* CLOCK_MONOTONIC, set before each call by who dispatches;
	                                       0 in private mode, where nothing below is used */
	uint64_t came_ns;                   /* when it connected */
	uint64_t half_ns;                   /* since when a frame has been incomplete; 0: none is */
	uint64_t closing_ns;                /* since when `closing` */
	uint64_t unread;                    /* bytes of both buffers that its user is charged for */
	uint32_t n_turns;                   /* messages taken and jobs run so far */
	bool backlog;                       /* `in` has a whole frame that waits for its turn */
	bool misbehaved;                    /* hung up on for what it sent, or failed to send */
	int (*sent)(struct peer *p);        /* called after each message that was put into `out`, where
	                                       nobody polls (offload.c); else NULL. 0 or -errno */
};

/* Take over a connected socket and greet. 0 or -errno (the socket is closed then too). */
int peer_new(const struct control_options *o, int fd, struct peer **ret_peer);
/* Ask the kernel anew whether it sees all: the group may have changed. */
void peer_look_up_rights(struct peer *p);
/* Tell it why, and hang up once it has read that. 0 or -errno. */
int peer_hang_up(struct peer *p, Mperf__FailureKind kind, const char *remedy, const char *why);

/* Read, act, write. 0; PEER_GONE when the peer is to be freed; -errno fatal for the daemon. */
enum { PEER_GONE = 1 };
int peer_dispatch(struct peer *p, short revents);
/* Let all jobs that are due run. 0 or -errno. */
int peer_run_jobs(struct peer *p, uint64_t now_ns);

/* What to poll: the socket first, then what its jobs wait for. */
size_t peer_fds(const struct peer *p, struct pollfd *fds, size_t n);
uint64_t peer_deadline_ns(const struct peer *p);

/* The same in parts, for who waits for the sockets of many peers by other means. */

/* POLLIN and POLLOUT as the socket is to be polled for; 0: it is waited for something else. */
short peer_events(const struct peer *p);
/* What its jobs wait for; each request remembers how many of the entries are its own. */
size_t peer_job_fds(struct peer *p, struct pollfd *fds, size_t n);
/* Let run those jobs alone that are due, or have news in fds as peer_job_fds filled them (NULL: there
 * is none). 0, -errno. */
int peer_run_due_jobs(struct peer *p, const struct pollfd *fds, uint64_t now_ns);
/* Entries of fds that belong to its jobs. */
size_t peer_n_job_fds(const struct peer *p);
/* Hang up on who let a time pass. 0; PEER_GONE; -errno. */
int peer_check_times(struct peer *p);
/* Has jobs, a backlog, or a time that runs: peer_deadline_ns is to be asked. */
bool peer_is_busy(const struct peer *p);
/* Bytes of answers that it may leave unread. */
size_t peer_out_bytes_max(const struct peer *p);
/* May it be sent more, for it has read enough, and so have its user's other peers? */
bool peer_has_out_room(const struct peer *p);

struct peer *peer_free(struct peer *p);
