/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Offload: a job answered by a process of its own
 *
 * What may take longer than a few milliseconds (a query over a week, a roll-up) is done by a forked
 * child that has nothing but copies: no perf event, no socket, no capability, a limit of memory and
 * of time. What it answers goes into a file that has no name, so it never waits for the peer, and
 * its place is free once it has answered. The daemon passes the frames on as the peer reads.
 * A child that dies is a failure of its request, nothing else.
 *
 *      peer ◀── frames ── job ◀── file ◀── child (reads the store)
 *                          └── notes: what only the daemon is to know
 */

#include <sys/types.h>

#include "daemon/control/request.h"

#define OFFLOAD_BYTES_MAX (2ull << 30)  /* RLIMIT_DATA of a child: a million rows take 10 MB, a week of 64 harts 200 */
#define OFFLOAD_SECONDS_MAX 120         /* RLIMIT_CPU */
/* Of one answer: a quarter of what its user has left in the cache folder, within these. A flame graph
 * of 200,000 nodes is 20 MB, and most answers are some KB. */
#define OFFLOAD_FILE_BYTES_MIN (1u << 20)
#define OFFLOAD_FILE_BYTES_MAX (256u << 20)
#define OFFLOAD_NOTE_BYTES_MAX 1024     /* longer ones are cut */

/* --- a process without a peer ------------------------------------------------------------------- */

struct offload;

/* In the child: do it. The return value, 0 to 255, is the exit status. */
typedef int offload_plain_function(void *userdata);

/* Fork a child that runs `run` with the limits above and a lower priority; in it userdata is as it
 * was at the call. It may open SQLite files, also those that we have open. 0, -errno. */
int offload_run(offload_plain_function *run, void *userdata, struct offload **ret_offload);

/* Readable once the child has ended. Borrowed. */
int offload_fd(const struct offload *o);
pid_t offload_pid(const struct offload *o);

/* How a child ended: by exit status, or by a signal (then status is -1; SIGKILL and SIGXCPU may be
 * its own limits). */
struct offload_end {
	int status;
	int signal; /* 0: none */
};
/* 0 with *ret_end once it has ended (and again at each later call); OFFLOAD_RUNNING. */
enum { OFFLOAD_RUNNING = 1 };
int offload_poll(struct offload *o, struct offload_end *ret_end);

/* Kill it where it still runs, and wait for that. */
struct offload *offload_free(struct offload *o);

/* --- a request answered by a process ------------------------------------------------------------- */

/* In the child: answer, to the end (Done or Failure). `q` is like the request, and whatever is sent to
 * it goes into the file. 0, or -errno, which the peer gets as a failure. */
typedef int offload_function(struct request *q, void *userdata);

struct offload_answer {
	offload_function *run;
	void (*release)(void *userdata);                  /* frees userdata; NULL: nothing to free */
	/* In the daemon: what the child said by offload_note(); may be NULL. */
	void (*note)(struct request *q, void *userdata, const char *text);
	bool keeps_capabilities;                          /* of those that try events out */
};

/* Leave a job in q whose answers a child will give, as soon as it is its turn. Takes over userdata,
 * whatever comes back; *a must live on (static). In a private daemon, which has nobody else to
 * serve, `run` is called at once and in place. 0, -errno; with too many waiting the peer is told,
 * and 0. */
int offload_start(struct request *q, const struct offload_answer *a, void *userdata);

/* In the child: tell the daemon, not the peer, a line of text. 0, -errno. */
int offload_note(struct request *q, const char *text);

/* --- whose turn it is: one per server ----------------------------------------------------------- */

struct offload_job;
struct offload_child;

struct offload_queue {
	struct offload_child *children;  /* that run, or were killed and are not gone yet */
	uint32_t n_children;
	struct offload_job *waiting;     /* in the order of their coming */
	uint32_t n_waiting;
};

/* Reap, and start the next, n_max at most at once: of the users who may have one more, the one with
 * the fewest that run, and of those the one who waits longest since the last. 0, -errno. */
int offload_queue_tend(struct offload_queue *u, uint32_t n_max);
/* When to tend it at the latest: soon, while killed children are not gone, or others wait. */
uint64_t offload_queue_deadline_ns(const struct offload_queue *u, uint64_t now_ns);
/* Kill and wait for all children. All jobs have been freed. */
void offload_queue_clear(struct offload_queue *u);
