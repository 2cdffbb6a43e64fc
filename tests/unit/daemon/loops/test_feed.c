/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The feed's socket: whose a program's counts are, and who is hung up on. The test is the program.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/loops/feed.h"
#include "daemon/session/listener.h"
#include "tests/unit/daemon/loops/told.h"
#include "tests/unit/test.h"

#define S 1000000000ull

struct rig {
	char folder[32], path[64];
	struct listener listener;
	struct task_table tasks;
	struct loop_sites sites;
	struct task *self;
	struct feed *feed;
	struct grants grants;
	struct task *of, *first_of; /* whose the last counts were, and the first */
	unsigned n_taken, n_looks;
	uint64_t granted[MPERF_GRANTS_MAX], granted_ns; /* of the last counts */
};

static int take(void *userdata, struct task *task, const struct loop_counts *c)
{
	struct rig *g = userdata;
	ck_assert_ptr_nonnull(c->site);
	g->first_of = g->n_taken ? g->first_of : task;
	g->of = task;
	g->n_taken++;
	for (unsigned i = 0; i < MPERF_GRANTS_MAX; i++)
		g->granted[i] = c->value[LOOP_VALUE(LOOP_GRANTED + i, false)];
	g->granted_ns = c->value[LOOP_VALUE(LOOP_GRANTED_NS, false)];
	return 0;
}

static int catch_up(void *userdata)
{
	struct rig *g = userdata;
	g->n_looks++;
	return 0;
}

static void rig_make(struct rig *g, uint32_t programs_max, uint32_t per_user_max)
{
	struct listener_error error;
	*g = (struct rig){.folder = "/tmp/mperf-feed-XXXXXX"};
	ck_assert_ptr_nonnull(mkdtemp(g->folder));
	snprintf(g->path, sizeof(g->path), "%s/feed", g->folder);
	ck_assert_int_eq(listener_bind(&g->listener, LISTENER_FEED, g->path, &error), 0);
	ck_assert_int_eq(task_add(&g->tasks, getpid(), getpid(), 1, &g->self), 0);
	const struct feed_options o = {
		.listen_fd = g->listener.fd,
		.limits = {.programs_max = programs_max,
			.programs_per_user_max = per_user_max,
			.program_bytes_max = 1 << 20,
			.bytes_max = 1 << 22,
			.period_ms = 1000},
		.tasks = &g->tasks,
		.sites = &g->sites,
		.grants = &g->grants,
		.take = take,
		.catch_up = catch_up,
		.userdata = g,
	};
	ck_assert_int_eq(feed_new(&o, &g->feed), 0);
}

static void rig_clear(struct rig *g)
{
	feed_free(g->feed);
	ck_assert_uint_eq(g->sites.n_sites, 0);
	loop_sites_clear(&g->sites);
	task_table_clear(&g->tasks);
	listener_clear(&g->listener);
	ck_assert_int_eq(rmdir(g->folder), 0);
}

static int dial(struct rig *g)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, g->path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void say(int fd, const struct told *t)
{
	ck_assert_int_eq(send(fd, t->bytes, t->n, MSG_NOSIGNAL), (ssize_t)t->n);
}

static void announce(int fd, uint32_t tid)
{
	struct told t, table;
	told_hello(&t, 1, 0);
	say(fd, &t);
	told_object(&t, 0, TOLD_COUNTERS, 1);
	say(fd, &t);
	told_table(&table);
	told_table_message(&t, 0, 0, 0, TOLD_COUNTERS, &table);
	say(fd, &t);
	told_thread(&t, 3, tid);
	say(fd, &t);
}

static void count(int fd, uint64_t until_ns)
{
	struct told t;
	told_deltas(&t, 3, 0, 1, 10, until_ns);
	say(fd, &t);
	told_round(&t, until_ns);
	say(fd, &t);
}

static void go_on(struct rig *g, uint64_t now_ns)
{
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(feed_dispatch(g->feed, now_ns), 0);
}

static uint64_t cause(struct rig *g, enum feed_cause cause)
{
	struct feed_status status;
	feed_status(g->feed, &status);
	return status.causes[cause];
}

/* Nothing, a message, or the end. */
static ssize_t heard(int fd)
{
	uint8_t bytes[256];
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	return n < 0 && errno != EAGAIN ? 0 : n;
}

TEST(counts_are_of_the_thread_that_says_so)
{
	struct rig g;
	rig_make(&g, 4, 4);
	struct task *thread;
	ck_assert_int_eq(task_add(&g.tasks, getpid(), 1 << 29, 2, &thread), 0);
	int fd = dial(&g);
	announce(fd, 1 << 29);
	count(fd, 100);
	go_on(&g, S);
	ck_assert_uint_gt(g.n_taken, 0);
	ck_assert_ptr_eq(g.of, thread);
	ck_assert_uint_eq(feed_rounds(g.feed), 1);
	close(fd);
	rig_clear(&g);
}

TEST(a_thread_of_another_process_is_not_believed)
{
	struct rig g;
	struct task *other;
	rig_make(&g, 4, 4);
	ck_assert_int_eq(task_add(&g.tasks, 1 << 29, 1 << 29, 2, &other), 0);
	int fd = dial(&g);
	announce(fd, 1 << 29);
	count(fd, 100);
	go_on(&g, S);
	go_on(&g, S + FEED_LOOK_NS);
	ck_assert_ptr_eq(g.of, g.self);
	ck_assert_uint_eq(cause(&g, FEED_STRANGER), 1);
	ck_assert_uint_eq(g.n_looks, 2); /* for the process, for the thread */
	close(fd);
	rig_clear(&g);
}

/* A process whose name changed goes on as another task. */
TEST(what_is_of_the_process_counts_for_it_as_it_is_now)
{
	struct rig g;
	struct task *now;
	struct told t;
	rig_make(&g, 4, 4);
	int fd = dial(&g);
	announce(fd, (uint32_t)getpid());
	go_on(&g, S); /* whose the connection is, is settled now */
	ck_assert_int_eq(task_add(&g.tasks, getpid(), getpid(), g.self->start_ns, &now), 0);
	told_thread(&t, 4, 1 << 29); /* which it has not */
	say(fd, &t);
	told_delta(&t, 4, 0, 1, 100);
	say(fd, &t);
	told_round(&t, 100);
	say(fd, &t);
	go_on(&g, S + FEED_LOOK_NS);
	go_on(&g, S + 2 * FEED_LOOK_NS);
	ck_assert_ptr_eq(g.first_of, now);
	close(fd);
	rig_clear(&g);
}

TEST(a_thread_that_died_is_found_among_the_dead)
{
	struct rig g;
	struct task *thread;
	rig_make(&g, 4, 4);
	ck_assert_int_eq(task_add(&g.tasks, getpid(), 1 << 29, 2, &thread), 0);
	task_end(&g.tasks, thread, 50);
	int fd = dial(&g);
	announce(fd, 1 << 29);
	count(fd, 100);
	go_on(&g, S);
	go_on(&g, S + FEED_LOOK_NS);
	ck_assert_ptr_eq(g.of, thread);
	close(fd);
	rig_clear(&g);
}

TEST(a_pid_that_is_anothers_by_now_is_not_believed)
{
	struct rig g;
	struct task *other, *thread;
	rig_make(&g, 4, 4);
	int fd = dial(&g);
	announce(fd, 1 << 29);
	go_on(&g, S); /* whose the connection is, is settled now */
	ck_assert_int_eq(task_add(&g.tasks, getpid(), getpid(), 60, &other), 0);
	ck_assert_int_eq(task_add(&g.tasks, getpid(), 1 << 29, 70, &thread), 0);
	ck_assert_ptr_eq(thread->process, other);
	count(fd, 100);
	go_on(&g, 2 * S);
	ck_assert_ptr_eq(g.of, g.self);
	close(fd);
	rig_clear(&g);
}

TEST(looking_for_threads_is_not_done_all_the_time)
{
	struct rig g;
	struct told t;
	rig_make(&g, 4, 4);
	int fd = dial(&g);
	announce(fd, 1 << 29);
	for (uint32_t i = 10; i < 20; i++) {
		told_thread(&t, i, (1u << 29) + i);
		say(fd, &t);
		told_deltas(&t, i, 0, 1, 10, 100);
		say(fd, &t);
	}
	told_round(&t, 100);
	say(fd, &t);
	go_on(&g, S);
	ck_assert_uint_eq(g.n_looks, 1);
	go_on(&g, S + FEED_LOOK_NS);
	ck_assert_uint_eq(g.n_looks, 2);
	ck_assert_ptr_eq(g.of, g.self);
	close(fd);
	rig_clear(&g);
}

TEST(one_too_many_is_hung_up_on)
{
	struct rig g;
	rig_make(&g, 4, 1);
	int first = dial(&g), second = dial(&g);
	go_on(&g, S);
	ck_assert_int_eq(heard(first), -1);
	ck_assert_int_eq(heard(second), 0);
	ck_assert_uint_eq(cause(&g, FEED_PROGRAMS_OF_USER), 1);
	close(first);
	go_on(&g, S);
	close(second);
	second = dial(&g);
	go_on(&g, S);
	ck_assert_int_eq(heard(second), -1);
	close(second);
	rig_clear(&g);
}

TEST(one_too_many_of_all_is_hung_up_on)
{
	struct rig g;
	rig_make(&g, 1, 4);
	int first = dial(&g), second = dial(&g);
	go_on(&g, S);
	ck_assert_int_eq(heard(first), -1);
	ck_assert_int_eq(heard(second), 0);
	ck_assert_uint_eq(cause(&g, FEED_PROGRAMS), 1);
	close(first);
	close(second);
	rig_clear(&g);
}

TEST(programs_are_asked_for_rounds_and_told_the_period)
{
	struct rig g;
	struct told t;
	rig_make(&g, 4, 4);
	int fd = dial(&g);
	const struct feed_reach own = {.uid = getuid()}, all = {.all = true};
	ck_assert_uint_eq(feed_ask(g.feed, &own, 0), 0);
	told_hello(&t, 1, 0);
	say(fd, &t);
	go_on(&g, S);
	ck_assert_int_eq(heard(fd), -1); /* it has the right period */
	ck_assert_uint_eq(feed_ask(g.feed, &own, getpid()), 1);
	ck_assert_uint_eq(feed_ask(g.feed, &all, getpid() + 1), 0);
	ck_assert_int_eq(heard(fd), (ssize_t)sizeof(struct mperf_feed_ask));
	ck_assert_int_eq(feed_want_period(g.feed, &g, &own, 50), 0);
	ck_assert_int_eq(heard(fd), (ssize_t)sizeof(struct mperf_feed_ask));
	ck_assert_int_eq(feed_want_period(g.feed, &t, &all, 500), 0);
	ck_assert_int_eq(heard(fd), -1); /* the shortest is in force */
	close(fd);
	rig_clear(&g);
}

TEST(the_last_counts_of_a_program_that_reads_nothing_are_taken)
{
	struct rig g;
	rig_make(&g, 4, 4);
	int fd = dial(&g);
	announce(fd, (uint32_t)getpid());
	go_on(&g, S);
	const struct feed_reach own = {.uid = getuid()};
	ck_assert_uint_eq(feed_ask(g.feed, &own, getpid()), 1);
	count(fd, 100);
	close(fd); /* with the question unread */
	go_on(&g, S);
	ck_assert_uint_gt(g.n_taken, 0);
	ck_assert_uint_eq(feed_rounds(g.feed), 1);
	rig_clear(&g);
}

TEST(one_program_leaves_time_for_others_of_its_user)
{
	struct rig g;
	struct told t;
	rig_make(&g, 4, 4);
	int flooder = dial(&g), other = dial(&g);
	announce(flooder, (uint32_t)getpid());
	go_on(&g, S);
	told_deltas(&t, 3, 0, 1, 10, 100);
	/* until nobody reads it any more: what it may take of a fixed moment is used up */
	while (send(flooder, t.bytes, t.n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)t.n)
		ck_assert_int_eq(feed_dispatch(g.feed, S), 0);
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(feed_dispatch(g.feed, S), 0);
	ck_assert_int_lt(send(flooder, t.bytes, t.n, MSG_DONTWAIT | MSG_NOSIGNAL), 0);
	unsigned n_taken = g.n_taken;
	announce(other, (uint32_t)getpid());
	count(other, 100);
	go_on(&g, S);
	ck_assert_uint_gt(g.n_taken, n_taken);
	/* and in time, or at the end, it is read again */
	ck_assert_int_eq(feed_resume(g.feed), 0);
	go_on(&g, S);
	ck_assert_int_eq(send(flooder, t.bytes, t.n, MSG_DONTWAIT | MSG_NOSIGNAL), (ssize_t)t.n);
	go_on(&g, 60 * S);
	ck_assert_int_eq(send(flooder, t.bytes, t.n, MSG_DONTWAIT | MSG_NOSIGNAL), (ssize_t)t.n);
	close(flooder);
	close(other);
	rig_clear(&g);
}

/* --- counters for regions --------------------------------------------------------------------- */

static unsigned n_opens;

static int open_pipe(
	void *u, struct perf_event_attr *attr, pid_t pid, int hart, int group, unsigned long flags)
{
	int fd[2];
	(void)u, (void)attr, (void)hart, (void)group, (void)flags;
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(pipe(fd), 0);
	close(fd[1]);
	n_opens++;
	return fd[0];
}

static void close_pipe(void *u, int fd)
{
	(void)u;
	ck_assert_int_eq(close(fd), 0);
}

static void rig_grant(struct rig *g, const char *events)
{
	static const struct kernel kernel = {.event_open = open_pipe, .event_close = close_pipe};
	static const struct machine machine = {.n_harts = 1};
	struct event_error error;
	n_opens = 0;
	ck_assert_int_eq(grants_make(&kernel, &machine, NULL, events, &g->grants, &error), 0);
}

/* Announce a thread and say that it was in a region. */
static void spend(int fd, uint32_t thread, uint32_t tid)
{
	static const uint64_t granted[4] = {11, 22, 33, 44};
	struct told t;
	told_thread(&t, thread, tid);
	say(fd, &t);
	told_spent(&t, thread, 1, granted);
	say(fd, &t);
	say(fd, &t);
}

static int dial_region(struct rig *g)
{
	struct told t;
	int fd = dial(g);
	told_hello(&t, 1, 0);
	say(fd, &t);
	told_region(&t, 1, 0, "solve");
	say(fd, &t);
	return fd;
}

/* The next message if it is a GRANT: how many descriptors came, which are closed; -1 nothing. */
static int heard_grant(int fd, uint32_t *ret_thread)
{
	struct mperf_feed_grant m;
	char control[CMSG_SPACE(sizeof(int) * 8)];
	struct iovec piece = {.iov_base = &m, .iov_len = sizeof(m)};
	struct msghdr h = {.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	if (recvmsg(fd, &h, MSG_DONTWAIT) != sizeof(m))
		return -1;
	const struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	ck_assert_int_eq(m.head.type, MPERF_GRANT);
	ck_assert(c && c->cmsg_type == SCM_RIGHTS);
	int n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)), got[8];
	memcpy(got, CMSG_DATA(c), (size_t)n * sizeof(int));
	for (int i = 0; i < n; i++)
		close(got[i]);
	ck_assert_uint_eq(m.n, (unsigned)n);
	*ret_thread = m.thread;
	return n;
}

TEST(a_thread_that_was_in_a_region_is_given_counters_once)
{
	struct rig g;
	uint32_t thread = 0;
	rig_make(&g, 4, 4);
	rig_grant(&g, "page-faults,task-clock");
	int fd = dial_region(&g);
	spend(fd, 3, (uint32_t)getpid());
	go_on(&g, S);
	ck_assert_int_eq(heard_grant(fd, &thread), 2);
	ck_assert_uint_eq(thread, 3);
	ck_assert_int_eq(heard_grant(fd, &thread), -1);
	ck_assert_uint_eq(n_opens, 2);
	/* its words are those of the events, whatever it says beyond them */
	ck_assert_uint_eq(g.granted[0], 11);
	ck_assert_uint_eq(g.granted[1], 22);
	ck_assert_uint_eq(g.granted[2], 0);
	ck_assert_uint_eq(g.granted_ns, 1);
	close(fd);
	rig_clear(&g);
}

TEST(nothing_is_opened_for_threads_of_others)
{
	struct rig g;
	struct task *other;
	uint32_t thread;
	rig_make(&g, 4, 4);
	rig_grant(&g, "page-faults");
	/* one that the table has for our own but the kernel does not, and one of another process */
	ck_assert_int_eq(task_add(&g.tasks, getpid(), 1 << 29, 2, &other), 0);
	ck_assert_int_eq(task_add(&g.tasks, 1, 1, 2, &other), 0);
	int fd = dial_region(&g);
	spend(fd, 3, 1);
	spend(fd, 4, 1 << 29);
	spend(fd, 5, 0);
	go_on(&g, S);
	ck_assert_int_eq(heard_grant(fd, &thread), -1);
	ck_assert_uint_eq(n_opens, 0);
	ck_assert_uint_eq(g.granted[0], 0);
	ck_assert_uint_eq(g.granted_ns, 0);
	close(fd);
	rig_clear(&g);
}

static int hold[2];

/* A thread that is there until it may go, and tells its number. */
static void *be_there(void *ret_tid)
{
	char byte;
	__atomic_store_n((pid_t *)ret_tid, gettid(), __ATOMIC_RELEASE);
	return read(hold[0], &byte, 1) < 0 ? ret_tid : NULL;
}

TEST(a_thread_that_is_not_known_yet_is_given_counters_later)
{
	struct rig g;
	uint32_t thread = 0;
	pid_t tid = 0;
	pthread_t other;
	struct task *task;
	ck_assert_int_eq(pipe(hold), 0);
	ck_assert_int_eq(pthread_create(&other, NULL, be_there, &tid), 0);
	while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		sched_yield();
	rig_make(&g, 4, 4);
	rig_grant(&g, "page-faults");
	int fd = dial_region(&g);
	spend(fd, 3, 1 << 29); /* looked for in vain, and then nobody is for a while */
	spend(fd, 4, (uint32_t)tid);
	go_on(&g, S);
	ck_assert_int_eq(heard_grant(fd, &thread), -1);
	ck_assert_int_eq(task_add(&g.tasks, getpid(), tid, 2, &task), 0);
	static const uint64_t granted[4] = {0};
	struct told t;
	told_spent(&t, 4, 1, granted);
	say(fd, &t);
	go_on(&g, 2 * S);
	ck_assert_int_eq(heard_grant(fd, &thread), 1);
	ck_assert_uint_eq(thread, 4);
	ck_assert_int_eq(close(hold[1]), 0);
	ck_assert_int_eq(pthread_join(other, NULL), 0);
	close(hold[0]);
	close(fd);
	rig_clear(&g);
}

TEST(threads_without_number_are_not_all_given_counters)
{
	struct rig g;
	uint32_t thread;
	unsigned n = 0;
	rig_make(&g, 4, 4);
	rig_grant(&g, "page-faults");
	int fd = dial_region(&g);
	for (uint32_t i = 0; i < 1100; i++) {
		struct told t;
		spend(fd, i, (uint32_t)getpid());
		told_gone(&t, MPERF_GONE_THREAD, i);
		say(fd, &t);
		go_on(&g, i * 100 * S); /* his share of the time is not what is tested */
		while (heard_grant(fd, &thread) == 1)
			n++;
	}
	ck_assert_uint_eq(n, 1024);
	ck_assert_uint_eq(cause(&g, FEED_GRANTS), 1100 - 1024);
	close(fd);
	rig_clear(&g);
}

TEST(without_events_nothing_is_given)
{
	struct rig g;
	uint32_t thread;
	rig_make(&g, 4, 4);
	rig_grant(&g, "none");
	int fd = dial_region(&g);
	spend(fd, 3, (uint32_t)getpid());
	go_on(&g, S);
	ck_assert_int_eq(heard_grant(fd, &thread), -1);
	close(fd);
	rig_clear(&g);
}

TEST(what_counts_is_chosen_by_the_owner_alone)
{
	struct rig g;
	struct told t;
	rig_make(&g, 4, 4);
	const struct feed_selection all = {.one_in = 1};
	const struct feed_selection some = {.one_in = 50, .globs = "bfs\0sp*", .globs_bytes = 8};
	int fd = dial(&g);
	ck_assert_int_eq(feed_select(g.feed, getpid(), getuid(), &all), FEED_NO_PROGRAM);
	told_hello(&t, 1, 0);
	say(fd, &t);
	go_on(&g, S);
	ck_assert_int_eq(heard(fd), -1);
	ck_assert_int_eq(feed_select(g.feed, getpid() + 1, getuid(), &all), FEED_NO_PROGRAM);
	ck_assert_int_eq(feed_select(g.feed, getpid(), getuid() + 1, &all), FEED_NOT_YOURS);
	ck_assert_int_eq(heard(fd), -1);
	ck_assert_int_eq(feed_select(g.feed, getpid(), getuid(), &all), 0);
	ck_assert_int_eq(heard(fd), (ssize_t)sizeof(struct mperf_feed_select));
	ck_assert_int_eq(feed_select(g.feed, getpid(), 0, &some), 0);
	ck_assert_int_eq(heard(fd), (ssize_t)sizeof(struct mperf_feed_select) + 8);
	close(fd);
	rig_clear(&g);
}
