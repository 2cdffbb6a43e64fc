/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Requests: what a peer asked and is not answered yet
 *
 * One row per command (proto/command.inc): its control_<name>() either answers at once or leaves a
 * job behind, which lives until it has answered with Done or Failure. Answers go into the peer's
 * outgoing buffer; a job that has much to send does so from its `dispatch`, while the peer has room.
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

/* Descriptors that one job may wait for: rings of all harts, workers, targets. */
#define JOB_FDS_MAX (HARTS_MAX + 64)

/* What a job can do; every entry but free may be NULL. */
struct job_kind {
	/* Add to at most n entries of fds; returns how many. */
	size_t (*fds)(struct job *j, struct pollfd *fds, size_t n);
	/* When dispatch must run at the latest, CLOCK_MONOTONIC ns; 0: at once; UINT64_MAX: never. */
	uint64_t (*deadline_ns)(struct job *j, const struct request *q);
	/* A descriptor or the deadline is due. 0; JOB_DONE once answered to the end; -errno fatal. */
	int (*dispatch)(struct job *j, struct request *q, uint64_t now_ns);
	/* The client wants the results now. 0: they follow from dispatch; JOB_DONE; -errno. */
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
	struct job *job;         /* NULL: being answered at once */
	enum user_time time;     /* what the loop's time for its job is taken from */
	size_t n_fds;            /* entries that the job filled when it was last asked what it waits for */
};

/* Answer pieces. 0, ANSWER_FULL when the peer does not read what it was sent, or -errno. */
enum { ANSWER_FULL = 1 };
int request_ready(struct request *q, const char *note);
int request_progress(struct request *q, const char *what, uint64_t done, uint64_t total);
int request_bytes(struct request *q, const void *bytes, size_t n, uint64_t offset, uint64_t total);
int request_done(struct request *q, int status);
/* What failed, as one sentence that names the thing, and what to do about it ("" if nothing). */
int request_fail(struct request *q, Mperf__FailureKind kind, const char *remedy,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Parse the -e arguments of a request into *list. 0; positive after the peer was told what is wrong
 * with them; -errno. */
int request_parse_events(struct request *q, char *const *text, size_t n, struct event_list *list);

/* What the kernel says of this machine, and for control_options.cores which cores it has. 0; positive after the peer was told what cannot be read;
 * -errno. */
int request_read_machine(struct request *q, struct machine *ret_machine);

/* Refuse what only those may see who see everybody's samples; `what` is a sentence without its end,
 * such as "process 1 belongs to root". The remedy names the group to join. As request_fail. */
int request_refuse_group(struct request *q, const char *what);

/* Refuse for a limit of what its user holds. As request_fail. */
int request_refuse_limit(struct request *q, enum user_hold what);
/* Take n of what its user may hold. 0; positive after a refusal that names the limit; -errno. */
int request_take(struct request *q, enum user_hold what, uint64_t n);

/* The users whose programs that count themselves the peer may send requests to. */
struct feed_reach request_feed_reach(const struct request *q);

/* Take pids that are named twice out of a request's list, up to one more than REQUEST_PIDS_MAX,
 * which only says that there are more. Returns how many are left. */
#define REQUEST_PIDS_MAX 256 /* of one request: each is read, and held by a descriptor meanwhile */
size_t request_drop_twins(int32_t *pid, size_t n);

/* See that every pid lives and may be measured: in private mode by who we are, who may see the
 * whole system if `all`; in the service by the peer, who may name only what is wholly its user's
 * (attribute/rights.h) unless it sees all. 0; positive after a refusal that names the pid at fault,
 * or says that there are too many; -errno. */
int request_check_pids(struct request *q, const int32_t *pid, size_t n, bool all);

/* The same for what is opened in between: the processes are held, so that their pids stay theirs,
 * until request_recheck_pids, which says whether they are still the peer's. */
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

/* Open the sealed segment at path for a private peer. 0; positive after the peer was told why not;
 * -errno. */
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
/* An answer whose callbacks send to the request's peer; call row_stream_end after the last row. */
struct answer row_stream_answer(struct row_stream *s, struct request *q);
/* In an answer of several tables: call before each `columns`; sends what rows are left of the table
 * before it. 0, ANSWER_FULL, -errno; -EINVAL for a name of more than 23 bytes. */
int row_stream_table(struct row_stream *s, const char *name);
int row_stream_end(struct row_stream *s);

/* A moment of CLOCK_REALTIME for a column of UNIT_TIME; absent if it is not known (0, INT64_MAX). */
struct answer_moment {
	char text[40];
};
struct answer_value answer_moment(struct answer_moment *m, int64_t realtime_ns);

/* True while the peer's outgoing buffer has room for another chunk. */
bool request_has_room(const struct request *q);

/* The commands' own functions: 0 or -errno. *m is borrowed for the call. */
#define COMMAND(ID, name, summary) int control_##name(struct request *q, const Mperf__Request *m);
#include "proto/command.inc"
#undef COMMAND
