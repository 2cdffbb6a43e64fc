/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/control/record_hold.c: what a recording takes of its user's account, and gives
 * back */

#include "daemon/conf/conf.h"
#include "daemon/control/peer.h"
#include "daemon/control/record_private.h"
#include "tests/unit/test.h"

#define MALLORY 60302

static struct conf conf;
static struct users users;
static struct control_options options;
static struct peer peer;
static struct request request;

static void setup(void)
{
	users = (struct users){0};
	conf_defaults(&conf);
	users_set_limits(&users, &conf);
	users_turn(&users, 1);
	options = (struct control_options){.conf = &conf, .users = &users};
	peer = (struct peer){.options = &options, .fd = -1, .uid = MALLORY};
	peer.user = users_join(&users, MALLORY);
	request = (struct request){.peer = &peer, .id = 7};
}

static void teardown(void)
{
	frame_buffer_clear(&peer.out);
	users_clear(&users);
}

EACH_TEST(.begin = setup, .end = teardown);

static void nothing_is_held(void)
{
	for (int i = 0; i < N_USER_HOLDS; i++)
		ck_assert_uint_eq(peer.user->held[i], 0);
}

TEST(what_it_took_it_gives_back)
{
	for (int shared = 0; shared < 2; shared++) {
		struct record_hold h = {0};
		ck_assert_int_eq(record_hold_begin(&h, &request, shared), 0);
		ck_assert_int_eq(record_hold_fds(&h, &request, 3, NULL), 0);
		ck_assert(record_hold_bytes(&h, 1u << 20));
		ck_assert_uint_eq(peer.user->held[USER_CACHE], 1u << 20);
		record_hold_end(&h);
		record_hold_end(&h);
		nothing_is_held();
	}
}

TEST(without_room_to_write_it_is_refused_and_not_empty)
{
	struct record_hold h = {0};
	Mperf__Message *m = NULL;
	uint64_t room = user_room(peer.user, USER_CACHE);
	ck_assert(user_take(peer.user, USER_CACHE, room));
	ck_assert_int_gt(record_hold_begin(&h, &request, true), 0);
	ck_assert_int_eq(frame_take(&peer.out, &m), 0);
	ck_assert_int_eq(m->answer->failure->kind, MPERF__FAILURE_KIND__FAILURE_LIMIT);
	ck_assert_ptr_nonnull(strstr(m->answer->failure->what, "recordings and answers"));
	mperf__message__free_unpacked(m, NULL);
	record_hold_end(&h);
	user_give(peer.user, USER_CACHE, room);
	nothing_is_held();
}
