/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Whose turn it is: how many children there are, who gets one next, and what those hear who wait.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/daemon/service/asked.h"
#include "tests/unit/test.h"

/* Lasts as long as the test that it is written in. */
#define ANSWER(f) (&(struct offload_answer){.run = (f)})

static int stay(struct request *q, void *userdata)
{
	(void)userdata;
	int r = request_progress(q, "here", 0, 0);
	while (r == 0)
		pause();
	return r;
}

/* One more request of the peer's, waiting. */
static struct request *one_more(struct asked *a, size_t slot)
{
	static const struct offload_answer staying = {.run = stay};
	struct request *q = a->peer->request[slot] = calloc(1, sizeof(*q));
	*q = (struct request){.peer = a->peer, .id = 100 + (uint32_t)slot};
	ck_assert_int_eq(offload_start(q, &staying, NULL), 0);
	return q;
}

EACH_TEST(.seconds = 120);

TEST(no_more_children_run_at_once_than_are_allowed)
{
	struct asked a;
	ask(&a);
	a.conf.queries_max = 2;
	start(&a, ANSWER(stay), NULL);
	for (size_t i = 1; i < 6; i++)
		one_more(&a, i);
	turn(&a, 0);
	ck_assert_uint_eq(a.queue.n_children, 2);
	ck_assert_uint_eq(a.queue.n_waiting, 4);
	forget(&a);
	ck_assert_uint_eq(a.queue.n_children, 0);
}

TEST(a_cancelled_child_counts_until_it_is_gone_and_then_the_next_one_starts)
{
	struct asked a;
	ask(&a);
	a.conf.queries_max = 1;
	start(&a, ANSWER(stay), NULL);
	one_more(&a, 1);
	turn(&a, 0);
	struct request *q = a.peer->request[0];
	q->job->kind->free(q->job);
	free(q);
	a.peer->request[0] = NULL;
	ck_assert_uint_eq(a.queue.n_children, 1);
	ck_assert_uint_eq(offload_queue_deadline_ns(&a.queue, 1000) < UINT64_MAX, true);
	uint32_t id = 0;
	while (id != 101) { /* the first may have said something before */
		Mperf__Message *m = answered(&a);
		id = m->answer->id;
		mperf__message__free_unpacked(m, NULL);
	}
	ck_assert_uint_eq(a.queue.n_children, 1);
	forget(&a);
}

TEST(a_user_with_fewer_children_comes_first)
{
	struct asked a, b;
	ask(&a);
	a.conf.queries_max = 1;
	start(&a, ANSWER(stay), NULL);
	one_more(&a, 1);
	turn(&a, 0); /* a's first runs, its second waits */

	ask(&b);
	b.peer->options = &a.options;
	user_leave(b.peer->user);
	b.peer->user = users_join(&a.users, a.peer->uid + 1);
	start(&b, ANSWER(stay), NULL);
	a.conf.queries_max = 2;
	ck_assert_int_eq(offload_queue_tend(&a.queue, 2), 0);
	ck_assert_uint_eq(a.queue.n_waiting, 1);
	struct pollfd fds[4];
	ck_assert_uint_eq(peer_job_fds(b.peer, fds, 4), 1); /* it has a child, so it is b's */
	peer_free(b.peer);
	b.peer = NULL;
	forget(&b);
	forget(&a);
}

static int say_much(struct request *q, void *userdata)
{
	static uint8_t chunk[100000];
	int r = 0;
	(void)userdata;
	for (uint64_t i = 0; i < 20 && r == 0; i++) /* more than any buffer holds */
		r = request_bytes(q, chunk, sizeof(chunk), i * sizeof(chunk), 20 * sizeof(chunk));
	return r ? r : request_done(q, 0);
}

TEST(an_answer_that_nobody_reads_keeps_no_place)
{
	struct asked a;
	ask(&a);
	start(&a, ANSWER(say_much), NULL);
	turn(&a, 0);
	ck_assert_uint_eq(a.queue.n_children, 1);
	for (int ms = 0; ms < PATIENCE_MS && a.queue.n_children > 0; ms++)
		turn(&a, 1);
	ck_assert_uint_eq(a.queue.n_children, 0);
	ck_assert_ptr_nonnull(a.peer->request[0]); /* its rest is still to be read */
	ck_assert_uint_eq(a.peer->user->held[USER_QUERIES], 0);
	uint64_t bytes = a.peer->user->held[USER_CACHE]; /* what it wrote, not what it might have */
	ck_assert_uint_ge(bytes, 2000000);
	ck_assert_uint_le(bytes, 2100000);
	forget(&a);
}

TEST(of_two_users_each_has_a_turn_whoever_asks_more)
{
	struct asked a, b;
	ask(&a);
	a.conf.queries_max = 0; /* nobody starts */
	start(&a, ANSWER(stay), NULL);
	for (size_t i = 1; i < 6; i++)
		one_more(&a, i);
	ask(&b);
	user_leave(b.peer->user);
	b.peer->options = &a.options;
	b.peer->user = users_join(&a.users, a.peer->uid + 1);
	start(&b, ANSWER(stay), NULL);
	for (uint32_t n = 1; n <= 2; n++) /* a's first, then b's, and not a's second */
		ck_assert_int_eq(offload_queue_tend(&a.queue, n), 0);
	ck_assert_uint_eq(a.peer->user->held[USER_QUERIES], 1);
	ck_assert_uint_eq(b.peer->user->held[USER_QUERIES], 1);
	peer_free(b.peer);
	b.peer = NULL;
	forget(&b);
	forget(&a);
}

TEST(too_many_that_wait_are_turned_away_with_the_reason)
{
	struct asked a;
	static const struct offload_answer staying = {.run = stay};
	struct peer *more[16];
	int pair[2];
	ask(&a);
	size_t n_peers = 0, n_wanted = a.users.limit[USER_WAITING].one / PEER_REQUESTS_MAX;
	ck_assert_uint_le(n_wanted, sizeof(more) / sizeof(more[0]));
	for (; n_peers < n_wanted; n_peers++) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		close(pair[1]);
		ck_assert_int_eq(peer_new(&a.options, pair[0], &more[n_peers]), 0);
		for (size_t i = 0; i < PEER_REQUESTS_MAX; i++) {
			struct request *q = calloc(1, sizeof(*q));
			*q = (struct request){.peer = more[n_peers], .id = (uint32_t)i + 1};
			more[n_peers]->request[i] = q;
			ck_assert_int_eq(offload_start(q, &staying, NULL), 0);
			ck_assert_ptr_nonnull(q->job);
		}
	}
	start(&a, ANSWER(stay), NULL);
	ck_assert_ptr_null(a.request->job);
	a.conf.queries_max = 0; /* nobody starts */
	Mperf__Message *m = NULL;
	ck_assert_int_eq(frame_take(&a.peer->out, &m), 0);
	ck_assert_int_eq(m->answer->failure->kind, MPERF__FAILURE_KIND__FAILURE_LIMIT);
	mperf__message__free_unpacked(m, NULL);
	while (n_peers > 0)
		peer_free(more[--n_peers]);
	forget(&a);
}

TEST(who_waits_longer_than_a_second_is_told_for_what)
{
	struct asked a;
	ask(&a);
	a.conf.queries_max = 0;
	start(&a, ANSWER(stay), NULL);
	ck_assert_uint_eq(peer_deadline_ns(a.peer), 1000000000u);
	ck_assert_int_eq(peer_run_due_jobs(a.peer, NULL, 1000000000u), 0);
	ck_assert_uint_eq(peer_deadline_ns(a.peer), UINT64_MAX);
	Mperf__Message *m = answered(&a);
	ck_assert_str_eq(m->answer->progress->what, "waiting for other queries");
	mperf__message__free_unpacked(m, NULL);
	forget(&a);
}

static int say_done(struct request *q, void *userdata)
{
	*(pid_t *)userdata = getpid();
	return request_done(q, 3);
}

TEST(a_private_daemon_answers_in_place)
{
	struct asked a;
	pid_t pid = 0;
	ask(&a);
	a.options.queue = NULL;
	start(&a, ANSWER(say_done), &pid);
	ck_assert_int_eq(pid, getpid());
	ck_assert_int_eq(done_status(&a), 3);
	forget(&a);
}
