/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Programs that have to wait for their turn, of daemon/loops/feed.c: whatever they do meanwhile,
 * the daemon sleeps until it is their time. And programs that others do not reach.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/loops/feed.h"
#include "daemon/session/listener.h"
#include "tests/unit/daemon/loops/told.h"
#include "tests/unit/test.h"

#define S 1000000000ull

static char folder[32], path[64];
static struct listener listener;
static struct task_table tasks; /* empty, so that everybody is looked for */
static struct loop_sites sites;
static struct feed *feed;
static unsigned n_taken, n_looks;

static int take(void *userdata, struct task *task, const struct loop_counts *c)
{
	(void)userdata, (void)task, (void)c;
	n_taken++;
	return 0;
}

static int catch_up(void *userdata)
{
	(void)userdata;
	n_looks++;
	return 0;
}

static void setup(void)
{
	struct listener_error error;
	n_taken = n_looks = 0;
	strcpy(folder, "/tmp/mperf-wait-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/feed", folder);
	ck_assert_int_eq(listener_bind(&listener, LISTENER_FEED, path, &error), 0);
	const struct feed_options o = {
		.listen_fd = listener.fd,
		.limits = {.programs_max = 4,
			.programs_per_user_max = 4,
			.program_bytes_max = 1 << 20,
			.bytes_max = 1 << 22,
			.period_ms = 1000},
		.tasks = &tasks,
		.sites = &sites,
		.take = take,
		.catch_up = catch_up,
	};
	ck_assert_int_eq(feed_new(&o, &feed), 0);
}

static void teardown(void)
{
	feed_free(feed);
	loop_sites_clear(&sites);
	task_table_clear(&tasks);
	listener_clear(&listener);
	ck_assert_int_eq(rmdir(folder), 0);
}

EACH_TEST(.begin = setup, .end = teardown);

/* -1 if nobody answers. */
static int dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

/* Nothing (-1), a message, or the end (0). */
static ssize_t heard(int fd)
{
	uint8_t bytes[256];
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	return n < 0 && errno != EAGAIN ? 0 : n;
}

static uint64_t cause(enum feed_cause cause)
{
	struct feed_status status;
	feed_status(feed, &status);
	return status.causes[cause];
}

/* A program that connects, announces a thread and is gone. */
static void come_and_go(void)
{
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		struct told t;
		int fd = dial();
		told_hello(&t, 1, 0);
		bool said = send(fd, t.bytes, t.n, MSG_NOSIGNAL) == (ssize_t)t.n;
		told_thread(&t, 3, (uint32_t)getpid());
		said = said && send(fd, t.bytes, t.n, MSG_NOSIGNAL) == (ssize_t)t.n;
		_exit(said ? 0 : 1);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

static uint32_t programs_at(uint64_t now_ns)
{
	struct feed_status status;
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(feed_dispatch(feed, now_ns), 0);
	feed_status(feed, &status);
	return status.n_programs;
}

TEST(who_hung_up_while_he_had_to_wait_wakes_nobody_before_his_time)
{
	come_and_go(); /* its thread has to wait for the next look */
	ck_assert_uint_eq(programs_at(S), 1);
	ck_assert_uint_eq(feed_deadline_ns(feed), S + FEED_LOOK_NS);
	struct pollfd p = {.fd = feed_fd(feed), .events = POLLIN};
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	ck_assert_uint_eq(programs_at(S + FEED_LOOK_NS), 0);
}

static void say(int fd, const struct told *t)
{
	ck_assert_int_eq(send(fd, t->bytes, t->n, MSG_NOSIGNAL), (ssize_t)t->n);
}

/* A program that has announced its object, in that version of the feed. */
static int announce(uint32_t version)
{
	struct told t;
	int fd = dial();
	told_version(&t, version);
	say(fd, &t);
	told_object(&t, 0, TOLD_COUNTERS, 1);
	say(fd, &t);
	return fd;
}

static void say_table(int fd)
{
	struct told t, table;
	told_table(&table);
	told_table_message(&t, 0, 0, 0, TOLD_COUNTERS, &table);
	say(fd, &t);
}

static void say_counts(int fd)
{
	struct told t;
	told_thread(&t, 3, (uint32_t)getpid());
	say(fd, &t);
	told_deltas(&t, 3, 0, 1, 10, 100);
	say(fd, &t);
	told_round(&t, 100);
	say(fd, &t);
}

/* A program that tells one round of counts. */
static int tell(void)
{
	int fd = announce(MPERF_FEED_UNASKED);
	say_table(fd);
	say_counts(fd);
	return fd;
}

/* The answer for object 0; -1: none. */
static int wanted(int fd)
{
	struct mperf_feed_want m = {.object = 1};
	if (recv(fd, &m, sizeof(m), MSG_DONTWAIT) < 0)
		return -1;
	ck_assert_int_eq(m.head.type, MPERF_WANT);
	ck_assert_uint_eq(m.head.bytes, sizeof(m));
	ck_assert_uint_eq(m.object, 0);
	return (int)m.wanted;
}

TEST(tables_of_a_known_build_id_are_not_wanted_again)
{
	for (uint64_t i = 0; i < 3; i++) {
		int fd = announce(MPERF_FEED_ON_REQUEST);
		ck_assert_uint_eq(programs_at(10 * i * S + S), 1);
		ck_assert_int_eq(wanted(fd), i == 0);
		if (i == 0)
			say_table(fd);
		say_counts(fd);
		close(fd);
		n_taken = 0;
		programs_at(10 * i * S + 2 * S);
		ck_assert_uint_eq(programs_at(10 * i * S + 3 * S), 0);
		ck_assert_uint_gt(n_taken, 0);
		ck_assert_uint_eq(cause(FEED_UNANNOUNCED), 0);
	}
}

/* The process is not known yet, but nothing of the answer depends on it. */
TEST(the_answer_does_not_wait_for_a_look)
{
	int fd = announce(MPERF_FEED_ON_REQUEST);
	ck_assert_uint_eq(programs_at(S), 1);
	ck_assert_int_eq(wanted(fd), 1);
	ck_assert_uint_eq(n_looks, 0);
	close(fd);
}

TEST(tables_that_were_sent_without_waiting_are_no_fault)
{
	int first = announce(MPERF_FEED_ON_REQUEST);
	say_table(first);
	programs_at(S);
	int second = announce(MPERF_FEED_ON_REQUEST);
	say_table(second);
	say_counts(second);
	programs_at(2 * S);
	programs_at(3 * S);
	ck_assert_int_eq(wanted(second), 0);
	ck_assert_uint_gt(n_taken, 0);
	ck_assert_uint_eq(cause(FEED_TWICE), 0);
	close(first);
	close(second);
}

TEST(a_program_of_the_first_version_is_not_answered)
{
	int fd = tell();
	programs_at(S);
	programs_at(2 * S);
	ck_assert_int_eq(wanted(fd), -1);
	ck_assert_uint_gt(n_taken, 0);
	close(fd);
}

TEST(nobody_is_read_before_it_is_known_what_he_became)
{
	struct task *self;
	ck_assert_int_eq(task_add(&tasks, getpid(), getpid(), 1, &self), 0);
	int first = tell();
	ck_assert_uint_eq(programs_at(S), 1);
	ck_assert_uint_eq(n_looks, 1);
	unsigned once = n_taken;
	ck_assert_uint_gt(once, 0);
	close(tell()); /* after that look: what happened before he came may be unread */
	ck_assert_uint_eq(programs_at(S), 2);
	ck_assert_uint_eq(n_looks, 1);
	ck_assert_uint_eq(n_taken, once);
	ck_assert_int_eq(
		feed_settle(feed, S + 1, UINT64_MAX), 0); /* who settles does not wait for it */
	ck_assert_uint_eq(n_looks, 2);
	ck_assert_uint_eq(n_taken, 2 * once);
	close(first);
}

TEST(who_says_nothing_is_hung_up_on_in_time)
{
	int fd = dial();
	ck_assert_uint_eq(programs_at(S), 1);
	ck_assert_uint_eq(feed_deadline_ns(feed), S + FEED_HELLO_NS);
	ck_assert_uint_eq(programs_at(S + FEED_HELLO_NS - 1), 1);
	ck_assert_int_eq(heard(fd), -1);
	ck_assert_uint_eq(programs_at(S + FEED_HELLO_NS), 0);
	ck_assert_int_eq(heard(fd), 0);
	ck_assert_uint_eq(cause(FEED_SILENT), 1);
	ck_assert_uint_eq(feed_deadline_ns(feed), UINT64_MAX);
	close(fd);
}

TEST(a_packet_longer_than_any_is_hung_up_on)
{
	int fd = dial();
	_Alignas(8) static uint8_t bytes[MPERF_PACKET_BYTES_MAX + 1];
	ck_assert_int_eq(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL), (ssize_t)sizeof(bytes));
	ck_assert_uint_eq(programs_at(S), 0);
	ck_assert_int_eq(heard(fd), 0);
	ck_assert_uint_eq(cause(FEED_LENGTH), 1);
	close(fd);
}

static uint32_t period_told(int fd)
{
	struct mperf_feed_ask asked;
	ck_assert_int_eq(recv(fd, &asked, sizeof(asked), MSG_DONTWAIT), (ssize_t)sizeof(asked));
	return asked.period_ms;
}

/* Its buffer is full when the period changes for the last time. */
TEST(a_program_that_did_not_read_is_sent_the_period_when_it_sends_again)
{
	struct told t;
	struct mperf_feed_ask asked = {.period_ms = 0};
	const struct feed_reach all = {.all = true};
	int fd = dial();
	told_hello(&t, 1, 0);
	say(fd, &t);
	ck_assert_uint_eq(programs_at(S), 1);
	for (uint32_t i = 0; i < 10000; i++)
		ck_assert_int_eq(feed_want_period(feed, &all, &all, 20 + i % 2), 0);
	ck_assert_int_eq(feed_want_period(feed, &all, &all, 60), 0);
	while (recv(fd, &asked, sizeof(asked), MSG_DONTWAIT) > 0)
		ck_assert_uint_ne(asked.period_ms, 60);
	ck_assert_uint_gt(asked.period_ms, 0);

	told_round(&t, S);
	say(fd, &t);
	ck_assert_uint_eq(programs_at(2 * S), 1);
	ck_assert_uint_eq(period_told(fd), 60);
	told_round(&t, 2 * S);
	say(fd, &t);
	ck_assert_uint_eq(programs_at(3 * S), 1);
	ck_assert_int_eq(heard(fd), -1); /* once */
	close(fd);
}

TEST(a_user_reaches_no_program_of_another)
{
	struct told t;
	const struct feed_reach other = {.uid = getuid() + 1}, own = {.uid = getuid()},
				all = {.all = true};
	int fd = dial();
	ck_assert_int_eq(feed_want_period(feed, &other, &other, 20), 0); /* before it comes */
	told_hello(&t, 1, 0);
	say(fd, &t);
	ck_assert_uint_eq(programs_at(S), 1);
	ck_assert_int_eq(heard(fd), -1);
	ck_assert_uint_eq(feed_ask(feed, &other, 0), 0);
	ck_assert_uint_eq(feed_ask(feed, &other, getpid()), 0);
	ck_assert_int_eq(feed_want_period(feed, &feed, &other, 10), 0); /* while it is there */
	ck_assert_int_eq(heard(fd), -1);

	ck_assert_int_eq(feed_want_period(feed, &own, &own, 60), 0);
	ck_assert_uint_eq(period_told(fd), 60);
	ck_assert_int_eq(feed_want_period(feed, &all, &all, 30), 0);
	ck_assert_uint_eq(period_told(fd), 30);
	ck_assert_int_eq(feed_want_period(feed, &all, NULL, 0), 0);
	ck_assert_uint_eq(period_told(fd), 60);
	ck_assert_int_eq(feed_want_period(feed, &own, NULL, 0), 0);
	ck_assert_uint_eq(period_told(fd), 1000);
	ck_assert_uint_eq(feed_ask(feed, &all, 0), 1);
	ck_assert_uint_eq(period_told(fd), 1000);
	close(fd);
}
