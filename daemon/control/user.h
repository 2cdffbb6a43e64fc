/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Users: the resources of the service that each one holds, and the time that each has spent
 *
 * One account for each user who is or was recently connected, whatever the number of connections.
 * Resources that can run out are taken and given back (user.inc); loop time and requests are spent,
 * and refill as time passes. Reconnecting changes neither.
 *
 * A private daemon has no accounts: if a user is NULL, everything is allowed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/hash_table.h"

struct aside;
struct conf;

enum user_hold {
#define LIMIT(ID, name, says, bytes, all_key, user_key, remedy) USER_##ID,
#include "daemon/control/user.inc"
#undef LIMIT
	N_USER_HOLDS
};

/* Kinds of time of the loop's thread, each with its own share. */
enum user_time {
	USER_LOOP, /* requests, counters, tops, answers: one part in USER_LOOP_PART of all time */
	/* rings of recordings with their own events: the time that other recording users leave */
	USER_WALK,
	N_USER_TIMES
};
#define USER_LOOP_PART 10
/* All users but root and the daemon's own have three such shares together, so that sampling has the
 * remaining time. If more than three users spend at the same time, they divide these shares
 * equally. */
#define USERS_LOOP_PARTS 3
/* The most that may be spent at once, of either kind of time: the allowance of one second. */
#define USER_CREDIT_NS 1000000000u
/* Time for one user in a round of the loop, before the next user is served. */
#define USER_TURN_NS 5000000u
/* The same for all users but root and the daemon's own, before the loop continues with other
 * work. */
#define USERS_TURN_NS (4 * USER_TURN_NS)
/* Interval at which a user who has spent everything is served, with all connections at once. */
#define USER_REST_NS 20000000u
/* Debt at which even new connections are refused: connecting alone has cost that much. */
#define USER_DEBT_NS 2000000000u
/* Maximum accounts: at most one per connection, and those of users who left recently. */
#define USERS_MAX 16384

struct users;

struct user {
	struct users *users;
	uid_t uid;
	bool first; /* root or the daemon's own user: may use the reserve and all that is left */
	uint32_t n_peers;
	uint64_t held[N_USER_HOLDS];
	uint64_t closing[2]; /* connections that are being closed, and their descriptors */
	uint64_t spent_until_ns[N_USER_TIMES]; /* CLOCK_MONOTONIC: when the debt is paid off */
	uint64_t rest_until_ns;
	uint64_t round, turn_ns; /* time of the loop in that round */
	struct user *next_in_round;
	uint64_t served; /* number of its last query that started */
	UT_hash_handle hh;
};

struct user_limit {
	uint64_t all, one;             /* for all users, and for one; UINT64_MAX: no limit */
	uint64_t held, held_by_others; /* now: by all users, and by those who are not `first` */
	uint64_t n_refused;            /* so far */
};

struct users {
	struct user *by_uid;
	struct aside *closers; /* borrowed; NULL: everything is closed at once */
	bool any_closing;
	struct user_limit limit[N_USER_HOLDS];
	uint32_t requests_per_second;
	uint64_t now_ns; /* of this round */
	uint64_t round, n_served, next_tidy_ns;
	uint64_t spent_ns;     /* all that was spent so far, on behalf of any user */
	uint64_t shared_ns;    /* that total at the last users_spend_rest */
	struct user *in_round; /* users who have spent time in this round */
	uint64_t turns_ns;     /* time in this round of those users who are not `first` */
	uint32_t n_spenders;   /* users who have spent lately and are not `first` */
};

/* Set the limits from the configuration and RLIMIT_NOFILE, at start and after each change. A user
 * who then holds more than the new limit keeps it, and gets no more. */
void users_set_limits(struct users *t, const struct conf *conf);

/* Begin a round of the loop, in which every user is served again. Forgets users who hold and owe
 * nothing. */
void users_turn(struct users *t, uint64_t now_ns);

/* Get the account of a user who has connected; NULL if out of memory or at USERS_MAX. It stays
 * valid until the connection has left and nothing is held. */
struct user *users_join(struct users *t, uid_t uid);
void user_leave(struct user *u);

void users_clear(struct users *t);

/* --- what is held ----------------------------------------------------------------------------- */

/* The amount that this user may still take. */
uint64_t user_room(const struct user *u, enum user_hold what);
/* Take n. False, and counted as refused, if there is no room for all n. */
bool user_take(struct user *u, enum user_hold what, uint64_t n);
void user_give(struct user *u, enum user_hold what, uint64_t n);
/* Update the account, even beyond its limit, for a holding that grew or shrank from *held to n. */
void user_follow(struct user *u, enum user_hold what, uint64_t *held, uint64_t n);
/* Note that a closing thread has one more connection of this user, which counts as the user's until
 * it is closed. */
void user_closes(struct user *u);
/* Texts for refusals: the reason without a full stop, and the remedy. */
#define USER_WHY_BYTES 256
void user_explain(const struct user *u, enum user_hold what, char *ret_why, size_t n);
const char *user_remedy(enum user_hold what);

/* --- what is spent ---------------------------------------------------------------------------- */

/* May one more message be taken from a connection of this user, its nth of this round (from 0)? If
 * so, spends it. */
bool user_may_ask(struct user *u, unsigned nth);
/* Charge this user for ns of the loop's thread. */
void user_spend(struct user *u, enum user_time time, uint64_t ns);
/* Cost of one connection in a round, even of an idle one, which the loop only looks at. It counts
 * as this much when uncharged time is divided among users. */
#define USER_LOOK_NS 200u
void user_looked_at(struct user *u);
/* Charge the remaining time: the loop's thread worked for users for at least ns since the last
 * call. The time that was not charged to one of them (waiting, checking all connections, forking)
 * is divided among the users of this round, in proportion to their own time in it. */
void users_spend_rest(struct users *t, uint64_t ns);
/* The time at which the user may spend again; 0: now. */
uint64_t user_ready_ns(const struct user *u, enum user_time time);
/* Has this user used up the time of this round? */
bool user_rests(struct user *u, enum user_time time);
/* Is even one more connection too much? Never for `first` users: they wait like others, but can
 * always connect. */
bool user_owes(const struct user *u);

/* Its name in `mperfctl status`. */
const char *user_hold_name(enum user_hold what);
