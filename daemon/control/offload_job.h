/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Offload jobs: requests answered by a child process
 *
 * The child (child/offload.h) writes its answer to an unnamed file, so it never waits for the peer,
 * and makes room for the next child once it has answered. The daemon passes the frames on as the
 * peer reads. If a child dies, only its request fails.
 *
 *      peer ◀── frames ── job ◀── file ◀── child (reads the store)
 *                          └── notes: for the daemon only
 */

#include "daemon/control/request.h"

/* Size limit of one answer: a quarter of what its user has left in the cache folder, within this
 * range. A flame graph of 200,000 nodes takes 20 MB, most answers a few KB. */
#define OFFLOAD_FILE_BYTES_MIN (1u << 20)
#define OFFLOAD_FILE_BYTES_MAX (256u << 20)
#define OFFLOAD_NOTE_BYTES_MAX 1024 /* longer ones are cut */

/* In the child: send the whole answer (up to Done or Failure). `q` acts as the request; messages
 * sent to it go into the file. 0, or -errno, which the peer gets as a failure. */
typedef int offload_function(struct request *q, void *userdata);

struct offload_answer {
	offload_function *run;
	/* frees userdata; NULL: nothing to free */
	void (*release)(void *userdata);
	/* In the daemon: receives a line of offload_note(); may be NULL. */
	void (*note)(struct request *q, void *userdata, const char *text);
	bool keeps_capabilities; /* for children that probe events */
};

/* Leave a job in q; a child answers it when its turn comes. Takes over userdata on any return; *a
 * must stay valid (static). A private daemon has no other client, so it calls `run` at once and in
 * place. 0, also if too many wait already (then the peer gets a failure); -errno. */
int offload_start(struct request *q, const struct offload_answer *a, void *userdata);

/* In the child: send a line of text to the daemon, not to the peer. 0, -errno. */
int offload_note(struct request *q, const char *text);

/* --- whose turn it is: one per server --------------------------------------------------------- */

struct offload_job;
struct offload_child;

struct offload_queue {
	struct offload_child *children; /* running, or killed and not reaped yet */
	uint32_t n_children;
	struct offload_job *waiting; /* in the order of arrival */
	uint32_t n_waiting;
};

/* Reap children and start the next ones, with at most n_max running. The next child goes to a user
 * who may have one more: the one with the fewest running, and among equals the one served longest
 * ago. 0,
 * -errno. */
int offload_queue_tend(struct offload_queue *u, uint32_t n_max);
/* The latest time of the next tend: soon if killed children are not reaped yet or others wait. */
uint64_t offload_queue_deadline_ns(const struct offload_queue *u, uint64_t now_ns);
/* Kill and wait for all children. All jobs have been freed. */
void offload_queue_clear(struct offload_queue *u);
