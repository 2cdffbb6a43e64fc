/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The feed's internals: users, connections, and the task of each thread */

#include "daemon/loops/feed.h"
#include "daemon/loops/table_cache.h"

/* Threads of one program, and of all programs of one user, that get counters while the programs are
 * connected: each holds at most four events, of a kilobyte or more in the kernel. */
#define FEED_GRANTS_MAX 1024u
#define FEED_GRANTS_PER_USER_MAX 4096u
/* How often we try a program whose socket is full. */
#define FEED_GRANT_TRIES 3u

struct feed_user {
	uid_t uid;
	uint32_t n_programs;
	uint32_t n_grants;  /* of all their programs */
	uint32_t period_ms; /* at which they report */
	struct budget budget;
	uint64_t spent_until_ns; /* CLOCK_MONOTONIC, until which the share of the loop is used up */
	UT_hash_handle hh;
};

/* A thread by its number in its own pid namespace, and ours of it. */
struct tid_pair {
	pid_t inner, outer;
};

struct connection {
	struct feed *feed;
	int fd;
	bool descriptors_may_come; /* aside/descriptors.h */
	pid_t pid;                 /* in our pid namespace; 0: not visible there */
	gid_t gid;                 /* of the connecting process */
	struct feed_user *user;
	struct program *program;
	struct task *process; /* NULL: not found (yet) */
	bool other_pids;      /* its pid namespace is not ours */
	struct tid_pair *tid; /* of other_pids: its threads, by rising inner; NULL: never read */
	uint32_t n_tids, size_tids;
	uint64_t tids_ns;  /* when they were read; 0: never */
	bool has_threads;  /* it has announced one */
	bool sought;       /* we have looked for its process, found or not */
	bool paused;       /* not read before resume_ns */
	bool waits;        /* paused only until the next look */
	uint32_t n_grants; /* threads that got counters */
	uint32_t told_ms;  /* the period that it was sent */
	uint64_t resume_ns;
	uint64_t spent_until_ns; /* like its user's, for its own share */
	uint64_t waited_ns;      /* when it last waited for an unknown thread; 0: never */
	uint64_t came_ns;
	uint64_t n_looks; /* number of looks when it connected */
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
	struct aside *closers; /* of sockets */
	struct connection *connections;
	uint32_t n_connections;
	struct feed_user *users;
	uint32_t n_spenders;  /* of them, who owe time now */
	struct budget budget; /* of all */
	struct table_cache cache;
	uint64_t causes[N_FEED_CAUSES];
	uint64_t n_accepted, n_hung_up, n_rounds;
	uint64_t now_ns;           /* of the current dispatch */
	uint64_t looked_ns;        /* when a thread was last looked for */
	uint64_t n_looks;          /* how often */
	uint64_t looking_ns;       /* total time spent looking, charged to nobody */
	uint64_t reading_ns;       /* total time that threads of ours read /proc for programs */
	uint64_t spent_ns;         /* total time spent for programs, with that, without looking */
	uint64_t listen_at_ns;     /* accept no connection before; 0: accept now */
	uint64_t accepts_until_ns; /* like a user's spent_until_ns, of accepting */
	struct feed_want *want;
	size_t n_wants, size_wants;
	uint8_t packet[MPERF_PACKET_BYTES_MAX];
};

/* Bring the tasks up to date, no matter when we last did. */
void feed_look(struct feed *f);
/* Find the process of the connection, using what is known after it connected. False: no look has
 * happened since; try again FEED_LOOK_NS after feed->looked_ns. */
bool feed_seek_process(struct connection *c);
/* Can a newly announced thread be told from others when it counts? False: it is too new, and its
 * messages must wait until FEED_LOOK_NS after feed->looked_ns. */
bool feed_seek_thread(struct connection *c, pid_t tid);
/* The task of a thread; NULL: not known. The thread remembers it. */
struct task *feed_task_of(struct connection *c, struct program_thread *t);
/* Is a process in another pid namespace than ours? */
bool feed_has_other_pids(pid_t pid);

/* feed_place.c: find a place of OpenMP in its process, unless it was found before. task NULL: not known. 0 or -errno. */
int feed_find_frame(struct feed *f, struct task *task, const struct loop_counts *c);

/* feed_grant.c: give counters to a thread that was in a region, if it has none and may have them.
 * task: the thread's task. */
void feed_grant(struct connection *c, struct program_thread *t, const struct task *task);

/* feed_ask.c: the period at which programs of that user report, in ms. */
uint32_t feed_period_ms(const struct feed *f, uid_t uid);
/* Send a program its period; now: ask for a report at once. A program that does not read keeps its
 * old period. */
void feed_send_ask(struct connection *c, bool now);
/* Tell a program whether the tables of an object are wanted. */
void feed_send_want(struct connection *c, uint32_t object, bool wanted);
/* Wants or the limit changed: send the new period to programs for which it differs. */
void feed_tell_periods(struct feed *f);
