/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Requests of a peer that are not answered yet
 *
 * One row per command (proto/command.inc): its control_<name>() either answers at once or leaves a
 * job, which lives until it has sent Done or Failure. Answers go into the peer's outgoing buffer; a
 * job with much to send does so in its `dispatch`, while the peer has room.
 */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/control/user.h"
#include "daemon/query/query.h"
#include "proto/frame.h"

struct feed_reach;
struct peer;
struct request;
struct job;
struct sampler;

/* Maximum descriptors one job waits for: rings of all harts, workers, targets. */
#define JOB_FDS_MAX (HARTS_MAX + 64)

/* Operations of a job; all but free may be NULL. */
struct job_kind {
	/* Add to at most n entries of fds; returns how many. */
	size_t (*fds)(struct job *j, struct pollfd *fds, size_t n);
	/* When dispatch must run at the latest, CLOCK_MONOTONIC ns; 0: at once;
	 * UINT64_MAX: never. */
	uint64_t (*deadline_ns)(struct job *j, const struct request *q);
	/* A descriptor or the deadline is due. 0; JOB_DONE once the answer is complete; -errno
	 * fatal. */
	int (*dispatch)(struct job *j, struct request *q, uint64_t now_ns);
	/* Finish: the client wants its results now. 0: dispatch will send them; JOB_DONE;
	 * -errno. */
	int (*finish)(struct job *j, struct request *q);
	void (*free)(struct job *j);
};
enum { JOB_DONE = 1 };

struct job {
	const struct job_kind *kind;
};

struct request {
	struct peer *peer;
	uint32_t id;
	struct job *job;     /* NULL: being answered at once */
	enum user_time time; /* account for the loop time of its job */
	/* entries of fds that the job filled last */
	size_t n_fds;
};

/* Answer pieces. 0, ANSWER_FULL when the peer does not read what it was sent, or -errno. */
enum { ANSWER_FULL = 1 };
int request_ready(struct request *q, const char *note);
/* The same, with a note if the kernel allows less than the requested rate. */
int request_ready_to_sample(struct request *q, const struct sampler *s);
int request_progress(struct request *q, const char *what, uint64_t done, uint64_t total);
int request_bytes(struct request *q, const void *bytes, size_t n, uint64_t offset, uint64_t total);
/* Answer piece whose texts need not be UTF-8. */
int request_profile(struct request *q, const Mperf__Profile *part);
int request_done(struct request *q, int status);
/* Fail with one sentence that names what failed, and a remedy ("" if none). */
int request_fail(struct request *q, Mperf__FailureKind kind, const char *remedy, const char *format,
	...) __attribute__((format(printf, 4, 5)));

/* A copy of a request or a part of it, which the caller frees as protobuf-c does, or NULL: a job that runs
 * more than once keeps a copy. */
void *request_copy(const ProtobufCMessage *m);

/* Parse the -e arguments of a request into *list. 0; positive after a refusal that says what is
 * wrong with them; -errno. */
int request_parse_events(struct request *q, char *const *text, size_t n, struct event_list *list);

/* The labels of a request, "KEY=VALUE", as JSON (proto/syntax/label.h), which the caller frees. 0; positive after a
 * refusal that says what is wrong with them, also if there are none; -errno. */
int request_read_labels(struct request *q, char *const *text, size_t n, char **ret_json);

/* Read the kernel's facts about this machine, and with control_options.cores its kinds of core. 0;
 * positive after a refusal that names what cannot be read; -errno. */
int request_read_machine(struct request *q, struct machine *ret_machine);

/* Refuse a request that only peers that see all users' samples may make; `what` is a sentence
 * without a full stop, such as "process 1 belongs to root". The remedy names the group to join. As
 * request_fail. */
int request_refuse_group(struct request *q, const char *what);

/* Refuse, since its user is at this limit. As request_fail. */
int request_refuse_limit(struct request *q, enum user_hold what);
/* Charge n to its user. 0; positive after a refusal that names the limit; -errno. */
int request_take(struct request *q, enum user_hold what, uint64_t n);

/* The users to whose instrumented programs the peer may send requests. */
struct feed_reach request_feed_reach(const struct request *q);

/* The user whose tasks are sampled faster if the peer requests a higher rate: its own user; -1: all
 * users, if it sees all. */
uid_t request_raise_uid(const struct request *q);

/* Is /proc there? Without it no process is found, and mperfd does not find its own files. */
#define NO_PROC_SAYS "/proc is not mounted here, and without it no process can be looked at"
#define NO_PROC_REMEDY "Mount it: mount -t proc proc /proc."
bool request_has_proc(void);
/* Fail because mperf-namer cannot be started: it or /proc is missing. As request_fail. */
int request_fail_namer(struct request *q);

/* Remove duplicate pids from a request's list. Returns how many are left, at most one more than
 * REQUEST_PIDS_MAX, which means "too many". */
#define REQUEST_PIDS_MAX 256 /* per request: each is read, and held by a descriptor meanwhile */
size_t request_drop_twins(int32_t *pid, size_t n);

/* Check that every pid exists and may be measured. In private mode our own rights decide, for the
 * whole system if `all`; in the service the peer's: unless it sees all, it may name only processes
 * that belong wholly to its user (attribute/rights.h). 0; positive after a refusal that names the
 * offending pid or says that there are too many; -errno. */
int request_check_pids(struct request *q, const int32_t *pid, size_t n, bool all);

/* The same around opening events: hold the processes, so that their pids are not reused, until
 * request_recheck_pids checks whether they still belong to the peer. Call held_pids_clear also
 * after a refusal, since some may be held already. */
struct held_pids {
	size_t n;
	struct held_pid {
		int32_t pid;
		int fd; /* a pidfd */
	} held[REQUEST_PIDS_MAX];
};
int request_hold_pids(
	struct request *q, const int32_t *pid, size_t n, bool all, struct held_pids *ret_held);
int request_recheck_pids(struct request *q, const struct held_pids *held, bool all);
void held_pids_clear(struct held_pids *held);

/* May the file at path be read for the peer? Only a private daemon reads files. 0; positive after a refusal; -errno. */
int request_check_file(struct request *q, const char *path);
/* Open the sealed segment at path for a private peer. 0; positive after a refusal; -errno. */
int request_open_segment(struct request *q, const char *path, sqlite3 **ret_db);

/* Rows of one answer, gathered into chunks of FRAME_CHUNK_BYTES. */
struct row_stream {
	struct request *request;
	size_t n_columns;
	Mperf__Row **row;
	size_t n_rows, size;
	size_t bytes;
	char table[24]; /* of the next Columns */
};
/* An answer whose callbacks send to the request's peer. Call row_stream_end after the last row. */
struct answer row_stream_answer(struct row_stream *s, struct request *q);
/* In an answer of several tables: call before each `columns`; sends the remaining rows of the
 * previous table. 0, ANSWER_FULL, -errno; -EINVAL for a name of more than 23 bytes. */
int row_stream_table(struct row_stream *s, const char *name);
int row_stream_end(struct row_stream *s);
/* End the answer. If r, the last result of its callbacks, is 0, end the request too. 0 or
 * -errno. */
int row_stream_done(struct row_stream *s, int r);

/* True while the peer's outgoing buffer has room for another chunk. */
bool request_has_room(const struct request *q);

/* The commands' own functions: 0 or -errno. *m is borrowed for the call. */
#define COMMAND(ID, name, summary) int control_##name(struct request *q, const Mperf__Request *m);
#include "proto/command.inc"
#undef COMMAND
