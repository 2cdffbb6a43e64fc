/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A worker: one process of mperf-namer, and the killed ones that have not ended yet
 *
 * It has one request at a time. The caller passes the time, CLOCK_MONOTONIC. Only worker.c touches the members of
 * struct worker.
 */

#include <sys/types.h>
#include <sys/uio.h>

#include "daemon/namer/message.h"
#include "daemon/naming/namer.h"

#define WORKER_START_TIMEOUT_NS 10000000000u /* to exec and say hello, on a loaded board */
/* delay before a restart if no file caused the failure, … */
#define WORKER_DELAY_NS 100000000ull
#define WORKER_DELAY_MAX_NS 30000000000ull /* … doubled at each consecutive failure, up to this */
/* consecutive failures, over some seconds, after which names are not awaited */
#define WORKER_FAILURES_MAX 6u
#define WORKER_STARTS_MAX 16u /* burst of restarts because of files or stacks; … */
/* … then at most two per second, about 10 ms of CPU each */
#define WORKER_START_EVERY_NS 500000000ull

enum worker_state {
	WORKER_DEAD,
	WORKER_STARTING, /* no hello yet */
	WORKER_IDLE,
	WORKER_BUSY,
	WORKER_BROKEN, /* request not delivered: the worker was gone before it */
};

/* The way in which a worker ended. */
enum worker_end {
	WORKER_OVER_TIME,
	WORKER_DIED,    /* on its own: crash, sandbox, memory */
	WORKER_KILLED,  /* by a SIGKILL that was not ours: an administrator, or the OOM killer */
	WORKER_INVALID, /* sent an invalid message */
};

struct worker {
	enum worker_role role;
	enum worker_state state;
	pid_t pid;
	int fd;
	uint32_t serial; /* of the last request */
	uint64_t deadline_ns;
	/* counts starts: a restarted worker has nothing of what its predecessor received */
	uint32_t generation;
	uint32_t restarts;
	uint32_t failures; /* consecutive: ended without a request, or could not be started */
	uint64_t start_ns; /* dead: when to start it again; UINT64_MAX: never */
	uint64_t ended_ns; /* when it last ended; 0: never */
	/* start of the request: CLOCK_MONOTONIC, and the worker's CPU clock */
	uint64_t asked_ns, asked_cpu_ns;
	uint64_t starts_ns; /* rate limit of starts: theoretical arrival time (GCRA) */
	int error;          /* why it could not be started; 0 */
};

/* A worker that does not run yet. */
struct worker worker_of(enum worker_role role);
/* Start it, or schedule the next attempt. -errno: no attempt can succeed. */
int worker_start(struct worker *w, const char *binary, const struct graves *g, uint64_t now_ns);
/* Kill it, close its socket and leave it to be reaped. uid: the user of its request, (uid_t)-1:
 * none. */
void worker_kill(struct worker *w, struct graves *g, uid_t uid);
/* Schedule the restart of a worker that ended: at once within the rate limit if a user's request
 * ended it; else with a growing delay. */
void worker_ended(struct worker *w, bool over_question, uint64_t now_ns);
/* Did it fail so often that names are not awaited any more? */
bool worker_is_down(const struct worker *w);
/* Reset the failures of a worker that runs again. */
void worker_recovered(struct worker *w);
/* Reset the count of failures: the worker answered. */
void worker_answered(struct worker *w);
/* Time since the request. */
uint64_t worker_wall_ns(const struct worker *w, uint64_t now_ns);
/* CPU time since the request, in ns; if it cannot be read, the elapsed time. */
uint64_t worker_used_ns(const struct worker *w, uint64_t now_ns);
/* When to call again: its deadline, or the time of the next attempt to start it. */
uint64_t worker_deadline_ns(const struct worker *w);
/* Is it past the deadline of its request? A worker that used less CPU time than limit_ns gets a later deadline if it
 * is runnable, or if it sleeps until at most wall_ns after the request; 0: it may not sleep. */
bool worker_is_over_time(struct worker *w, uint64_t limit_ns, uint64_t wall_ns, uint64_t now_ns);
/* Is it running or runnable? Exported for tests. */
bool worker_is_runnable(const struct worker *w);
static inline enum worker_state worker_state(const struct worker *w)
{
	return w->state;
}
/* To poll; -1: it does not run. */
static inline int worker_fd(const struct worker *w)
{
	return w->fd;
}
/* Does it wait for a request? Does it wait or work? */
static inline bool worker_is_idle(const struct worker *w)
{
	return w->state == WORKER_IDLE;
}
static inline bool worker_runs(const struct worker *w)
{
	return w->state >= WORKER_IDLE;
}
/* The number of its starts: files that an earlier generation received are lost. 0: never
 * started. */
static inline uint32_t worker_generation(const struct worker *w)
{
	return w->generation;
}
/* Fields of the worker that namer_status shows. */
struct namer_worker_status worker_status(const struct worker *w);
/* The number of killed workers that worked for that user. */
uint32_t graves_of(const struct graves *g, uid_t uid);
/* Reap those that have ended. */
void graves_visit(struct graves *g);
/* The same at the end: gives killed workers a few milliseconds to end. Workers that take longer
 * move to `later` (NULL: they stay until we end). */
void graves_leave(struct graves *g, struct graves *later);
/* The end of a worker, after its socket closed. Waits a few milliseconds at most. */
enum worker_end worker_autopsy(struct worker *w);
/* Send a request; fills in the head in iov[0]. 0, or -errno with the worker in WORKER_BROKEN. */
int worker_ask(struct worker *w, enum message_type type, struct iovec *iov, size_t n_iov, int fd,
	uint64_t deadline_ns);
/* Receive one answer. Returns its bytes, -EAGAIN, 0: gone, -EBADMSG: invalid. Handles hellos
 * itself. */
ssize_t worker_hear(struct worker *w, void *buffer, size_t size, int *ret_fd);
int worker_find_binary(const char *given, char **ret_path);
