/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The feed: instrumented programs connect, report and leave
 *
 *      program ── SEQPACKET ──▶ feed ── counts of (task, loop, region) ──▶ take
 *         ▲                      │
 *         └──────── ASK ─────────┘
 *
 * A program's identity comes from its socket (SO_PEERCRED), never from its messages, and its
 * threads must be threads of that process. Reading is charged to the user, whose programs are then
 * not read for ten times as long: they continue to count and report later. One program has half of
 * its user's share, which leaves time for the user's other programs.
 */

#include <sys/types.h>

#include "daemon/attribute/sweep.h"
#include "daemon/loops/grant.h"
#include "daemon/loops/program.h"

/* The share of loop time for all programs of one user: one part in this many. */
#define FEED_LOOP_SHARE 10u
/* Number of such shares for the programs of all users together. If more users spend at the same
 * time, each has less. */
#define FEED_LOOP_SHARES 3u
/* The same for one program. */
#define FEED_CONNECTION_SHARE (2 * FEED_LOOP_SHARE)
/* Time by which a user may exceed that share: enough for the tables of a starting program, and a
 * round. */
#define FEED_AHEAD_NS 500000000u
/* Packets read from one program before the next; the time after which the next program is read in
 * any case; and the time of all programs before the loop continues. */
#define FEED_PACKETS_TURN 32u
#define FEED_TURN_NS 4000000u
#define FEED_ROUND_NS 12000000u
#define FEED_EVENTS_TURN 64
#define FEED_HELLO_NS 10000000000u /* until hello must have arrived; programs send it at once */
/* Looking for an unknown thread drains all rings or reads a folder. */
#define FEED_LOOK_NS 100000000u
/* Threads of a program in another pid namespace whose numbers are read: the loop waits for some 20 µs each. Counts of
 * further threads go to the process as a whole. */
#define FEED_TIDS_MAX 2048u
/* Interval at which a program may wait for such a look, which identifies its new threads: a program
 * that starts threads all the time is not delayed. */
#define FEED_WAIT_NS 1000000000u
#define FEED_WANTS_MAX 4096

struct feed_limits {
	uint32_t programs_max, programs_per_user_max;
	uint64_t program_bytes_max; /* of one program: tables and sums */
	uint64_t bytes_max;         /* of all programs; one user may have half of it */
	uint32_t period_ms;         /* at which programs report */
	bool one_user;              /* no other users, so all of it may be used */
};

struct feed_options {
	int listen_fd; /* a listening socket; borrowed */
	struct feed_limits limits;
	struct task_table *tasks; /* borrowed */
	struct loop_sites *sites; /* borrowed; outlives all holders of sites */
	struct grants *grants;    /* borrowed; NULL: nothing is granted */
	/* borrowed; finds places of OpenMP in processes; NULL: places have no names */
	struct attribute *attribute;
	/* borrowed; tables above our limits are counted there, since all loops of theirs are missing;
	 * NULL: they are counted as causes alone */
	uint64_t *lost_tables;
	/* Take counts. task: the task that counted; NULL: not known. 0 or -errno. */
	int (*take)(void *userdata, struct task *task, const struct loop_counts *c);
	/* Bring `tasks` up to date. 0 or -errno. NULL: it is up to date. */
	int (*catch_up)(void *userdata);
	void *userdata;
};

struct feed;

int feed_new(const struct feed_options *o, struct feed **ret_feed);

/* Readable when there is work, except what the deadline covers. */
int feed_fd(const struct feed *f);
uint64_t feed_deadline_ns(const struct feed *f);
/* Do a bounded amount of work; call again for the rest. 0 or -errno, never because of a
 * program. */
int feed_dispatch(struct feed *f, uint64_t now_ns);

/* At the end: also read programs of users who have used up their share, since there is no later
 * turn. 0 or -errno. */
int feed_resume(struct feed *f);

/* Read what is in the sockets now, for at most FEED_SETTLE_TURNS turns and most_ns of the thread's
 * time, also from programs that wait for a look; users who have used up their share still wait. 0
 * or -errno. */
#define FEED_SETTLE_TURNS 256
#ifdef __SANITIZE_ADDRESS__
#define FEED_SETTLE_NS 150000000u /* sanitizers take six times as long */
#else
#define FEED_SETTLE_NS 25000000u /* when the loop goes on afterwards */
#endif
/* Number of looks: one for the programs, one for the threads that they report. */
#define FEED_SETTLE_LOOKS 2u
int feed_settle(struct feed *f, uint64_t now_ns, uint64_t most_ns);

void feed_set_limits(struct feed *f, const struct feed_limits *limits);

/* Programs that a client reaches: those of one user, or of all. */
struct feed_reach {
	bool all;
	uid_t uid;
};

/* Request that the programs in reach report at least this often from now on; 0: withdraw the
 * request (reach NULL). `who` is any address that belongs to the caller. 0 or -ENOMEM. */
int feed_want_period(
	struct feed *f, const void *who, const struct feed_reach *reach, uint32_t period_ms);

/* Request a round at once from one program in reach, by its pid, or from all of them (0). Returns
 * the number of programs asked. */
uint32_t feed_ask(struct feed *f, const struct feed_reach *reach, pid_t pid);

/* Choice of the functions with two bodies that count from now on (MPERF_SELECT). */
#define FEED_GLOBS_BYTES_MAX 2048u /* the most that programs accept */
struct feed_selection {
	uint32_t one_in;      /* count one in this many entries; 1: each; 0: none */
	const char *globs;    /* each ended by NUL */
	uint32_t globs_bytes; /* at most FEED_GLOBS_BYTES_MAX; 0: all functions */
};
/* Send it to a program, on behalf of the user who owns it, or root. 0, or why not. */
enum { FEED_NO_PROGRAM = 1, FEED_NOT_YOURS };
int feed_select(struct feed *f, pid_t pid, uid_t by, const struct feed_selection *selection);

/* CPU time that the loop's thread has spent for programs since the start. */
uint64_t feed_spent_ns(const struct feed *f);

/* Rounds received since the start. */
uint64_t feed_rounds(const struct feed *f);

/* Before a sweep: mark the tasks that the feed holds, and the frames of all places. */
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
