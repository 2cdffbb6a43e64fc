/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Users: what each holds of the service, and what each has spent
 *
 * One account for each user who is connected or was a moment ago, whatever the number of
 * connections. What can be used up is taken from it and given back (user.inc); what passes, the time
 * of the loop and requests, is spent, and grows again while time goes by. Reconnecting changes
 * nothing of either.
 *
 * A private daemon has no accounts: wherever a user is NULL, everything is allowed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/hash_table.h"

struct conf;

enum user_hold {
#define LIMIT(ID, name, says, bytes, all_key, user_key, remedy) USER_##ID,
#include "daemon/control/user.inc"
#undef LIMIT
	N_USER_HOLDS
};

/* Times of the loop's thread, each with a share of its own. */
enum user_time {
	USER_LOOP, /* requests, counters, tops, answers: one in USER_LOOP_PART of all time */
	USER_WALK, /* rings of recordings with their own events: as much as others who record leave */
	N_USER_TIMES
};
#define USER_LOOP_PART 10
/* What may be spent at once, of either: what a second allows. */
#define USER_CREDIT_NS 1000000000u
/* Of one round of the loop, before the next user has a turn. */
#define USER_TURN_NS 5000000u
/* A user who has spent all is looked at this often, with all connections at once. */
#define USER_REST_NS 20000000u
/* Debt at which even new connections are turned away: connecting alone has cost that much. */
#define USER_DEBT_NS 2000000000u
/* Accounts at once. There is one for each connection at most, and for users who went lately. */
#define USERS_MAX 16384

struct users;

struct user {
	struct users *users;
	uid_t uid;
	bool first; /* root, or the daemon's own user: may use the reserve, and all that is left */
	uint32_t n_peers;
	uint64_t held[N_USER_HOLDS];
	uint64_t spent_until_ns[N_USER_TIMES]; /* CLOCK_MONOTONIC, when all will be paid */
	uint64_t rest_until_ns;
	uint64_t round, turn_ns; /* time of the loop in that round */
	uint64_t served;         /* number of the last query that was begun */
	UT_hash_handle hh;
};

struct user_limit {
	uint64_t all, one; /* what there is, and what one user may hold; UINT64_MAX: no limit */
	uint64_t held, held_by_others; /* now: by all, and by those who are not first */
	uint64_t n_refused;            /* so far */
};

struct users {
	struct user *by_uid;
	struct user_limit limit[N_USER_HOLDS];
	uint32_t requests_per_second;
	uint64_t now_ns; /* of this round */
	uint64_t round, n_served, next_tidy_ns;
};

/* Take the limits from the configuration and RLIMIT_NOFILE, at the start and whenever it has
 * changed. A user who then holds more may keep it, and gets no more. */
void users_set_limits(struct users *t, const struct conf *conf);

/* A round of the loop begins: everybody has a turn again. Forgets users who hold and owe
 * nothing. */
void users_turn(struct users *t, uint64_t now_ns);

/* A connection of a user's has come: the account; NULL without memory, or with USERS_MAX of them. It
 * stays where it is until the connection has left, and as long as anything is held. */
struct user *users_join(struct users *t, uid_t uid);
void user_leave(struct user *u);

void users_clear(struct users *t);

/* --- what is held ------------------------------------------------------------------------------- */

/* How much more this user may take. */
uint64_t user_room(const struct user *u, enum user_hold what);
/* Take n. False, and counted, where there is no room for all of them. */
bool user_take(struct user *u, enum user_hold what, uint64_t n);
void user_give(struct user *u, enum user_hold what, uint64_t n);
/* What is held grew or shrank by itself, from *held to n: the account follows, over its limit too. */
void user_follow(struct user *u, enum user_hold what, uint64_t *held, uint64_t n);
/* A sentence without its end, and one of what to do, for a refusal of any more. */
#define USER_WHY_BYTES 256
void user_explain(const struct user *u, enum user_hold what, char *ret_why, size_t n);
const char *user_remedy(enum user_hold what);

/* --- what is spent ------------------------------------------------------------------------------ */

/* May one more message be taken from a connection of this user's, its nth of this round from 0 on?
 * Spends it then. */
bool user_may_ask(struct user *u, unsigned nth);
/* The loop's thread ran for ns because of this user. */
void user_spend(struct user *u, enum user_time time, uint64_t ns);
/* When there is something to spend again; 0: now. */
uint64_t user_ready_ns(const struct user *u, enum user_time time);
/* Is nothing to be done for this user in this round any more? */
bool user_rests(struct user *u, enum user_time time);
/* Even a connection more is too much; never of those who are first, who wait like others, but can
 * always look. */
bool user_owes(const struct user *u);

/* The row of what it is called in status. */
const char *user_hold_name(enum user_hold what);
