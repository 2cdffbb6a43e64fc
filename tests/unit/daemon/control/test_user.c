/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Accounts of users: what each may hold beside others, and what passes when it is spent.
 */
#include <unistd.h>

#include "daemon/conf/conf.h"
#include "daemon/control/user.h"
#include "tests/unit/test.h"

#define MALLORY 60302
#define VICTOR 60303
#define CROWD 5000

static void begin(struct users *t)
{
	struct conf conf;
	*t = (struct users){0};
	conf_defaults(&conf);
	users_set_limits(t, &conf);
	users_turn(t, 1000 * SECOND);
}

static void pass(struct users *t, uint64_t ns)
{
	users_turn(t, t->now_ns + ns);
}

/* As many as come, one by one. */
static uint64_t take_all(struct user *u, enum user_hold what)
{
	uint64_t n = 0;
	while (user_take(u, what, 1))
		n++;
	return n;
}

/* --- what is held ----------------------------------------------------------------------------- */

TEST(one_user_gets_half_and_leaves_as_much)
{
	for (int what = 0; what < N_USER_HOLDS; what++) {
		struct users t;
		begin(&t);
		struct user *mallory = users_join(&t, MALLORY), *victor = users_join(&t, VICTOR);
		uint64_t all = t.limit[what].all;
		uint64_t room = user_room(mallory, (enum user_hold)what);
		ck_assert_uint_ge(room, 1);
		if (all != UINT64_MAX)
			ck_assert_uint_le(room, all / 2);
		ck_assert(user_take(mallory, (enum user_hold)what, room));
		ck_assert(!user_take(mallory, (enum user_hold)what, 1));
		ck_assert_uint_eq(t.limit[what].n_refused, 1);
		ck_assert(user_take(victor, (enum user_hold)what, 1));
		users_clear(&t);
	}
}

TEST(each_user_leaves_something_to_the_next)
{
	struct users t;
	begin(&t);
	for (uid_t i = 0; i < 8; i++) /* each as much as it can: halves of halves */
		ck_assert_uint_ge(take_all(users_join(&t, 100000 + i), USER_CLIENTS), 1);
	ck_assert(user_take(users_join(&t, VICTOR), USER_CLIENTS, 1));
	users_clear(&t);
}

TEST(what_all_others_took_together_leaves_the_reserve_for_root)
{
	for (int what = 0; what < N_USER_HOLDS; what++) {
		struct users t;
		begin(&t);
		if (t.limit[what].all == UINT64_MAX) {
			users_clear(&t);
			continue;
		}
		for (uid_t i = 0; i < CROWD; i++) {
			struct user *u = users_join(&t, 100000 + i);
			uint64_t room = user_room(u, (enum user_hold)what);
			if (room == 0)
				break;
			ck_assert(user_take(u, (enum user_hold)what, room));
		}
		struct user *root = users_join(&t, 0);
		uint64_t reserve = t.limit[what].all / 16;
		ck_assert_uint_ge(user_room(root, (enum user_hold)what), reserve ? reserve : 1);
		users_clear(&t);
	}
}

TEST(root_may_have_all_but_what_a_user_may_have_by_name)
{
	struct users t;
	begin(&t);
	struct user *root = users_join(&t, 0);
	ck_assert_uint_eq(take_all(root, USER_WALKS), t.limit[USER_WALKS].all);
	ck_assert_uint_eq(take_all(root, USER_CLIENTS), t.limit[USER_CLIENTS].one);
	users_clear(&t);
}

TEST(what_is_given_back_is_there_again)
{
	struct users t;
	begin(&t);
	struct user *mallory = users_join(&t, MALLORY);
	uint64_t n = take_all(mallory, USER_QUERIES);
	user_give(mallory, USER_QUERIES, n);
	ck_assert_uint_eq(mallory->held[USER_QUERIES], 0);
	ck_assert_uint_eq(t.limit[USER_QUERIES].held, 0);
	ck_assert_uint_eq(t.limit[USER_QUERIES].held_by_others, 0);
	ck_assert_uint_eq(take_all(mallory, USER_QUERIES), n);
	users_clear(&t);
}

TEST(what_grows_by_itself_is_followed_over_the_limit)
{
	struct users t;
	uint64_t held = 0;
	begin(&t);
	struct user *mallory = users_join(&t, MALLORY);
	user_follow(mallory, USER_CACHE, &held, t.limit[USER_CACHE].all);
	ck_assert_uint_eq(user_room(mallory, USER_CACHE), 0);
	ck_assert_uint_eq(user_room(users_join(&t, 0), USER_CACHE), 0);
	user_follow(mallory, USER_CACHE, &held, 0);
	ck_assert_uint_eq(t.limit[USER_CACHE].held, 0);
	users_clear(&t);
}

TEST(a_lower_limit_takes_nothing_away_and_gives_no_more)
{
	struct users t;
	struct conf conf;
	begin(&t);
	struct user *mallory = users_join(&t, MALLORY);
	take_all(mallory, USER_CLIENTS);
	conf_defaults(&conf);
	conf.clients_max = 4;
	users_set_limits(&t, &conf);
	ck_assert(!user_take(mallory, USER_CLIENTS, 1));
	user_give(mallory, USER_CLIENTS, mallory->held[USER_CLIENTS]);
	ck_assert_uint_eq(take_all(mallory, USER_CLIENTS), 2);
	users_clear(&t);
}

static void assert_explains(const struct user *u, const char *what)
{
	char why[USER_WHY_BYTES];
	user_explain(u, USER_CLIENTS, why, sizeof(why));
	if (!strstr(why, what))
		ck_abort_msg("'%s' has no '%s'", why, what);
	ck_assert_uint_gt(strlen(user_remedy(USER_CLIENTS)), 0);
}

TEST(a_refusal_names_the_limit)
{
	struct users t;
	begin(&t);
	t.limit[USER_CLIENTS].one = 3;
	struct user *mallory = users_join(&t, MALLORY), *victor = users_join(&t, VICTOR);
	take_all(mallory, USER_CLIENTS);
	assert_explains(mallory, "you have 3 clients");
	assert_explains(mallory, "clients-per-user-max");
	t.limit[USER_CLIENTS].one = UINT64_MAX;
	take_all(mallory, USER_CLIENTS);
	assert_explains(mallory, "the rest of 512 is reserved for others (clients-max");
	t.limit[USER_CLIENTS].all = 1;
	assert_explains(victor, "mperfd allows no more (clients-max");
	users_clear(&t);
}

TEST(without_an_account_all_is_allowed)
{
	uint64_t held = 0;
	ck_assert_uint_eq(user_room(NULL, USER_WALKS), UINT64_MAX);
	ck_assert(user_take(NULL, USER_WALKS, 1000000));
	ck_assert(user_may_ask(NULL, 1000000));
	ck_assert(!user_rests(NULL, USER_WALK));
	ck_assert_uint_eq(user_ready_ns(NULL, USER_LOOP), 0);
	user_spend(NULL, USER_LOOP, 1000 * SECOND);
	user_give(NULL, USER_WALKS, 1);
	user_follow(NULL, USER_CACHE, &held, 7);
	ck_assert_uint_eq(held, 7);
	user_leave(NULL);
}

/* --- what is spent ---------------------------------------------------------------------------- */

static unsigned ask_all(struct user *u)
{
	unsigned n = 0;
	while (user_may_ask(u, 0))
		n++;
	return n;
}

TEST(requests_of_all_connections_have_one_rate)
{
	struct users t;
	begin(&t);
	struct user *mallory = users_join(&t, MALLORY), *victor = users_join(&t, VICTOR);
	unsigned n = ask_all(mallory);
	ck_assert_uint_ge(n, t.requests_per_second);
	ck_assert_uint_le(n, t.requests_per_second + 1);
	ck_assert(user_may_ask(victor, 0));
	pass(&t, SECOND);
	ck_assert_uint_le(ask_all(mallory), t.requests_per_second + 1);
	users_clear(&t);
}

TEST(who_reconnects_owes_what_was_owed)
{
	struct users t;
	begin(&t);
	struct user *mallory = users_join(&t, MALLORY);
	ask_all(mallory);
	user_leave(mallory);
	pass(&t, 1);
	ck_assert(!user_may_ask(users_join(&t, MALLORY), 0));
	users_clear(&t);
}

TEST(who_holds_and_owes_nothing_is_forgotten)
{
	struct users t;
	begin(&t);
	for (uid_t i = 0; i < CROWD; i++) {
		struct user *u = users_join(&t, 100000 + i);
		ck_assert(user_may_ask(u, 0));
		user_leave(u);
	}
	ck_assert_uint_eq(HASH_COUNT(t.by_uid), CROWD);
	struct user *victor = users_join(&t, VICTOR);
	ck_assert(user_take(victor, USER_QUERIES, 1));
	user_leave(victor); /* its query is still being answered */
	pass(&t, 3 * SECOND);
	ck_assert_uint_eq(HASH_COUNT(t.by_uid), 1);
	user_give(victor, USER_QUERIES, 1);
	pass(&t, 3 * SECOND);
	ck_assert_uint_eq(HASH_COUNT(t.by_uid), 0);
}

TEST(there_are_no_more_accounts_than_are_allowed)
{
	struct users t;
	begin(&t);
	for (uid_t i = 0; i < USERS_MAX; i++)
		ck_assert_ptr_nonnull(users_join(&t, 100000 + i));
	ck_assert_ptr_null(users_join(&t, VICTOR));
	users_clear(&t);
}

TEST(time_of_the_loop_is_a_tenth_for_each_user)
{
	struct users t;
	uint64_t spent_ns = 0;
	begin(&t);
	struct user *mallory = users_join(&t, MALLORY);
	for (int ms = 0; ms < 10000; ms++) { /* as much as it may, for ten seconds */
		while (!user_rests(mallory, USER_LOOP)) {
			user_spend(mallory, USER_LOOP, 100000);
			spent_ns += 100000;
		}
		pass(&t, 1000000);
	}
	ck_assert_uint_ge(spent_ns, SECOND * 9 / 10);
	ck_assert_uint_le(spent_ns, SECOND * 12 / 10);
	users_clear(&t);
}

TEST(a_round_works_a_bounded_time_for_each_user)
{
	struct users t;
	begin(&t);
	struct user *mallory = users_join(&t, MALLORY), *victor = users_join(&t, VICTOR);
	user_spend(mallory, USER_LOOP, USER_TURN_NS);
	ck_assert(user_rests(mallory, USER_LOOP));
	ck_assert(user_rests(mallory, USER_WALK));
	ck_assert_uint_eq(user_ready_ns(mallory, USER_LOOP), 0); /* in the next one */
	ck_assert(!user_rests(victor, USER_LOOP));
	pass(&t, 0);
	ck_assert(!user_rests(mallory, USER_LOOP));
	users_clear(&t);
}

TEST(a_round_works_a_bounded_time_for_all_users_and_then_for_root_alone)
{
	struct users t;
	begin(&t);
	struct user *root = users_join(&t, 0), *victor = users_join(&t, VICTOR);
	for (uint64_t ns = 0; ns < USERS_TURN_NS; ns += USER_TURN_NS / 2)
		user_spend(users_join(&t, 100000 + (uid_t)ns), USER_LOOP, USER_TURN_NS / 2);
	ck_assert(user_rests(victor, USER_LOOP));
	ck_assert(!user_may_ask(victor, 0));
	ck_assert_uint_eq(user_ready_ns(victor, USER_LOOP), 0); /* in the next one */
	ck_assert(!user_rests(root, USER_LOOP));
	pass(&t, 0);
	ck_assert(user_may_ask(victor, 0));
	users_clear(&t);
}

/* How long all of n users work in ten seconds, each as much as it may. */
static uint64_t work(unsigned n, uint64_t *ret_one_ns)
{
	struct users t;
	uint64_t spent_ns = 0, one_ns = 0;
	begin(&t);
	for (unsigned i = 0; i < n; i++)
		users_join(&t, 100000 + i);
	for (int ms = 0; ms < 20000; ms++) {
		for (struct user *u = t.by_uid; u; u = u->hh.next)
			while (!user_rests(u, USER_LOOP)) {
				user_spend(u, USER_LOOP, 100000);
				/* the first second's allowance is for bursts */
				spent_ns += ms < 10000 ? 0 : 100000;
				one_ns += ms >= 10000 && u->uid == 100000 ? 100000 : 0;
			}
		pass(&t, 1000000);
	}
	users_clear(&t);
	*ret_one_ns = one_ns;
	return spent_ns;
}

TEST(time_of_the_loop_for_all_users_is_three_tenths)
{
	uint64_t one_ns;
	ck_assert_uint_ge(work(3, &one_ns), SECOND * 28 / 10);
	uint64_t all_ns = work(12, &one_ns);
	ck_assert_uint_ge(all_ns, SECOND * 25 / 10);
	ck_assert_uint_le(all_ns, SECOND * 35 / 10);
	ck_assert_uint_ge(one_ns, all_ns / 12 * 8 / 10);
	ck_assert_uint_le(one_ns, all_ns / 12 * 12 / 10);
}

TEST(what_a_round_took_beside_is_divided_by_what_was_spent_in_it)
{
	struct users t;
	begin(&t);
	struct user *mallory = users_join(&t, MALLORY), *victor = users_join(&t, VICTOR);
	struct user *idle = users_join(&t, 100000);
	user_spend(mallory, USER_LOOP, 3000000);
	user_spend(victor, USER_WALK, 1000000);
	users_spend_rest(&t, 4400000);
	ck_assert_uint_eq(mallory->turn_ns, 3300000);
	ck_assert_uint_eq(victor->turn_ns, 1100000);
	ck_assert_uint_eq(mallory->spent_until_ns[USER_LOOP], t.now_ns + 33000000);
	ck_assert_uint_eq(idle->spent_until_ns[USER_LOOP], 0);
	ck_assert_uint_eq(t.spent_ns, 4400000);
	/* what was charged at once is not less than what it took */
	pass(&t, 0);
	user_spend(mallory, USER_LOOP, 1000);
	users_spend_rest(&t, 500);
	ck_assert_uint_eq(t.spent_ns, 4401000);
	users_clear(&t);
}

TEST(connections_that_are_only_looked_at_pay_for_the_round)
{
	struct users t;
	begin(&t);
	struct user *mallory = users_join(&t, MALLORY);
	users_spend_rest(&t, 1000000); /* nobody was there: but clients it was for */
	ck_assert_uint_eq(t.spent_ns, 1000000);
	ck_assert_uint_eq(mallory->spent_until_ns[USER_LOOP], 0);
	pass(&t, 0);
	for (int i = 0; i < 1000; i++)
		user_looked_at(mallory);
	ck_assert_uint_eq(t.spent_ns, 1000000);
	users_spend_rest(&t, 1000000);
	ck_assert_uint_eq(t.spent_ns, 2000000);
	ck_assert_uint_eq(mallory->spent_until_ns[USER_LOOP], t.now_ns + 10000000);
	users_clear(&t);
}

TEST(walks_get_what_other_walkers_leave)
{
	struct users t;
	begin(&t);
	struct user *mallory = users_join(&t, MALLORY), *victor = users_join(&t, VICTOR);
	ck_assert(user_take(mallory, USER_WALKS, 1));
	user_spend(mallory, USER_WALK, SECOND); /* half of all: two seconds' worth */
	ck_assert_uint_eq(user_ready_ns(mallory, USER_WALK), t.now_ns + SECOND);
	ck_assert(user_take(victor, USER_WALKS, 1));
	user_spend(victor, USER_WALK, SECOND); /* a third */
	ck_assert_uint_eq(user_ready_ns(victor, USER_WALK), t.now_ns + 2 * SECOND);
	ck_assert_uint_eq(user_ready_ns(victor, USER_LOOP), 0);
	users_clear(&t);
}

TEST(who_has_spent_all_is_looked_at_seldom)
{
	struct users t;
	begin(&t);
	struct user *mallory = users_join(&t, MALLORY);
	ask_all(mallory);
	ck_assert_uint_ge(user_ready_ns(mallory, USER_LOOP), t.now_ns + USER_REST_NS);
	pass(&t, USER_REST_NS);
	ck_assert(user_may_ask(mallory, 0)); /* two in that time */
	users_clear(&t);
}

TEST(the_second_half_is_shared_by_a_users_connections)
{
	struct users t;
	begin(&t);
	struct user *mallory = users_join(&t, MALLORY);
	ck_assert(user_may_ask(mallory, 5));
	for (unsigned i = 0; i < t.requests_per_second / 2; i++)
		ck_assert(user_may_ask(mallory, 0));
	ck_assert(!user_may_ask(mallory, 5));
	ck_assert(user_may_ask(mallory, 0));
	users_clear(&t);
}

TEST(connecting_alone_ends_in_debt)
{
	struct users t;
	begin(&t);
	struct user *mallory = users_join(&t, MALLORY);
	ck_assert(!user_owes(mallory));
	user_spend(mallory, USER_LOOP, SECOND);
	ck_assert(user_owes(mallory));
	pass(&t, 10 * SECOND);
	ck_assert(!user_owes(mallory));
	users_clear(&t);
}

TEST(root_waits_but_is_never_turned_away_for_debts)
{
	struct users t;
	begin(&t);
	struct user *root = users_join(&t, 0);
	user_spend(root, USER_LOOP, SECOND);
	ck_assert(user_rests(root, USER_LOOP));
	ck_assert(!user_owes(root));
	users_clear(&t);
}
