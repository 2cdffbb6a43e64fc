/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The server against clients made of sockets, well behaved ones and others. Time is what the tests
 * say it is. The question that all ask is one for a command that does not exist: it is answered at
 * once, with a failure of version.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/control/server.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

#define CLIENTS 40
#define ROUNDS_MAX 200000 /* of one wait; it takes a handful */

struct rig {
	char folder[32];
	struct conf conf;
	struct control_options options;
	struct server *server;
	uint64_t now_ns;
	int fd[CLIENTS]; /* -1: none */
	struct frame_buffer in[CLIENTS];
};

static void rig_prepare(struct rig *g)
{
	*g = (struct rig){.folder = "/tmp/mperf-server-XXXXXX", .now_ns = 1000 * SECOND};
	ck_assert_ptr_nonnull(mkdtemp(g->folder));
	conf_defaults(&g->conf);
	snprintf(g->conf.socket_path, sizeof(g->conf.socket_path), "%s/socket", g->folder);
	g->options.conf = &g->conf;
	for (int i = 0; i < CLIENTS; i++)
		g->fd[i] = -1;
}

static void rig_begin(struct rig *g)
{
	struct listener_error error = {"", ""};
	rig_prepare(g);
	if (server_new(&g->options, -1, &g->server, &error) != 0)
		ck_abort_msg("%s", error.text);
}

static void rig_end(struct rig *g)
{
	server_free(g->server);
	for (int i = 0; i < CLIENTS; i++) {
		if (g->fd[i] >= 0)
			close(g->fd[i]);
		frame_buffer_clear(&g->in[i]);
	}
	unlink(g->conf.socket_path);
	ck_assert_int_eq(rmdir(g->folder), 0);
}

/* False if there was nothing to do. */
static bool server_round(struct rig *g)
{
	struct pollfd fds[64];
	size_t n = server_fds(g->server, fds, 64);
	bool due = server_deadline_ns(g->server) <= g->now_ns;
	bool news = poll(fds, n, 0) > 0;
	ck_assert_int_eq(server_dispatch(g->server, fds, n, g->now_ns), 0);
	return news || due;
}

/* As many rounds as come without waiting. */
static void settle(struct rig *g)
{
	for (int i = 0; i < ROUNDS_MAX; i++)
		if (!server_round(g))
			return;
	ck_abort_msg("the server does not come to rest");
}

static void pass_time(struct rig *g, uint64_t ns)
{
	g->now_ns += ns;
	settle(g);
}

/* Connect; what a test has changed in the configuration holds from then on. */
static void dial(struct rig *g, int i)
{
	server_reload(g->server);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, g->conf.socket_path);
	g->fd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(g->fd[i], (struct sockaddr *)&address, sizeof(address)), 0);
	fcntl(g->fd[i], F_SETFL, O_NONBLOCK);
	settle(g);
}

static void say(struct rig *g, int i, const void *bytes, size_t n)
{
	ck_assert_int_eq(send(g->fd[i], bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

static size_t pack(uint8_t *to, const Mperf__Message *m)
{
	struct frame_buffer b = {0};
	ck_assert_int_eq(frame_put(&b, m), 0);
	size_t n = frame_buffer_filled(&b);
	memcpy(to, b.bytes, n);
	frame_buffer_clear(&b);
	return n;
}

static size_t pack_hello(uint8_t *to)
{
	Mperf__Hello hello = MPERF__HELLO__INIT;
	Mperf__Message m = MPERF__MESSAGE__INIT;
	hello.major = PROTOCOL_MAJOR;
	m.body_case = MPERF__MESSAGE__BODY_HELLO;
	m.hello = &hello;
	return pack(to, &m);
}

static size_t pack_question(uint8_t *to, uint32_t id)
{
	Mperf__Request request = MPERF__REQUEST__INIT;
	Mperf__Message m = MPERF__MESSAGE__INIT;
	request.id = id;
	m.body_case = MPERF__MESSAGE__BODY_REQUEST;
	m.request = &request;
	return pack(to, &m);
}

static void question(struct rig *g, int i, uint32_t id)
{
	uint8_t bytes[128];
	say(g, i, bytes, pack_question(bytes, id));
}

/* What the server has sent: the next message, NULL for the end of the connection. */
static Mperf__Message *heard(struct rig *g, int i)
{
	Mperf__Message *m = NULL;
	int r = frame_take(&g->in[i], &m);
	if (r == FRAME_NONE) {
		int64_t n = frame_buffer_read(&g->in[i], g->fd[i]);
		if (n == 0 || n == -ECONNRESET)
			return NULL;
		ck_assert_int_gt(n, 0);
		r = frame_take(&g->in[i], &m);
	}
	ck_assert_int_eq(r, 0);
	return m;
}

static void hear_hello(struct rig *g, int i)
{
	Mperf__Message *m = heard(g, i);
	ck_assert_ptr_nonnull(m);
	ck_assert_int_eq(m->body_case, MPERF__MESSAGE__BODY_HELLO);
	mperf__message__free_unpacked(m, NULL);
}

/* Connect, and exchange hellos. */
static void greet(struct rig *g, int i)
{
	uint8_t bytes[128];
	dial(g, i);
	say(g, i, bytes, pack_hello(bytes));
	settle(g);
	hear_hello(g, i);
}

static void hear_failure(
	struct rig *g, int i, uint32_t id, Mperf__FailureKind kind, const char *what)
{
	Mperf__Message *m = heard(g, i);
	ck_assert_ptr_nonnull(m);
	ck_assert_int_eq(m->body_case, MPERF__MESSAGE__BODY_ANSWER);
	ck_assert_int_eq(m->answer->body_case, MPERF__ANSWER__BODY_FAILURE);
	ck_assert_uint_eq(m->answer->id, id);
	ck_assert_int_eq(m->answer->failure->kind, kind);
	if (!strstr(m->answer->failure->what, what))
		ck_abort_msg("'%s' has no '%s'", m->answer->failure->what, what);
	mperf__message__free_unpacked(m, NULL);
}

static void hear_answer(struct rig *g, int i, uint32_t id)
{
	hear_failure(g, i, id, MPERF__FAILURE_KIND__FAILURE_VERSION, "does not know this command");
}

/* Answers that have come so far, in the order of their ids from `first` on. */
static unsigned hear_answers(struct rig *g, int i, uint32_t first)
{
	unsigned n = 0;
	for (;;) {
		struct pollfd p = {.fd = g->fd[i], .events = POLLIN};
		Mperf__Message *m = NULL;
		if (frame_take(&g->in[i], &m) == 0) {
			ck_assert_int_eq(
				m->answer->failure->kind, MPERF__FAILURE_KIND__FAILURE_VERSION);
			ck_assert_uint_eq(m->answer->id, first + n);
			mperf__message__free_unpacked(m, NULL);
			n++;
		} else if (poll(&p, 1, 0) == 0 || frame_buffer_read(&g->in[i], g->fd[i]) <= 0) {
			return n;
		}
	}
}

static uint32_t n_peers(const struct rig *g)
{
	struct server_status status;
	server_status(g->server, &status);
	return status.n_peers;
}

static void assert_hung_up(struct rig *g, int i, uint32_t n_left)
{
	ck_assert_ptr_null(heard(g, i));
	ck_assert_uint_eq(n_peers(g), n_left);
}

EACH_TEST(.seconds = 120);

/* --- clients ---------------------------------------------------------------------------------- */

TEST(who_greets_and_asks_is_answered)
{
	struct rig g;
	rig_begin(&g);
	greet(&g, 0);
	question(&g, 0, 5);
	settle(&g);
	hear_answer(&g, 0, 5);
	ck_assert_uint_eq(n_peers(&g), 1);
	close(g.fd[0]);
	g.fd[0] = -1;
	settle(&g);
	ck_assert_uint_eq(n_peers(&g), 0);
	rig_end(&g);
}

TEST(what_is_done_for_a_client_is_counted_with_all_that_a_round_takes)
{
	struct rig g;
	rig_begin(&g);
	ck_assert_uint_eq(server_spent_ns(g.server), 0);
	greet(&g, 0);
	uint64_t greeted_ns = server_spent_ns(g.server);
	ck_assert_uint_gt(greeted_ns, 0);
	question(&g, 0, 5);
	settle(&g);
	uint64_t asked_ns = server_spent_ns(g.server);
	ck_assert_uint_gt(asked_ns, greeted_ns);
	ck_assert_uint_lt(asked_ns, SECOND);
	server_spend(g.server, SECOND); /* of which some was charged already */
	ck_assert_uint_eq(server_spent_ns(g.server), SECOND);
	server_spend(g.server, 1000);
	ck_assert_uint_eq(server_spent_ns(g.server), SECOND + 1000);
	/* who leaves is looked at once more */
	close(g.fd[0]);
	g.fd[0] = -1;
	settle(&g);
	ck_assert_uint_gt(server_spent_ns(g.server), SECOND + 1000);
	rig_end(&g);
}

TEST(many_clients_are_all_answered)
{
	struct rig g;
	rig_begin(&g);
	for (int i = 0; i < CLIENTS; i++)
		greet(&g, i);
	for (int i = 0; i < CLIENTS; i++)
		question(&g, i, 1);
	settle(&g);
	for (int i = 0; i < CLIENTS; i++) {
		hear_answer(&g, i, 1);
	}
	ck_assert_uint_eq(server_deadline_ns(g.server), UINT64_MAX); /* they cost nothing now */
	rig_end(&g);
}

TEST(a_question_may_come_byte_by_byte)
{
	struct rig g;
	uint8_t bytes[128];
	rig_begin(&g);
	greet(&g, 0);
	size_t n = pack_question(bytes, 9);
	for (size_t i = 0; i < n; i++) {
		say(&g, 0, bytes + i, 1);
		settle(&g);
	}
	hear_answer(&g, 0, 9);
	ck_assert_uint_eq(server_deadline_ns(g.server), UINT64_MAX);
	rig_end(&g);
}

TEST(who_says_nothing_is_hung_up_on_after_ten_seconds)
{
	struct rig g;
	rig_begin(&g);
	dial(&g, 0);
	ck_assert_uint_eq(server_deadline_ns(g.server), g.now_ns + PEER_HELLO_NS);
	pass_time(&g, PEER_HELLO_NS - 1);
	ck_assert_uint_eq(n_peers(&g), 1);
	pass_time(&g, 1);
	hear_hello(&g, 0);
	hear_failure(&g, 0, 0, MPERF__FAILURE_KIND__FAILURE_USAGE, "no hello");
	assert_hung_up(&g, 0, 0);
	rig_end(&g);
}

TEST(what_came_while_the_loop_was_kept_elsewhere_did_not_come_late)
{
	struct rig g;
	uint8_t bytes[128];
	rig_begin(&g);
	dial(&g, 0);
	say(&g, 0, bytes, pack_hello(bytes));
	pass_time(&g, PEER_HELLO_NS + 1);
	hear_hello(&g, 0);
	question(&g, 0, 1);
	settle(&g);
	hear_answer(&g, 0, 1);
	rig_end(&g);
}

TEST(who_has_greeted_may_stay_silent)
{
	struct rig g;
	rig_begin(&g);
	greet(&g, 0);
	pass_time(&g, 86400 * SECOND);
	question(&g, 0, 1);
	settle(&g);
	hear_answer(&g, 0, 1);
	rig_end(&g);
}

TEST(half_a_frame_is_waited_for_thirty_seconds)
{
	struct rig g;
	uint8_t bytes[128];
	rig_begin(&g);
	greet(&g, 0);
	size_t n = pack_question(bytes, 1);
	say(&g, 0, bytes, n - 1);
	settle(&g);
	pass_time(&g, PEER_FRAME_NS - 1);
	ck_assert_uint_eq(n_peers(&g), 1);
	say(&g, 0, bytes + n - 1, 1); /* just in time */
	settle(&g);
	hear_answer(&g, 0, 1);
	say(&g, 0, bytes, n - 1);
	settle(&g);
	pass_time(&g, PEER_FRAME_NS);
	hear_failure(&g, 0, 0, MPERF__FAILURE_KIND__FAILURE_USAGE, "incomplete for 30 seconds");
	assert_hung_up(&g, 0, 0);
	rig_end(&g);
}

TEST(whole_frames_do_not_buy_time_for_half_ones)
{
	struct rig g;
	uint8_t bytes[128];
	rig_begin(&g);
	greet(&g, 0);
	size_t n = pack_question(bytes, 1);
	say(&g, 0, bytes, n);
	say(&g, 0, bytes, n / 2);
	settle(&g);
	for (size_t i = n / 2; i < n - 1; i++) { /* one byte each so often, never the last */
		pass_time(&g, PEER_FRAME_NS / n);
		say(&g, 0, bytes + i, 1);
		settle(&g);
	}
	pass_time(&g, PEER_FRAME_NS);
	ck_assert_uint_eq(n_peers(&g), 0);
	rig_end(&g);
}

/* What is said after a hello, and what comes of it. */
static void assert_breaks(const void *bytes, size_t n, Mperf__FailureKind kind, const char *what)
{
	struct rig g;
	struct server_status status;
	rig_begin(&g);
	greet(&g, 0);
	greet(&g, 1);
	say(&g, 0, bytes, n);
	settle(&g);
	hear_failure(&g, 0, 0, kind, what);
	assert_hung_up(&g, 0, 1);
	server_status(g.server, &status);
	ck_assert_uint_eq(status.n_hung_up, 1);
	question(&g, 1, 1);
	settle(&g);
	hear_answer(&g, 1, 1);
	rig_end(&g);
}

TEST(a_length_of_4_gb_ends_the_connection_alone)
{
	assert_breaks(
		"\xff\xff\xff\xff", 4, MPERF__FAILURE_KIND__FAILURE_LIMIT, "exceeds the size");
}

TEST(garbage_ends_the_connection_alone)
{
	assert_breaks("\x08\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 12,
		MPERF__FAILURE_KIND__FAILURE_USAGE, "not a message of the protocol");
}

TEST(a_second_hello_ends_the_connection_alone)
{
	uint8_t bytes[128];
	assert_breaks(bytes, pack_hello(bytes), MPERF__FAILURE_KIND__FAILURE_USAGE,
		"only requests are accepted");
}

TEST(a_request_without_an_id_ends_the_connection_alone)
{
	uint8_t bytes[128];
	assert_breaks(bytes, pack_question(bytes, 0), MPERF__FAILURE_KIND__FAILURE_USAGE,
		"request id is 0");
}

TEST(a_question_before_the_hello_ends_the_connection)
{
	struct rig g;
	rig_begin(&g);
	dial(&g, 0);
	question(&g, 0, 1);
	settle(&g);
	hear_hello(&g, 0);
	hear_failure(&g, 0, 0, MPERF__FAILURE_KIND__FAILURE_USAGE, "hello must come first");
	assert_hung_up(&g, 0, 0);
	rig_end(&g);
}

/* --- quotas ----------------------------------------------------------------------------------- */

TEST(one_client_too_many_is_told_the_limit)
{
	struct rig g;
	rig_begin(&g);
	g.conf.clients_max = 2;
	greet(&g, 0);
	greet(&g, 1);
	dial(&g, 2);
	hear_hello(&g, 2);
	hear_failure(&g, 2, 0, MPERF__FAILURE_KIND__FAILURE_LIMIT, "clients-max");
	assert_hung_up(&g, 2, 2);
	close(g.fd[0]);
	g.fd[0] = -1;
	settle(&g);
	greet(&g, 3); /* there is room again */
	ck_assert_uint_eq(n_peers(&g), 2);
	rig_end(&g);
}

TEST(one_client_too_many_of_a_user_is_told_the_limit)
{
	struct rig g;
	rig_begin(&g);
	g.conf.clients_per_user_max = 1;
	greet(&g, 0);
	dial(&g, 1);
	hear_hello(&g, 1);
	hear_failure(&g, 1, 0, MPERF__FAILURE_KIND__FAILURE_LIMIT, "clients-per-user-max");
	assert_hung_up(&g, 1, 1);
	rig_end(&g);
}

TEST(who_asks_too_fast_is_slowed_and_not_failed)
{
	struct rig g;
	rig_begin(&g);
	g.conf.requests_per_second_max = 10;
	greet(&g, 0);
	for (uint32_t id = 1; id <= 60; id++)
		question(&g, 0, id);
	settle(&g);
	unsigned n = hear_answers(&g, 0, 1);
	ck_assert_uint_ge(n, 1);
	ck_assert_uint_le(n, 10); /* its hello was one message, too */
	for (int i = 0; i < 5; i++) {
		unsigned before = n;
		pass_time(&g, SECOND);
		n += hear_answers(&g, 0, n + 1);
		ck_assert_uint_le(n - before, 11);
	}
	for (int i = 0; i < 60 && n < 60; i++) {
		pass_time(&g, SECOND);
		n += hear_answers(&g, 0, n + 1);
	}
	ck_assert_uint_eq(n, 60);
	rig_end(&g);
}

TEST(who_asks_too_fast_does_not_slow_others)
{
	struct rig g;
	rig_begin(&g);
	g.conf.requests_per_second_max = 10;
	greet(&g, 0);
	greet(&g, 1);
	for (uint32_t id = 1; id <= 60; id++)
		question(&g, 0, id);
	question(&g, 1, 1);
	settle(&g);
	hear_answer(&g, 1, 1);
	rig_end(&g);
}

TEST(one_round_takes_a_bounded_number_of_messages)
{
	struct rig g;
	rig_begin(&g);
	g.conf.requests_per_second_max = 10000;
	greet(&g, 0);
	for (uint32_t id = 1; id <= 200; id++)
		question(&g, 0, id);
	server_round(&g);
	unsigned n = hear_answers(&g, 0, 1);
	ck_assert_uint_eq(n, PEER_MESSAGES_ROUND_MAX);
	pass_time(&g, 100 * SECOND);
	n += hear_answers(&g, 0, n + 1);
	ck_assert_uint_eq(n, 200);
	rig_end(&g);
}

TEST(who_does_not_read_is_not_read_from)
{
	struct rig g;
	uint8_t bytes[128];
	unsigned asked = 0;
	rig_begin(&g);
	g.conf.requests_per_second_max = 1000000000;
	g.conf.client_bytes_max = 65536;
	greet(&g, 0);
	greet(&g, 1);
	for (int still = 0; still < 3; still++) { /* until neither side moves any more */
		size_t n = pack_question(bytes, asked + 1);
		while (send(g.fd[0], bytes, n, MSG_NOSIGNAL) == (ssize_t)n) {
			n = pack_question(bytes, ++asked + 1);
			still = 0;
			ck_assert_uint_lt(asked, 1000000);
		}
		for (int i = 0; i < 100; i++)
			pass_time(&g, SECOND);
	}
	question(&g, 1, 1);
	settle(&g);
	hear_answer(&g, 1, 1);
	unsigned n = 0;
	for (int i = 0; i < 100000 && n < asked; i++) { /* now it reads: nothing was dropped */
		pass_time(&g, SECOND);
		n += hear_answers(&g, 0, n + 1);
	}
	ck_assert_uint_eq(n, asked);
	rig_end(&g);
}

TEST(who_does_not_read_why_it_is_hung_up_on_is_closed_after_a_while)
{
	struct rig g;
	rig_begin(&g);
	g.conf.requests_per_second_max = 1000000000;
	greet(&g, 0);
	for (uint32_t id = 1; id <= 20000; id++) {
		uint8_t bytes[128];
		size_t n = pack_question(bytes, id);
		if (send(g.fd[0], bytes, n, MSG_NOSIGNAL) < 0)
			pass_time(&g, SECOND);
	}
	settle(&g); /* its socket is full of answers */
	while (send(g.fd[0], "\xff\xff\xff\xff", 4, MSG_NOSIGNAL) < 0)
		pass_time(&g, SECOND);
	pass_time(&g, SECOND);
	ck_assert_uint_eq(n_peers(&g), 1);
	pass_time(&g, PEER_CLOSING_NS);
	ck_assert_uint_eq(n_peers(&g), 0);
	rig_end(&g);
}
