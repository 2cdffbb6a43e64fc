/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The feed: programs that count themselves, as they connect, tell and go
 *
 *      program ── SEQPACKET ──▶ feed ── counts of (task, loop, region) ──▶ take
 *         ▲                      │
 *         └──────── ASK ─────────┘
 *
 * Who a program is comes from its socket (SO_PEERCRED), never from what it says, and its threads
 * are only taken for threads of that process. What reading costs is charged to the user, who is not
 * read any more for ten times as long: his programs go on counting, and tell it later. One program
 * has half of its user's share, so that it leaves time for his others.
 */

#include <sys/types.h>

#include "daemon/attribute/sweep.h"
#include "daemon/loops/grant.h"
#include "daemon/loops/program.h"

/* Of all programs of one user, of the time of the loop. */
#define FEED_LOOP_SHARE 10u
/* Of one of them. */
#define FEED_CONNECTION_SHARE (2 * FEED_LOOP_SHARE)
/* What a user may be ahead of that: a program's tables when it starts, and a round. */
#define FEED_AHEAD_NS 500000000u
/* Packets of one program before the others have their turn; the time after which they have it
 * anyhow; and the time of all programs after which the rest of the loop has its turn. */
#define FEED_PACKETS_TURN 32u
#define FEED_TURN_NS 4000000u
#define FEED_ROUND_NS 12000000u
#define FEED_EVENTS_TURN 64
#define FEED_HELLO_NS 10000000000u /* until its hello must have come; programs say it at once */
/* Looking for a thread that is not known yet empties all rings, or reads a folder. */
#define FEED_LOOK_NS 100000000u
/* A program waits for such a look, so that new threads are told apart, once in so long: one that
 * begins threads all the time is not held up. */
#define FEED_WAIT_NS 1000000000u
#define FEED_WANTS_MAX 4096

struct feed_limits {
	uint32_t programs_max, programs_per_user_max;
	uint64_t program_bytes_max; /* of one program: tables, and what is being added up */
	uint64_t bytes_max;         /* of all; one user may have half of it */
	uint32_t period_ms;         /* at which programs are to tell */
};

struct feed_options {
	int listen_fd; /* of a socket that listens; borrowed */
	struct feed_limits limits;
	struct task_table *tasks; /* borrowed */
	struct loop_sites *sites; /* borrowed; outlives who holds sites */
	struct grants *grants;    /* borrowed; NULL: nothing is granted */
	/* Something was counted. task: whose it is; NULL: not known. 0 or -errno. */
	int (*take)(void *userdata, struct task *task, const struct loop_counts *c);
	/* Let all that happened until now be known to `tasks`. 0 or -errno. NULL: it is. */
	int (*catch_up)(void *userdata);
	void *userdata;
};

struct feed;

int feed_new(const struct feed_options *o, struct feed **ret_feed);

/* Readable when there is something to do, but for what the deadline is for. */
int feed_fd(const struct feed *f);
uint64_t feed_deadline_ns(const struct feed *f);
/* A bounded amount; the rest is had by calling again. 0 or -errno, never because of a program. */
int feed_dispatch(struct feed *f, uint64_t now_ns);

/* At the end: read also those who have used up their share, for there is no later. 0 or -errno. */
int feed_resume(struct feed *f);

/* Read what waits in the sockets by now, as far as FEED_SETTLE_TURNS go, also of those who wait for
 * a look, for at most most_ns of the thread's time; a user who has used up the share goes on
 * waiting. 0 or -errno. */
#define FEED_SETTLE_TURNS 256
#ifdef __SANITIZE_ADDRESS__
#define FEED_SETTLE_NS 150000000u /* sanitizers take six times as long */
#else
#define FEED_SETTLE_NS 25000000u /* where the loop goes on after it */
#endif
/* One for the programs, one for the threads that they tell of. */
#define FEED_SETTLE_LOOKS 2u
int feed_settle(struct feed *f, uint64_t now_ns, uint64_t most_ns);

void feed_set_limits(struct feed *f, const struct feed_limits *limits);

/* Whose programs a client reaches: one user's, or everybody's. */
struct feed_reach {
	bool all;
	uid_t uid;
};

/* Want the programs in reach to report at least this often from now on; 0: no more (reach NULL).
 * `who` is any address of the caller's own. 0 or -ENOMEM. */
int feed_want_period(
	struct feed *f, const void *who, const struct feed_reach *reach, uint32_t period_ms);

/* Ask for a round at once: a program in reach by its pid, or all of them (0). Returns how many were
 * asked. */
uint32_t feed_ask(struct feed *f, const struct feed_reach *reach, pid_t pid);

/* What functions in two bodies are to count from now on (MPERF_SELECT). */
#define FEED_GLOBS_BYTES_MAX 2048u /* as programs take at most */
struct feed_selection {
	uint32_t one_in;      /* of so many entries one; 1: each; 0: none */
	const char *globs;    /* each ended by NUL */
	uint32_t globs_bytes; /* at most FEED_GLOBS_BYTES_MAX; 0: all functions */
};
/* Tell it a program, for a user who owns it, or root. 0, or why not. */
enum { FEED_NO_PROGRAM = 1, FEED_NOT_YOURS };
int feed_select(struct feed *f, pid_t pid, uid_t by, const struct feed_selection *selection);

/* Rounds that came since it began. */
uint64_t feed_rounds(const struct feed *f);

/* Before a sweep: the tasks that it holds. */
void feed_mark(struct feed *f, struct sweep *s);

struct feed_status {
	uint32_t n_programs;            /* now */
	uint64_t n_accepted, n_hung_up; /* so far */
	uint64_t n_rounds;
	uint64_t bytes; /* in use */
	uint32_t n_sites;
	const uint64_t *causes; /* N_FEED_CAUSES; borrowed */
};
void feed_status(const struct feed *f, struct feed_status *ret_status);

struct feed *feed_free(struct feed *f);
