/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The feed's insides: users, connections, and whose a thread is
 */

#include "daemon/loops/feed.h"

/* Threads of one program, and of all programs of one user, that are given counters, over as long as
 * the programs are connected: each holds four events at most, of a kilobyte and more in the kernel.
 */
#define FEED_GRANTS_MAX 1024u
#define FEED_GRANTS_PER_USER_MAX 4096u
/* A program whose socket is full is tried again. */
#define FEED_GRANT_TRIES 3u

struct feed_user {
	uid_t uid;
	uint32_t n_programs;
	uint32_t n_grants; /* of all his programs */
	uint32_t period_ms; /* at which they are to report */
	struct budget budget;
	uint64_t spent_until_ns; /* CLOCK_MONOTONIC, to which his share of the loop is used up */
	UT_hash_handle hh;
};

struct connection {
	struct feed *feed;
	int fd;
	pid_t pid; /* as we see it; 0: we do not */
	gid_t gid; /* of who connected */
	struct feed_user *user;
	struct program *program;
	struct task *process; /* NULL: not found (yet) */
	bool other_pids;      /* its pid namespace is another one than ours */
	bool sought;          /* its process was looked for, found or not */
	bool paused;          /* not read before resume_ns */
	bool waits;           /* paused for the next look alone */
	uint32_t n_grants;    /* threads that were given counters */
	uint32_t told_ms;     /* the period that it goes by */
	uint64_t resume_ns;
	uint64_t spent_until_ns; /* as its user's, of its own share */
	uint64_t waited_ns;      /* when it last waited for a thread to become known; 0: never */
	uint64_t came_ns;
	uint64_t n_looks; /* that there had been when it came */
	struct connection *next;
};

struct feed_want {
	const void *who;
	struct feed_reach reach;
	uint32_t period_ms;
};

struct feed {
	struct feed_options o;
	int epoll_fd;
	struct connection *connections;
	uint32_t n_connections;
	struct feed_user *users;
	struct budget budget; /* of all */
	uint64_t causes[N_FEED_CAUSES];
	uint64_t n_accepted, n_hung_up, n_rounds;
	uint64_t now_ns;       /* of the dispatch under way */
	uint64_t looked_ns;    /* when a thread was last looked for */
	uint64_t n_looks;      /* how often */
	uint64_t looking_ns;   /* what looking took, in all: nobody's share */
	uint64_t listen_at_ns; /* no connection is accepted before; 0: they are */
	struct feed_want *want;
	size_t n_wants, size_wants;
	uint8_t packet[MPERF_PACKET_BYTES_MAX];
};

/* Let all that happened until now be known, whenever that was done last. */
void feed_look(struct feed *f);
/* See whose the connection is, by what is known of the time after it came. False: it was not looked
 * for yet, and shall be tried again FEED_LOOK_NS after feed->looked_ns. */
bool feed_seek_process(struct connection *c);
/* See whether a thread that was just announced can be told from others when it counts. False: it is
 * too new, and its messages shall wait until FEED_LOOK_NS after feed->looked_ns. */
bool feed_seek_thread(struct connection *c, pid_t tid);
/* Whose the thread is; NULL: not known. The thread remembers it. */
struct task *feed_task_of(struct connection *c, struct program_thread *t);
/* See whether the pids of a process are ours. */
bool feed_has_other_pids(pid_t pid);

/* feed_grant.c: give a thread that was in a region counters, if it has none and may have them.
 * task: whom it was found to be. */
void feed_grant(struct connection *c, struct program_thread *t, const struct task *task);

/* feed_ask.c: the period at which programs of that user are to report, in ms. */
uint32_t feed_period_ms(const struct feed *f, uid_t uid);
/* Send a program its period; now: ask for a report at once. One that does not read goes on. */
void feed_send_ask(struct connection *c, bool now);
/* Wants or the limit changed: send the new period to programs for which it differs. */
void feed_tell_periods(struct feed *f);
