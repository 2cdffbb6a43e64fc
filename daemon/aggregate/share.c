/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A store lasts as long as it is written slowly enough. With B bytes of budget, U of them used and
 * files kept for K, the pool gets (B - U) / (K / 4) a second: on an empty store a quarter of K
 * would fill it, and the fuller it is the less comes. Written at that rate for ever, U settles
 * where as much comes as goes by age, at U = 4/5 B: never at B. So nothing is ever unlinked before
 * its time for want of room, however much one user writes, and the only user of an idle machine may
 * write far more than one of many on a busy machine.
 *
 * Within that rate users are equal. Each refill hands out an eighth of the pool, in equal parts to
 * those who wrote something or owe something; a balance that is full takes no more, and its part
 * goes to the rest. So users who write little have a full balance, and users who write much get the
 * remainder. Only an eighth, so that seven eighths are left for a user who arrives.
 *
 * What is written is charged when it is known, names after their frames, so a balance may fall
 * below zero; the user then pays with the next refills.
 */

#include "daemon/aggregate/share.h"

#define SECOND_NS 1000000000u
/* The part of the time that files are kept, in which an empty budget would be filled. */
#define FILL_PART 4
/* Where more is used than the budget, since it was lowered, this part of the rate remains. */
#define LEAST_PART 16
/* What the pool holds at most is what comes in the time of one file, and no more than this part of
 * the time in which the budget would be filled. */
#define POOL_PART 4
/* Of the pool: what a refill hands out, what a newcomer gets, what a balance holds. */
#define HAND_OUT_PART 8
/* Refills without a write after which a user gives back the balance: ten minutes of flushes of the
 * preset five seconds. */
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

/* Bytes handed out that are not written yet. */
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

/* Users who have been away for long and owe nothing are forgotten. */
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

/* There, or in debt. */
static bool takes(const struct shares *s, const struct share_user *u)
{
	return u->balance < balance_max(s) && (u->seen == s->n_refills || u->balance < 0);
}

/* In equal parts; a user who needs less than a part leaves the rest to the others. Each round fills
 * somebody, or is the last. */
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
