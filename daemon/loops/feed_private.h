/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The feed's internals: users, connections, and the task of each thread */

#include "daemon/loops/feed.h"
#include "daemon/loops/table_cache.h"

/* Limits of threads that get counters while their programs are connected, of one program, and of
 * all programs of one user: each holds at most four events, of a kilobyte or more in the kernel. */
#define FEED_GRANTS_MAX 1024u
#define FEED_GRANTS_PER_USER_MAX 4096u
/* Interval at which we retry a program whose socket is full. */
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

/* The process of a connection and its threads' numbers; private to feed_task.c. */
struct connection_process {
	struct task *task;    /* NULL: not found (yet) */
	bool sought;          /* we have looked for it, found or not */
	bool other_pids;      /* its pid namespace is not ours */
	struct tid_pair *tid; /* with other_pids: its threads, sorted by inner; NULL: never read */
	uint32_t n_tids, size_tids;
	uint64_t tids_ns;   /* when they were read; 0: never */
	uint64_t waited_ns; /* when it last waited for an unknown thread; 0: never */
	uint64_t n_looks;   /* number of looks when it connected */
};

struct connection {
	struct feed *feed;
	int fd;
	bool descriptors_may_come; /* aside/descriptors.h */
	pid_t pid;                 /* in our pid namespace; 0: not visible there */
	gid_t gid;                 /* of the connecting process */
	struct feed_user *user;
	struct program *program;
	struct connection_process process;
	bool has_threads;  /* the program has announced a thread */
	bool paused;       /* not read before resume_ns */
	bool waits;        /* paused only until the next look */
	uint32_t n_grants; /* threads that got counters */
	uint32_t sent_ms;  /* the period that it has; 0: it has not greeted */
	uint64_t resume_ns;
	uint64_t spent_until_ns; /* like its user's, for its own share */
	uint64_t came_ns;
	struct connection *next;
};

/* Report periods that clients request; feed_ask.c's. */
struct feed_wants {
	struct feed_want {
		const void *who;
		struct feed_reach reach;
		uint32_t period_ms;
	} *want;
	size_t n, size;
};

/* Looks for threads, and the time that they took; feed_task.c's. */
struct feed_looks {
	uint64_t last_ns, n;
	uint64_t looking_ns; /* charged to nobody */
	uint64_t reading_ns; /* time for which our threads read /proc for programs */
};

struct feed {
	struct feed_options o;
	int epoll_fd;
	struct aside *closers; /* of sockets */
	struct connection *connections;
	uint32_t n_connections;
	struct feed_user *users;
	uint32_t n_spenders;  /* users who owe time now */
	struct budget budget; /* of all */
	struct table_cache cache;
	uint64_t causes[N_FEED_CAUSES];
	uint64_t n_accepted, n_hung_up, n_rounds;
	uint64_t now_ns; /* of the current dispatch */
	struct feed_looks looks;
	uint64_t spent_ns;         /* total time spent for programs, with that, without looking */
	uint64_t listen_at_ns;     /* accept no connection before; 0: accept now */
	uint64_t accepts_until_ns; /* like a user's spent_until_ns, of accepting */
	struct feed_wants wants;
	uint8_t packet[MPERF_PACKET_BYTES_MAX];
};

/* Begin and end with the process of a connection. */
void feed_process_begin(struct connection *c);
void feed_process_clear(struct connection *c);
/* Bring the tasks up to date, no matter when we last did. */
void feed_look(struct feed *f);
/* The earliest time of the next look. */
uint64_t feed_next_look_ns(const struct feed *f);
/* Clock of the time that programs are charged for. */
uint64_t feed_charged_ns(const struct feed *f);
/* Find the process of the connection, using what is known after it connected. False: no look has
 * happened since; try again at feed_next_look_ns. */
bool feed_seek_process(struct connection *c);
/* Can a newly announced thread be identified when it counts? False: it is too new, and its messages
 * must wait until feed_next_look_ns. */
bool feed_seek_thread(struct connection *c, pid_t tid);
/* The task of a thread; NULL: not known. The thread remembers it. */
struct task *feed_task_of(struct connection *c, struct program_thread *t);

/* feed_place.c: find a place of OpenMP in its process, unless it was found before. task NULL: not known. 0 or -errno. */
int feed_find_frame(struct feed *f, struct task *task, const struct loop_counts *c);

/* feed_grant.c: give counters to a thread that was in a region, if it has no counters and may have
 * them. task: the thread's task. */
void feed_grant(struct connection *c, struct program_thread *t, const struct task *task);

/* feed_ask.c: the period at which programs of that user report, in ms. */
uint32_t feed_period_ms(const struct feed *f, uid_t uid);
/* Send a program its period if it has another. */
void feed_send_period(struct connection *c);
/* Send a program whether the tables of an object are wanted. */
void feed_send_want(struct connection *c, uint32_t object, bool wanted);
/* Wants or the limit changed: send the new period to programs for which it differs. */
void feed_send_periods(struct feed *f);
