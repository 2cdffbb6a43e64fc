/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * One rule for all resources that users hold: a user may hold at most as much as is then left for
 * the others. A single user has half of everything, the next one half of the remainder, and what
 * one user does not take is available to others. (Network switches share buffers in this way.
 * Source: Choudhury and Hahne, Dynamic queue length thresholds for shared-memory packet switches,
 * IEEE/ACM Transactions on Networking 6.2, 1998.) A sixteenth is reserved for root. If many users
 * have used up everything, a newcomer replaces a connection of the user who has most (server.c).
 *
 * Spending is one time for each user: that at which all work so far will be paid off at the allowed
 * rate. It may be up to a second ahead of now. Rounds serve users, not connections: in each, the
 * loop works USER_TURN_NS for each user.
 */
#include "daemon/control/user.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/aside/aside.h"
#include "daemon/conf/conf.h"

#define SECOND_NS 1000000000ull
#define TIDY_NS SECOND_NS

/* Fraction that is reserved for root, but at least one. */
#define RESERVE_PART 16
/* Answers that all may leave unread, in those of one user. */
#define UNREAD_USERS 8
/* The daemon keeps a quarter of its descriptors for itself: events, rings, files, workers, the
 * feed. */
#define DESCRIPTORS_OWN_PART 4
/* The store's budget is for the store; other files may use half as much in addition. */
#define CACHE_BUDGET_PART 2
/* Waiting requests: 64 for each second that a query may take at most, and the same for three other
 * users. */
#define WAITING_MAX 256u
#define WAITING_USER_MAX (WAITING_MAX / 4)
/* Each looks at every sample, and writes a file: 32 at 10,000 Hz are a third of one CPU. */
#define RECORDINGS_MAX 32u
/* Each has two worker processes, rings on all harts and their records to drain. TasksMax=128 of the
 * unit holds these, 64 queries and what is ours. */
#define WALKS_MAX 24u
/* Each may have gathered two intervals of 27 MB (top_feed.h), if nobody else asks for the same. */
#define TOPS_MAX 32u

static const struct row {
	const char *name, *says;
	bool bytes;
	const char *all_key, *user_key, *remedy;
} rows[] = {
#define LIMIT(ID, name, says, bytes, all_key, user_key, remedy)                                    \
	{name, says, bytes, all_key, user_key, remedy},
#include "daemon/control/user.inc"
#undef LIMIT
};

const char *user_hold_name(enum user_hold what)
{
	return rows[what].name;
}

/* --- the table -------------------------------------------------------------------------------- */

static uint64_t descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_max - limit.rlim_max / DESCRIPTORS_OWN_PART;
}

void users_set_limits(struct users *t, const struct conf *conf)
{
	const struct {
		uint64_t all, one;
	} limit[N_USER_HOLDS] = {
		[USER_CLIENTS] = {conf->clients_max, conf->clients_per_user_max},
		[USER_UNREAD] = {UNREAD_USERS * conf->client_bytes_max, conf->client_bytes_max},
		[USER_QUERIES] = {conf->queries_max, UINT64_MAX},
		[USER_WAITING] = {WAITING_MAX, WAITING_USER_MAX},
		[USER_RECORDINGS] = {RECORDINGS_MAX, UINT64_MAX},
		[USER_WALKS] = {WALKS_MAX, UINT64_MAX},
		[USER_TOPS] = {TOPS_MAX, UINT64_MAX},
		[USER_CACHE] = {conf->budget_bytes / CACHE_BUDGET_PART, UINT64_MAX},
		[USER_DESCRIPTORS] = {descriptors(), UINT64_MAX},
	};
	for (int i = 0; i < N_USER_HOLDS; i++) {
		t->limit[i].all = limit[i].all;
		t->limit[i].one = limit[i].one;
	}
	t->requests_per_second = conf->requests_per_second_max;
}

static bool is_idle(const struct user *u)
{
	if (u->n_peers > 0)
		return false;
	for (int i = 0; i < N_USER_HOLDS; i++)
		if (u->held[i] > 0)
			return false;
	for (int i = 0; i < N_USER_TIMES; i++)
		if (u->spent_until_ns[i] > u->users->now_ns)
			return false;
	return true;
}

static void user_free(struct users *t, struct user *u)
{
	HASH_DEL(t->by_uid, u);
	free(u);
}

static void follow_closing(struct user *u)
{
	uint64_t n = aside_count(u->users->closers, u->uid);
	user_follow(u, USER_CLIENTS, &u->closing[0], n);
	user_follow(u, USER_DESCRIPTORS, &u->closing[1], n);
	u->users->any_closing |= n > 0;
}

void user_closes(struct user *u)
{
	if (u)
		follow_closing(u);
}

static void follow_all_closing(struct users *t)
{
	t->any_closing = false;
	for (struct user *u = t->by_uid; u; u = u->hh.next)
		if (u->closing[0] > 0)
			follow_closing(u);
}

void users_turn(struct users *t, uint64_t now_ns)
{
	struct user *u, *next;
	t->now_ns = now_ns;
	t->round++;
	t->in_round = NULL;
	t->turns_ns = 0;
	if (t->any_closing)
		follow_all_closing(t);
	if (now_ns < t->next_tidy_ns)
		return;
	t->next_tidy_ns = now_ns + TIDY_NS;
	t->n_spenders = 0;
	for (u = t->by_uid; u; u = next) {
		next = u->hh.next;
		t->n_spenders += !u->first && u->spent_until_ns[USER_LOOP] > now_ns;
		if (is_idle(u))
			user_free(t, u);
	}
}

static struct user *user_new(struct users *t, uid_t uid)
{
	struct user *u = HASH_COUNT(t->by_uid) < USERS_MAX ? calloc(1, sizeof(*u)) : NULL;
	if (!u)
		return NULL;
	u->users = t;
	u->uid = uid;
	u->first = uid == 0 || uid == geteuid();
	HASH_ADD(hh, t->by_uid, uid, sizeof(u->uid), u);
	if (!u->hh.tbl) {
		free(u);
		return NULL;
	}
	return u;
}

struct user *users_join(struct users *t, uid_t uid)
{
	struct user *u;
	HASH_FIND(hh, t->by_uid, &uid, sizeof(uid), u);
	if (!u)
		u = user_new(t, uid);
	if (u)
		u->n_peers++;
	return u;
}

void user_leave(struct user *u)
{
	if (u)
		u->n_peers--;
}

void users_clear(struct users *t)
{
	struct user *u, *next;
	for (u = t->by_uid; u; u = next) {
		next = u->hh.next;
		user_free(t, u);
	}
}

/* --- what is held ----------------------------------------------------------------------------- */

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Amount that is left for this user and all others who share with this user. */
static uint64_t left_for(const struct user *u, const struct user_limit *l)
{
	uint64_t left = less(l->all, l->held);
	if (u->first || l->all == UINT64_MAX)
		return left;
	uint64_t reserve = l->all / RESERVE_PART;
	if (reserve == 0 && l->all > 1)
		reserve = 1;
	return smaller(left, less(l->all - reserve, l->held_by_others));
}

uint64_t user_room(const struct user *u, enum user_hold what)
{
	if (!u)
		return UINT64_MAX;
	const struct user_limit *l = &u->users->limit[what];
	uint64_t left = left_for(u, l);
	/* The user may take more as long as others are left at least as much as the user then
	 * holds. Rounded up, so that the last one may be taken, too. */
	if (!u->first && l->all != UINT64_MAX)
		left = (less(left, u->held[what]) + 1) / 2;
	return smaller(left, less(l->one, u->held[what]));
}

static void add(struct user *u, enum user_hold what, uint64_t n)
{
	struct user_limit *l = &u->users->limit[what];
	u->held[what] += n;
	l->held += n;
	l->held_by_others += u->first ? 0 : n;
}

bool user_take(struct user *u, enum user_hold what, uint64_t n)
{
	if (!u)
		return true;
	if (n > user_room(u, what)) {
		u->users->limit[what].n_refused++;
		return false;
	}
	add(u, what, n);
	return true;
}

void user_give(struct user *u, enum user_hold what, uint64_t n)
{
	if (u)
		add(u, what, -n);
}

void user_follow(struct user *u, enum user_hold what, uint64_t *held, uint64_t n)
{
	if (u && *held != n)
		add(u, what, n - *held);
	*held = n;
}

struct amount {
	char text[64];
};

static struct amount amount(const struct row *row, uint64_t n)
{
	struct amount a;
	snprintf(a.text, sizeof(a.text), row->bytes ? "%llu MB " : "%llu ",
		(unsigned long long)(row->bytes ? n >> 20 : n));
	return a;
}

/* Origin of a limit, so that the administrator can raise it. */
static struct amount origin(const char *key)
{
	struct amount a = {""};
	if (*key)
		snprintf(a.text, sizeof(a.text), " (%s)", key);
	return a;
}

void user_explain(const struct user *u, enum user_hold what, char *ret_why, size_t n)
{
	const struct row *row = &rows[what];
	const struct user_limit *l = &u->users->limit[what];
	if (u->held[what] >= l->one)
		snprintf(ret_why, n, "you have %s%s, and mperfd allows one user no more%s",
			amount(row, u->held[what]).text, row->says, origin(row->user_key).text);
	else if (left_for(u, l) == 0)
		snprintf(ret_why, n, "there are %s%s, and mperfd allows no more%s",
			amount(row, l->held).text, row->says, origin(row->all_key).text);
	else
		snprintf(ret_why, n, "you have %s%s, and the rest of %sis reserved for others%s",
			amount(row, u->held[what]).text, row->says, amount(row, l->all).text,
			origin(row->all_key).text);
}

const char *user_remedy(enum user_hold what)
{
	return rows[what].remedy;
}

/* --- what is spent ---------------------------------------------------------------------------- */

static uint64_t now_of(const struct user *u)
{
	return u->users->now_ns;
}

/* Unspent time of the allowance of a second; 0 also with debts. */
static uint64_t credit(const struct user *u, enum user_time time)
{
	uint64_t until_ns = u->spent_until_ns[time];
	return until_ns <= now_of(u) ? USER_CREDIT_NS : less(now_of(u) + USER_CREDIT_NS, until_ns);
}

static void pay(struct user *u, enum user_time time, uint64_t ns)
{
	uint64_t *until_ns = &u->spent_until_ns[time];
	*until_ns = (*until_ns > now_of(u) ? *until_ns : now_of(u)) + ns;
}

/* Users with a walk now, plus one more that may come. */
static uint64_t walk_part(const struct users *t)
{
	const struct user *u;
	uint64_t n = 1;
	for (u = t->by_uid; u; u = u->hh.next)
		n += u->held[USER_WALKS] > 0;
	return n;
}

static uint64_t loop_part(const struct user *u)
{
	const uint32_t n = u->users->n_spenders;
	return u->first || n <= USERS_LOOP_PARTS ? USER_LOOP_PART
						 : n * USER_LOOP_PART / USERS_LOOP_PARTS;
}

static void take_turn(struct user *u, uint64_t ns)
{
	struct users *t = u->users;
	if (u->round != t->round || u->turn_ns == 0) {
		u->round = t->round;
		u->turn_ns = 0;
		u->next_in_round = t->in_round;
		t->in_round = u;
	}
	u->turn_ns += ns;
	t->turns_ns += u->first ? 0 : ns;
}

void user_spend(struct user *u, enum user_time time, uint64_t ns)
{
	if (!u || ns == 0)
		return;
	take_turn(u, ns);
	u->users->spent_ns += ns;
	pay(u, time, ns * (time == USER_LOOP ? loop_part(u) : walk_part(u->users)));
}

void user_looked_at(struct user *u)
{
	if (u)
		take_turn(u, USER_LOOK_NS);
}

void users_spend_rest(struct users *t, uint64_t ns)
{
	uint64_t charged_ns = t->spent_ns - t->shared_ns, turns_ns = 0;
	uint64_t rest_ns = less(ns, charged_ns), all_ns = t->spent_ns + rest_ns;
	struct user *u;
	for (u = t->in_round; u; u = u->next_in_round)
		turns_ns += u->turn_ns;
	for (u = t->in_round; u && rest_ns > 0; u = u->next_in_round)
		user_spend(u, USER_LOOP, rest_ns * u->turn_ns / turns_ns);
	t->spent_ns = t->shared_ns = all_ns; /* also resources that belong to nobody */
}

uint64_t user_ready_ns(const struct user *u, enum user_time time)
{
	if (!u)
		return 0;
	uint64_t ready_ns = less(u->spent_until_ns[time], USER_CREDIT_NS);
	if (time == USER_LOOP && ready_ns < u->rest_until_ns)
		ready_ns = u->rest_until_ns;
	return ready_ns > now_of(u) ? ready_ns : 0;
}

bool user_rests(struct user *u, enum user_time time)
{
	if (!u)
		return false;
	const struct users *t = u->users;
	if (user_ready_ns(u, time) == 0)
		return (u->round == t->round && u->turn_ns >= USER_TURN_NS) ||
		       (!u->first && t->turns_ns >= USERS_TURN_NS);
	if (time == USER_LOOP && u->rest_until_ns <= now_of(u))
		u->rest_until_ns = now_of(u) + USER_REST_NS;
	return true;
}

bool user_may_ask(struct user *u, unsigned nth)
{
	if (!u)
		return true;
	/* Take one message of each connection before the second half is spent. */
	if (user_rests(u, USER_LOOP) || (nth > 0 && credit(u, USER_LOOP) < USER_CREDIT_NS / 2))
		return false;
	pay(u, USER_LOOP, SECOND_NS / u->users->requests_per_second);
	return true;
}

bool user_owes(const struct user *u)
{
	return u && !u->first &&
	       u->spent_until_ns[USER_LOOP] > now_of(u) + USER_CREDIT_NS + USER_DEBT_NS;
}
