/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The handshake and the question loop against a peer made of bytes written beforehand: right,
 * newer, older, mute, gone, and talking nonsense.
 */
#include <sys/socket.h>

#include "client/wire/ask.h"
#include "client/wire/connect.h"
#include "tests/unit/client/said.h"
#include "tests/unit/test.h"

struct ends {
	struct link link;
	int peer_fd;
	struct frame_buffer out;
};

static void open_ends(struct ends *e)
{
	int pair[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	*e = (struct ends){.link.fd = pair[0], .peer_fd = pair[1]};
}

static void close_ends(struct ends *e)
{
	link_close(&e->link);
	if (e->peer_fd >= 0)
		close(e->peer_fd);
	frame_buffer_clear(&e->out);
}

static void put(struct ends *e, Mperf__Message *m)
{
	ck_assert_int_eq(frame_put(&e->out, m), 0);
	ck_assert_int_eq(frame_buffer_write(&e->out, e->peer_fd), 0);
}

static void put_hello(struct ends *e, uint32_t major, uint32_t minor)
{
	Mperf__Hello hello = MPERF__HELLO__INIT;
	Mperf__Message m = MPERF__MESSAGE__INIT;
	hello.major = major;
	hello.minor = minor;
	hello.software = (char *)"mperfd 9.9.9";
	m.body_case = MPERF__MESSAGE__BODY_HELLO;
	m.hello = &hello;
	put(e, &m);
}

static void put_answer(struct ends *e, uint32_t id, Mperf__Answer *a)
{
	Mperf__Message m = MPERF__MESSAGE__INIT;
	a->id = id;
	m.body_case = MPERF__MESSAGE__BODY_ANSWER;
	m.answer = a;
	put(e, &m);
}

static void put_done(struct ends *e, uint32_t id, int status)
{
	Mperf__Done done = MPERF__DONE__INIT;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	done.status = status;
	a.body_case = MPERF__ANSWER__BODY_DONE;
	a.done = &done;
	put_answer(e, id, &a);
}

static void put_failure(struct ends *e, uint32_t id, Mperf__FailureKind kind, const char *what)
{
	Mperf__Failure failure = MPERF__FAILURE__INIT;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	failure.kind = kind;
	failure.what = (char *)what;
	a.body_case = MPERF__ANSWER__BODY_FAILURE;
	a.failure = &failure;
	put_answer(e, id, &a);
}

static void assert_greet_fails(struct ends *e, const char *part)
{
	struct said said;
	said_start(&said);
	int r = link_greet(&e->link);
	const char *text = said_end(&said);
	ck_assert_int_eq(r, LINK_FAILED);
	ck_assert_msg(strstr(text, part) != NULL, "%s", text);
}

TEST(peers_of_one_major_version_greet)
{
	struct ends e;
	open_ends(&e);
	put_hello(&e, PROTOCOL_MAJOR, PROTOCOL_MINOR + 5);
	ck_assert_int_eq(link_greet(&e.link), 0);
	ck_assert_str_eq(e.link.software, "mperfd 9.9.9");
	close_ends(&e);
}

TEST(a_newer_and_an_older_daemon_are_told_apart)
{
	struct ends e;
	open_ends(&e);
	put_hello(&e, PROTOCOL_MAJOR + 1, 0);
	assert_greet_fails(&e, "Update mperfctl to the version of mperfd");
	close_ends(&e);

	open_ends(&e);
	put_hello(&e, PROTOCOL_MAJOR - 1, 3);
	assert_greet_fails(&e, "'mperfd 9.9.9' speaks 0.3");
	close_ends(&e);
}

TEST(who_hangs_up_instead_of_greeting_is_lost)
{
	struct ends e;
	open_ends(&e);
	close(e.peer_fd);
	e.peer_fd = -1;
	assert_greet_fails(&e, "hung up");
	close_ends(&e);
}

TEST(who_talks_nonsense_is_not_ours)
{
	static const char *const nonsense[] = {
		"HTTP/1.1 400 Bad Request\r\n", "\xff\xff\xff\xff", "\x04\0\0\0\xff\xff\xff\xff"};
	static const size_t n[] = {26, 4, 8};
	for (int i = 0; i < 3; i++) {
		struct ends e;
		open_ends(&e);
		ck_assert_int_eq(write(e.peer_fd, nonsense[i], n[i]), (ssize_t)n[i]);
		assert_greet_fails(&e, "does not speak mperf's protocol");
		close_ends(&e);
	}
}

TEST(an_answer_before_the_greeting_is_not_ours)
{
	struct ends e;
	open_ends(&e);
	put_done(&e, 1, 0);
	assert_greet_fails(&e, "does not speak mperf's protocol");
	close_ends(&e);
}

static int run(struct ends *e, struct ask *k, struct said *said)
{
	Mperf__ListRequest list = MPERF__LIST_REQUEST__INIT;
	Mperf__Request request = MPERF__REQUEST__INIT;
	request.body_case = MPERF__REQUEST__BODY_LIST;
	request.list = &list;
	k->link = &e->link;
	said_start(said);
	int r = ask_run(k, &request);
	said_end(said);
	return r;
}

TEST(a_question_ends_with_its_own_done)
{
	struct ends e;
	struct ask k = {0};
	struct said said;
	open_ends(&e);
	put_done(&e, 77, 9); /* of nobody's question */
	put_done(&e, 1, 3);
	ck_assert_int_eq(run(&e, &k, &said), 0);
	ck_assert_int_eq(k.status, 3);
	ck_assert_str_eq(said.text, "");
	close_ends(&e);
}

TEST(a_failure_is_said_and_usage_has_its_own_status)
{
	struct ends e;
	struct ask k = {0};
	struct said said;
	open_ends(&e);
	put_failure(&e, 1, MPERF__FAILURE_KIND__FAILURE_USAGE, "there is no topic '\033[5m'");
	ck_assert_int_eq(run(&e, &k, &said), ASK_FAILED);
	ck_assert_int_eq(k.exit_status, EXIT_USAGE);
	ck_assert_str_eq(said.text, "mperfctl: there is no topic '\\x1b[5m'.\n");

	put_failure(&e, 2, MPERF__FAILURE_KIND__FAILURE_REFUSED, "");
	ck_assert_int_eq(run(&e, &k, &said), ASK_FAILED);
	ck_assert_int_eq(k.exit_status, EXIT_FAILED);
	close_ends(&e);
}

TEST(a_daemon_that_dies_mid_way_is_told_in_one_sentence)
{
	struct ends e;
	struct ask k = {0};
	struct said said;
	open_ends(&e);
	ck_assert_int_eq(write(e.peer_fd, "\x10\0\0\0half", 8), 8);
	shutdown(e.peer_fd, SHUT_WR);
	ck_assert_int_eq(run(&e, &k, &said), ASK_FAILED);
	ck_assert_ptr_nonnull(strstr(said.text, "hung up"));
	ck_assert_ptr_eq(strchr(said.text, '\n'), said.text + strlen(said.text) - 1);
	close_ends(&e);
}

TEST(a_malformed_answer_ends_the_question)
{
	struct ends e;
	struct ask k = {0};
	struct said said;
	open_ends(&e);
	ck_assert_int_eq(write(e.peer_fd, "\x02\0\0\0\xff\xff", 6), 6);
	ck_assert_int_eq(run(&e, &k, &said), ASK_FAILED);
	ck_assert_ptr_nonnull(strstr(said.text, "malformed protocol message"));
	close_ends(&e);
}

static int refuse(void *userdata, const Mperf__Answer *a)
{
	(void)a;
	++*(int *)userdata;
	return 5;
}

TEST(a_callback_can_stop_the_question)
{
	struct ends e;
	int n_called = 0;
	struct ask k = {.answer = refuse, .userdata = &n_called};
	struct said said;
	Mperf__Rows rows = MPERF__ROWS__INIT;
	Mperf__Answer a = MPERF__ANSWER__INIT;
	a.body_case = MPERF__ANSWER__BODY_ROWS;
	a.rows = &rows;
	open_ends(&e);
	put_answer(&e, 1, &a);
	put_answer(&e, 1, &a);
	ck_assert_int_eq(run(&e, &k, &said), ASK_FAILED);
	ck_assert_int_eq(n_called, 1);
	close_ends(&e);
}
