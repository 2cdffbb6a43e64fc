/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shares: the number of bytes that each user may add to the store
 *
 *      rate ──▶ pool ──▶ balance of each user who is there ──▶ detail of that user's samples
 *
 * The pool fills at the rate that the budget can sustain. It is divided equally among the active
 * users; what one does not need goes to the others. A user whose balance is used up loses detail,
 * never samples: callers first, then threads, then functions, then processes. The labels of jobs
 * are small, and stay: the data that keeps jobs separate has its own space.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Users with a balance of their own; further users share one. */
#define SHARE_USERS_MAX 256

/* Size of a row in the store, to charge it before it is written. Measured on a segment of a build:
 * bytes of each table's pages divided by its rows (sqlite3_analyzer), without strings. */
#define SHARE_SAMPLE_BYTES 30
#define SHARE_READING_BYTES 14
#define SHARE_NODE_BYTES 14
#define SHARE_FRAME_BYTES 16
#define SHARE_PLACE_BYTES 12
#define SHARE_NAME_BYTES 8  /* and its text */
#define SHARE_FILE_BYTES 40 /* and its path */
#define SHARE_TASK_BYTES 60 /* and its strings */
#define SHARE_COUNT_BYTES 16
#define SHARE_SITE_BYTES 40 /* and its strings */

/* Replaces the functions of a process whose user is over the share. */
#define SHARE_FUNCTION_FOLDED "(over the user's share)"

/* How much detail a user's samples keep. Each level also drops what the levels before it drop. */
enum share_level {
	SHARE_WHOLE,
	SHARE_LEAF,    /* callers are left out, long names are cut */
	SHARE_PROCESS, /* threads are merged into their process */
	SHARE_FOLDED,  /* all functions of a process are merged into one */
	SHARE_MERGED, /* all processes of the user are merged into one for each job, and one for the rest */
	N_SHARE_LEVELS,
};
const char *share_level_says(enum share_level level); /* "whole", "no callers"; static */

struct share_user {
	uid_t uid;
	int64_t balance; /* bytes; below 0: over the share */
	uint64_t bytes;  /* charged since the service began */
	uint64_t n_cut;  /* samples kept with less detail */
	int64_t jobs; /* bytes that kept the jobs of merged processes apart, and are not refilled yet */
	uint64_t n_unlabelled; /* of n_cut: without their job, since there was no room for it */
	uint32_t seen;         /* value of n_refills at the last charge */
};

struct shares {
	uint64_t rate; /* bytes per second added to the pool */
	int64_t pool, pool_max;
	uint64_t filled_ns; /* CLOCK_MONOTONIC; 0: never */
	uint32_t n_refills;
	struct share_user user[SHARE_USERS_MAX];
	size_t n_users, last; /* last: index of the last lookup */
};

/* Set the rate of one tier of a store: files take `used` of `budget` bytes, and each file is kept
 * for keep_ns. The rate is chosen so that `used` never reaches `budget`. The first call fills the
 * pool. */
struct share_room {
	uint64_t budget, used, keep_ns;
	uint64_t file_ns; /* time span of one file; each file stores all its names again */
};
void shares_allow(struct shares *s, const struct share_room *room);

/* Once per flush: distribute what was added since the last call. */
void shares_refill(struct shares *s, uint64_t now_ns);

/* Find or create the user's account; users beyond SHARE_USERS_MAX share that of (uid_t)-1. O(users)
 * at worst, one comparison if the user is the same as last time. Borrowed until the next call. */
struct share_user *share_user(struct shares *s, uid_t uid);

/* Charge bytes that were or will be written for this user. s may be NULL: nobody has a limit. */
void share_charge(struct shares *s, uid_t uid, uint64_t bytes);

/* At SHARE_MERGED: is there room to keep the samples of a job separate? has_begun: some of its
 * samples were kept so. Beyond a user's balance, the data for separate jobs may take an equal share
 * of what all users may add in the time of a file. The second half of it is reserved for jobs that
 * have begun, so that a new job does not cut them short. Refills pay for it. Without this limit, a
 * user could fill the store with processes that each have a different label. True without s. */
bool share_has_job_room(struct shares *s, uid_t uid, bool has_begun);
/* Note how many of the bytes that share_charge charges keep jobs apart. */
void share_charge_job(struct shares *s, uid_t uid, uint64_t bytes);

/* How much detail the user's next sample may have. SHARE_WHOLE without s. */
enum share_level share_level(struct shares *s, uid_t uid);
