/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/daemon/service/asked.h"

#include <check.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/base/clock.h"

void ask(struct asked *a)
{
	int pair[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	*a = (struct asked){.client_fd = pair[1], .began_ns = clock_ns(CLOCK_MONOTONIC)};
	conf_defaults(&a->conf);
	a->options =
		(struct control_options){.conf = &a->conf, .queue = &a->queue, .users = &a->users};
	users_set_limits(&a->users, &a->conf);
	ck_assert_int_eq(peer_new(&a->options, pair[0], &a->peer), 0);
	a->peer->greeted = true;
	frame_buffer_clear(&a->peer->out); /* its hello */
	a->request = a->peer->request[0] = calloc(1, sizeof(*a->request));
	*a->request = (struct request){.peer = a->peer, .id = 7};
}

void forget(struct asked *a)
{
	peer_free(a->peer);
	offload_queue_clear(&a->queue);
	users_clear(&a->users);
	frame_buffer_clear(&a->in);
	close(a->client_fd);
}

void turn(struct asked *a, int wait_ms)
{
	struct pollfd fds[4];
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC) - a->began_ns;
	users_turn(&a->users, now_ns);
	ck_assert_int_eq(offload_queue_tend(&a->queue, a->conf.queries_max), 0);
	size_t n = peer_job_fds(a->peer, fds, 4);
	poll(fds, n, wait_ms);
	ck_assert_int_eq(peer_run_due_jobs(a->peer, fds, now_ns), 0);
	ck_assert_int_ge(peer_dispatch(a->peer, 0), 0);
}

Mperf__Message *answered(struct asked *a)
{
	Mperf__Message *m = NULL;
	for (int waited_ms = 0; waited_ms < PATIENCE_MS; waited_ms += 5) {
		int r = frame_take(&a->in, &m);
		if (r == 0)
			return m;
		ck_assert_int_eq(r, FRAME_NONE);
		turn(a, 5);
		(void)frame_buffer_read(&a->in, a->client_fd);
	}
	ck_abort_msg("no answer came");
	return NULL;
}

int done_status(struct asked *a)
{
	Mperf__Message *m = answered(a);
	ck_assert_int_eq(m->answer->id, 7);
	if (m->answer->body_case == MPERF__ANSWER__BODY_FAILURE)
		ck_abort_msg("%s", m->answer->failure->what);
	ck_assert_int_eq(m->answer->body_case, MPERF__ANSWER__BODY_DONE);
	int status = m->answer->done->status;
	mperf__message__free_unpacked(m, NULL);
	return status;
}

void start(struct asked *a, const struct offload_answer *answer, void *userdata)
{
	ck_assert_int_eq(offload_start(a->request, answer, userdata), 0);
}
