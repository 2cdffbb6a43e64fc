/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Shares of users: bytes over time, between users, and the detail that is left. */

#include "daemon/aggregate/share.h"

#include "tests/unit/test.h"

#define MB (UINT64_C(1) << 20)
#define DAY (86400 * SECOND)

static struct shares shares;
static uint64_t now_ns;

static void begin(void)
{
	memset(&shares, 0, sizeof(shares));
	now_ns = SECOND;
}

EACH_TEST(.begin = begin);

static void allow(uint64_t budget, uint64_t used, uint64_t keep_ns)
{
	shares_allow(&shares, &(struct share_room){budget, used, keep_ns, 3600 * SECOND});
}

/* Let five seconds pass. */
static void pass(void)
{
	now_ns += 5 * SECOND;
	shares_refill(&shares, now_ns);
}

/* Write as much as detail is left for, 10,000 bytes at a time. Returns how much it was. */
static uint64_t write_all(uid_t uid, uint64_t most)
{
	uint64_t n = 0;
	while (n < most && share_level(&shares, uid) == SHARE_WHOLE) {
		share_charge(&shares, uid, 10000);
		n += 10000;
	}
	return n;
}

TEST(greedy_user_never_fills_the_budget)
{
	/* files go when they are two days old; a day of five-second flushes is enough to settle */
	uint64_t used = 0, hour[48] = {0};
	for (int i = 0; i < 96; i++) {
		used -= hour[i % 48];
		hour[i % 48] = 0;
		for (int flush = 0; flush < 720; flush++) {
			allow(768 * MB, used, 2 * DAY);
			uint64_t n = write_all(1000, 100 * MB);
			hour[i % 48] += n;
			used += n;
			pass();
		}
		ck_assert_uint_lt(used, 768 * MB);
	}
	/* and has most of it, since nobody else wants any */
	ck_assert_uint_gt(used, 500 * MB);
}

TEST(late_comer_has_an_equal_share)
{
	uint64_t first = 0, second = 0;
	for (int i = 0; i < 2000; i++) {
		allow(768 * MB, 700 * MB, 2 * DAY);
		write_all(1000, 100 * MB);
		pass();
	}
	/* a newcomer has something at once, however long the other has been writing */
	ck_assert_int_eq(share_level(&shares, 2000), SHARE_WHOLE);
	for (int i = 0; i < 2000; i++) {
		first += write_all(1000, 100 * MB);
		second += write_all(2000, 100 * MB);
		pass();
	}
	ck_assert_uint_gt(second, first / 10 * 9);
	ck_assert_uint_lt(second, first / 9 * 10);
}

TEST(what_one_does_not_need_goes_to_the_others)
{
	uint64_t alone = 0, beside = 0;
	allow(768 * MB, 700 * MB, 2 * DAY);
	for (int i = 0; i < 2000; i++) {
		alone += write_all(1000, 100 * MB);
		pass();
	}
	begin();
	allow(768 * MB, 700 * MB, 2 * DAY);
	for (int i = 0; i < 2000; i++) {
		beside += write_all(1000, 100 * MB);
		/* nine who write a little, and are never cut */
		for (uid_t uid = 1; uid < 10; uid++) {
			ck_assert_int_eq(share_level(&shares, uid), SHARE_WHOLE);
			share_charge(&shares, uid, 100);
		}
		pass();
	}
	ck_assert_uint_gt(beside, alone / 10 * 6);
}

TEST(idle_time_is_kept_for_an_hour_at_most)
{
	allow(768 * MB, 700 * MB, 2 * DAY);
	pass();
	now_ns += 30 * DAY;
	pass();
	ck_assert_int_le(shares.pool, shares.pool_max);
	ck_assert_uint_le((uint64_t)shares.pool, shares.rate * 3600);
}

TEST(deeper_in_debt_less_is_left)
{
	allow(16 * MB, 0, DAY);
	enum share_level last = share_level(&shares, 1000);
	ck_assert_int_eq(last, SHARE_WHOLE);
	bool seen[N_SHARE_LEVELS] = {true};
	for (int i = 0; i < 10000; i++) {
		share_charge(&shares, 1000, 1000);
		enum share_level now = share_level(&shares, 1000);
		ck_assert_int_ge(now, last);
		ck_assert_int_le(now, last + 1);
		seen[now] = true;
		last = now;
	}
	for (int i = 0; i < N_SHARE_LEVELS; i++)
		ck_assert(seen[i]);
	/* others notice nothing of it */
	ck_assert_int_eq(share_level(&shares, 2000), SHARE_WHOLE);
}

TEST(debt_is_paid_while_nothing_is_written)
{
	allow(16 * MB, 0, DAY);
	share_charge(&shares, 1000, 3 * MB);
	ck_assert_int_eq(share_level(&shares, 1000), SHARE_MERGED);
	int n = 0;
	while (share_level(&shares, 1000) != SHARE_WHOLE && n++ < 100000)
		pass();
	ck_assert_int_gt(n, 10); /* to wait ten minutes is no way around it */
	ck_assert_int_lt(n, 100000);
	/* nor is it forgotten with those who were not there for long */
	share_charge(&shares, 2000, 300 * MB);
	for (int i = 0; i < 500; i++)
		pass();
	ck_assert_int_ne(share_level(&shares, 2000), SHARE_WHOLE);
}

TEST(who_is_gone_gives_back)
{
	allow(16 * MB, 0, DAY);
	for (uid_t uid = 1; uid < 200; uid++)
		share_charge(&shares, uid, 1);
	ck_assert_uint_eq(shares.n_users, 199);
	int64_t least = shares.pool;
	for (int i = 0; i < 400; i++)
		pass();
	ck_assert_uint_eq(shares.n_users, 0);
	ck_assert_int_gt(shares.pool, least);
	ck_assert_int_le(shares.pool, shares.pool_max);
}

TEST(users_beyond_the_last_place_share_one)
{
	allow(16 * MB, 0, DAY);
	for (uid_t uid = 1; uid < 3 * SHARE_USERS_MAX; uid++)
		share_charge(&shares, uid, 10);
	ck_assert_uint_eq(shares.n_users, SHARE_USERS_MAX);
	ck_assert_ptr_eq(share_user(&shares, 7000), share_user(&shares, 8000));
	ck_assert_uint_eq(share_user(&shares, 7000)->uid, (uid_t)-1);
	ck_assert_uint_eq(share_user(&shares, 5)->uid, 5);
	ck_assert_uint_eq(
		share_user(&shares, 7000)->bytes, 10 * (3 * SHARE_USERS_MAX - SHARE_USERS_MAX));
}

TEST(odd_numbers_do_no_harm)
{
	static const uint64_t odd[] = {0, 1, 1000, UINT64_C(64) << 40, UINT64_C(1) << 62};
	for (size_t i = 0; i < 5; i++)
		for (size_t j = 0; j < 5; j++)
			for (size_t k = 0; k < 5; k++) {
				begin();
				allow(odd[i] % (UINT64_C(64) << 40), odd[j], odd[k]);
				pass();
				share_charge(&shares, 1000, odd[j] % MB);
				now_ns += odd[k] % (1000 * DAY);
				pass();
				ck_assert_int_le(shares.pool, shares.pool_max);
				ck_assert_int_lt(share_level(&shares, 1000), N_SHARE_LEVELS);
			}
	/* a clock that stands still, or goes back */
	begin();
	allow(16 * MB, 0, DAY);
	shares_refill(&shares, now_ns);
	int64_t pool = shares.pool;
	shares_refill(&shares, now_ns - 1);
	ck_assert_int_eq(shares.pool, pool);
}

TEST(without_shares_nobody_has_a_limit)
{
	share_charge(NULL, 1000, UINT64_MAX);
	ck_assert_int_eq(share_level(NULL, 1000), SHARE_WHOLE);
	ck_assert_str_eq(share_level_says((enum share_level)99), share_level_says(SHARE_MERGED));
}
