/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Shares: how many bytes each user may add to the store
 *
 *      rate ──▶ pool ──▶ balance of each user who is there ──▶ detail of that user's samples
 *
 * The pool fills at the rate at which the budget lasts. What is in it goes to the users who are
 * there, in equal parts, and what one does not need goes to the others. A user who has used up the
 * balance loses detail, never samples: callers first, then threads, then functions, then processes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Users with a balance of their own; on a machine with more busy users the rest share one. */
#define SHARE_USERS_MAX 256

/* What a row of the store takes, for what is charged before it is written. Measured on a segment of
 * a build: bytes of each table's pages over its rows (sqlite3_analyzer), strings left out. */
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

/* What is in the place of the functions of a process whose user is over the share. */
#define SHARE_FUNCTION_FOLDED "(over the user's share)"

/* What is left of the detail of a user's samples. */
enum share_level {
	SHARE_WHOLE,
	SHARE_LEAF,    /* callers are left out, long names are cut */
	SHARE_PROCESS, /* and threads are their process */
	SHARE_FOLDED,  /* and all of a process is one function */
	SHARE_MERGED,  /* and all processes of the user are one */
	N_SHARE_LEVELS,
};
const char *share_level_says(enum share_level level); /* "whole", "no callers"; static */

struct share_user {
	uid_t uid;
	int64_t balance; /* bytes; below 0: over the share */
	uint64_t bytes;  /* charged since the service began */
	uint64_t n_cut;  /* samples that were kept with less detail */
	uint32_t seen;   /* the refill before which something was charged last */
};

struct shares {
	uint64_t rate; /* bytes a second that the pool gets */
	int64_t pool, pool_max;
	uint64_t filled_ns; /* CLOCK_MONOTONIC; 0: never */
	uint32_t n_refills;
	struct share_user user[SHARE_USERS_MAX];
	size_t n_users, last; /* last: found last */
};

/* What one tier of a store may take in: of `budget` bytes, `used` are taken by files, each of which
 * is kept for keep_ns. The rate is such that used never reaches the budget. The first call fills
 * the pool. */
struct share_room {
	uint64_t budget, used, keep_ns;
	uint64_t file_ns; /* of one file, each of which begins with all its names again */
};
void shares_allow(struct shares *s, const struct share_room *room);

/* Once per flush: hand out what has come since the last time. */
void shares_refill(struct shares *s, uint64_t now_ns);

/* The user's account, made if there is none; users beyond the last share that of (uid_t)-1.
 * O(users) at worst, one comparison for the same user again. Borrowed until the next call. */
struct share_user *share_user(struct shares *s, uid_t uid);

/* Charge bytes that were or will be written for this user. s may be NULL: nobody has a limit. */
void share_charge(struct shares *s, uid_t uid, uint64_t bytes);

/* How much detail the user's next sample may have. SHARE_WHOLE without s. */
enum share_level share_level(struct shares *s, uid_t uid);
