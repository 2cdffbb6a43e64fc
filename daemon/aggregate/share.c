/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Files reach their full age only if the store is written slowly enough. With a budget of B bytes,
 * U of them used, and files kept for K, the pool gets (B - U) / (K / 4) per second: this rate would
 * fill an empty store in a quarter of K, and it falls as the store fills. Written at that rate for
 * ever, U settles where additions equal removals by age, at U = 4/5 B, never at B. So no file is
 * removed early for lack of room, however much one user writes, and the only user of an idle
 * machine may write far more than one of many on a busy machine.
 *
 * Within that rate users are equal. Each refill distributes an eighth of the pool in equal parts to
 * users who wrote something or are in debt; the part of a full balance goes to the others. So users
 * who write little have a full balance, and users who write much get the remainder. Seven eighths
 * stay in the pool for users who arrive later.
 *
 * Bytes are charged when their number is known, names later than their frames, so a balance may
 * become negative; the next refills pay the debt.
 */

#include "daemon/aggregate/share.h"

#define SECOND_NS 1000000000u
/* An empty budget would fill in this fraction of the time that files are kept. */
#define FILL_PART 4
/* If more than the budget is used because it was lowered, this fraction of the rate remains. */
#define LEAST_PART 16
/* The pool holds at most what is added during the time span of one file, and at most this fraction
 * of the time to fill the budget. */
#define POOL_PART 4
/* Fractions of the pool: distributed by a refill, given to a new user, held by a full balance. */
#define HAND_OUT_PART 8
/* Refills without a write after which a user's balance returns to the pool: ten minutes at the
 * default flush interval of five seconds. */
#define IDLE_REFILLS 120

const char *share_level_says(enum share_level level)
{
	static const char *const says[N_SHARE_LEVELS] = {
		[SHARE_WHOLE] = "whole",
		[SHARE_LEAF] = "no callers",
		[SHARE_PROCESS] = "no callers, no threads",
		[SHARE_FOLDED] = "processes",
		[SHARE_MERGED] = "sums",
	};
	return says[level < N_SHARE_LEVELS ? level : SHARE_MERGED];
}

static int64_t balance_max(const struct shares *s)
{
	return s->pool_max / HAND_OUT_PART;
}

/* Bytes distributed but not written yet. */
static uint64_t promised(const struct shares *s)
{
	int64_t bytes = s->pool;
	for (size_t i = 0; i < s->n_users; i++)
		bytes += s->user[i].balance > 0 ? s->user[i].balance : 0;
	return (uint64_t)bytes;
}

void shares_allow(struct shares *s, const struct share_room *room)
{
	uint64_t budget = room->budget, used = room->used + promised(s);
	uint64_t keep = room->keep_ns / SECOND_NS ? room->keep_ns / SECOND_NS : 1;
	uint64_t fill = keep / FILL_PART ? keep / FILL_PART : 1;
	uint64_t free_rate = budget > used ? (budget - used) / fill : 0;
	uint64_t least = budget / (keep + fill) / LEAST_PART;
	bool first = s->pool_max == 0;

	s->rate = free_rate > least ? free_rate : least;
	s->rate = s->rate ? s->rate : 1;
	uint64_t file = room->file_ns / SECOND_NS;
	uint64_t seconds = fill / POOL_PART < file ? fill / POOL_PART : file;
	s->pool_max = (int64_t)(s->rate * (seconds ? seconds : 1));
	if (first || s->pool > s->pool_max)
		s->pool = s->pool_max;
}

/* Forget users who have been idle for long and have no debt. */
static void drop_idle(struct shares *s)
{
	for (size_t i = s->n_users; i-- > 0;) {
		const struct share_user *u = &s->user[i];
		if (s->n_refills - u->seen < IDLE_REFILLS || u->balance < 0)
			continue;
		s->pool += u->balance;
		s->user[i] = s->user[--s->n_users];
	}
	s->last = 0;
}

/* Active, or in debt. */
static bool takes(const struct shares *s, const struct share_user *u)
{
	return u->balance < balance_max(s) && (u->seen == s->n_refills || u->balance < 0);
}

/* Distribute in equal parts; what a user does not need goes to the others. Each round fills at
 * least one balance, or is the last. */
static void hand_out(struct shares *s, int64_t bytes)
{
	for (size_t round = 0; round <= s->n_users && bytes > 0; round++) {
		int64_t n = 0, given = 0;
		for (size_t i = 0; i < s->n_users; i++)
			n += takes(s, &s->user[i]);
		if (n == 0 || bytes / n == 0)
			return;
		for (size_t i = 0; i < s->n_users; i++) {
			struct share_user *u = &s->user[i];
			int64_t part = bytes / n, room = balance_max(s) - u->balance;
			if (!takes(s, u))
				continue;
			part = part < room ? part : room;
			u->balance += part;
			u->jobs = u->jobs > part ? u->jobs - part : 0;
			given += part;
		}
		s->pool -= given;
		bytes -= given;
	}
}

void shares_refill(struct shares *s, uint64_t now_ns)
{
	uint64_t ns = s->filled_ns && now_ns > s->filled_ns ? now_ns - s->filled_ns : 0;
	double came = (double)s->rate * (double)ns / SECOND_NS;
	s->pool = came < (double)s->pool_max ? s->pool + (int64_t)came : s->pool_max;
	s->filled_ns = now_ns;
	if (s->n_users == SHARE_USERS_MAX || s->n_refills % IDLE_REFILLS == 0)
		drop_idle(s);
	s->pool = s->pool < s->pool_max ? s->pool : s->pool_max;
	hand_out(s, s->pool / HAND_OUT_PART);
	s->n_refills++;
}

static struct share_user *find(struct shares *s, uid_t uid)
{
	if (s->last < s->n_users && s->user[s->last].uid == uid)
		return &s->user[s->last];
	for (size_t i = 0; i < s->n_users; i++)
		if (s->user[i].uid == uid) {
			s->last = i;
			return &s->user[i];
		}
	return NULL;
}

struct share_user *share_user(struct shares *s, uid_t uid)
{
	struct share_user *u = find(s, uid);
	/* the last place is shared by all users beyond the limit */
	if (!u && s->n_users >= SHARE_USERS_MAX - 1) {
		uid = (uid_t)-1;
		u = find(s, uid);
	}
	if (u)
		return u;
	int64_t first = s->pool / HAND_OUT_PART;
	first = first < balance_max(s) ? first : balance_max(s);
	s->pool -= first;
	s->last = s->n_users++;
	s->user[s->last] = (struct share_user){.uid = uid, .balance = first, .seen = s->n_refills};
	return &s->user[s->last];
}

void share_charge(struct shares *s, uid_t uid, uint64_t bytes)
{
	if (!s || bytes == 0)
		return;
	struct share_user *u = share_user(s, uid);
	u->balance -= (int64_t)bytes;
	u->bytes += bytes;
	u->seen = s->n_refills;
}

bool share_has_job_room(struct shares *s, uid_t uid, bool has_begun)
{
	if (!s)
		return true;
	const struct share_user *u = share_user(s, uid);
	int64_t n = s->n_users > HAND_OUT_PART ? (int64_t)s->n_users : HAND_OUT_PART;
	return u->jobs < s->pool_max / n / (has_begun ? 1 : 2);
}

void share_charge_job(struct shares *s, uid_t uid, uint64_t bytes)
{
	if (s && bytes > 0)
		share_user(s, uid)->jobs += (int64_t)bytes;
}

enum share_level share_level(struct shares *s, uid_t uid)
{
	if (!s)
		return SHARE_WHOLE;
	int64_t balance = share_user(s, uid)->balance, whole = balance_max(s);
	return balance > 0              ? SHARE_WHOLE
	       : balance > -(whole / 4) ? SHARE_LEAF
	       : balance > -(whole / 2) ? SHARE_PROCESS
	       : balance > -whole       ? SHARE_FOLDED
					: SHARE_MERGED;
}
