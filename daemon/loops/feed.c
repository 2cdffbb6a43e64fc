/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The loop polls one descriptor (epoll) for the socket and all programs. A program is read as long
 * as there is data and its share of the round lasts. If a user has used up their share of the
 * loop's time, we stop polling their sockets for a while; their data waits in the socket buffer,
 * whose size the kernel limits. We disconnect a program that sends a descriptor.
 */
#include "daemon/loops/feed.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/aside/aside.h"
#include "daemon/aside/descriptors.h"
#include "daemon/loops/feed_private.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

#define ACCEPTS_TURN 16u
/* Accepting gets a tenth of the loop's time in total, with a burst of 200 ms: some thousand
 * connections at once. Beyond that, connections wait in the socket's queue, and we look again 10 ms
 * later. */
#define ACCEPTS_SHARE 10u
#define ACCEPTS_AHEAD_NS 200000000u
#define ACCEPTS_BACK_OFF_NS 10000000u
#define LISTEN_RETRY_NS 1000000000u /* without descriptors or memory: the next try */
/* Threads that close sockets with received descriptors, since such a close may block for ever; one
 * per user. */
#define CLOSERS_MAX 8u

/* --- users ------------------------------------------------------------------------------------ */

/* Does a user's share shrink with those of others? */
static bool leaves_half(const struct feed *f, uid_t uid)
{
	return uid != 0 && !f->o.limits.one_user;
}

static int user_get(struct feed *f, uid_t uid, struct feed_user **ret_user)
{
	struct feed_user *user;
	HASH_FIND(hh, f->users, &uid, sizeof(uid), user);
	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user)
			return -ENOMEM;
		user->uid = uid;
		user->period_ms = feed_period_ms(f, uid);
		user->budget = (struct budget){.max = f->o.limits.bytes_max / 2,
			.leaves_half = leaves_half(f, uid),
			.above = &f->budget};
		HASH_ADD(hh, f->users, uid, sizeof(user->uid), user);
		if (!user->hh.tbl) {
			free(user);
			return -ENOMEM;
		}
	}
	*ret_user = user;
	return 0;
}

/* Keep the user while the share is used up, so that disconnecting does not refill it. */
static void user_tidy(struct feed *f, struct feed_user *user)
{
	if (user->n_programs > 0 || user->spent_until_ns > f->now_ns)
		return;
	HASH_DEL(f->users, user);
	free(user);
}

static void users_tidy(struct feed *f)
{
	struct feed_user *user, *next;
	f->n_spenders = 0;
	HASH_ITER (hh, f->users, user, next) {
		f->n_spenders += user->spent_until_ns > f->now_ns;
		user_tidy(f, user);
	}
}

/* --- programs --------------------------------------------------------------------------------- */

static int watch(struct feed *f, int operation, int fd, void *what, bool on)
{
	struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.ptr = what};
	return epoll_ctl(f->epoll_fd, operation, fd, &event) < 0 ? -errno : 0;
}

static int take_counts(void *userdata, const struct loop_counts *counts)
{
	struct connection *c = userdata;
	struct feed *f = c->feed;
	struct task *task = feed_task_of(c, counts->thread);
	if (counts->site == counts->region)
		feed_grant(c, counts->thread, task);
	int r = feed_find_frame(f, task, counts);
	return r != 0 ? r : f->o.take(f->o.userdata, task, counts);
}

static void want(void *userdata, uint32_t object, bool wanted)
{
	feed_send_want(userdata, object, wanted);
}

static void hang_up(struct connection *c)
{
	struct feed *f = c->feed;
	struct connection **at = &f->connections;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	f->n_connections--;
	(void)watch(f, EPOLL_CTL_DEL, c->fd, c, false); /* it may stay open for a while */
	descriptors_close(f->closers, c->fd, c->descriptors_may_come, c->user->uid);
	program_free(c->program);
	feed_process_clear(c);
	c->user->n_programs--;
	c->user->n_grants -= c->n_grants;
	user_tidy(f, c->user);
	free(c);
}

static int refuse(struct feed *f, int fd, bool may_come, uid_t uid, enum feed_cause cause)
{
	f->causes[cause]++;
	f->n_hung_up++;
	descriptors_close(f->closers, fd, may_come, uid);
	return 0;
}

/* May the user have one more program? Not more than the configuration allows, and not more than then remain
 * free for others. */
static bool may_connect(const struct feed *f, const struct feed_user *user)
{
	const size_t n = user->n_programs + aside_count(f->closers, user->uid);
	return n < f->o.limits.programs_per_user_max &&
	       (!leaves_half(f, user->uid) || n < f->o.limits.programs_max - f->n_connections);
}

/* Takes over fd. 0, also where it is refused; -ENOMEM. */
static int connection_new(struct feed *f, int fd, const struct ucred *peer)
{
	struct feed_user *user;
	bool may_come = descriptors_may_come(fd);
	if (f->n_connections >= f->o.limits.programs_max)
		return refuse(f, fd, may_come, peer->uid, FEED_PROGRAMS);
	int r = user_get(f, peer->uid, &user);
	if (r == 0 && !may_connect(f, user))
		return refuse(f, fd, may_come, peer->uid, FEED_PROGRAMS_OF_USER);
	struct connection *c = r == 0 ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		descriptors_close(f->closers, fd, may_come, peer->uid);
		return -ENOMEM;
	}
	*c = (struct connection){
		.feed = f,
		.fd = fd,
		.descriptors_may_come = may_come,
		.pid = peer->pid,
		.gid = peer->gid,
		.user = user,
		.came_ns = f->now_ns,
		.next = f->connections,
	};
	feed_process_begin(c);
	user->n_programs++;
	f->connections = c;
	f->n_connections++;
	f->n_accepted++;
	const struct program_options o = {
		.sites = f->o.sites,
		.cache = &f->cache,
		.uid = user->uid,
		.causes = f->causes,
		.lost_tables = f->o.lost_tables,
		.budget = &user->budget,
		.memory_max = f->o.limits.program_bytes_max,
		.granted = f->o.grants ? &f->o.grants->names : NULL,
		.take = take_counts,
		.want = want,
		.userdata = c,
	};
	r = program_new(&o, &c->program);
	if (r == 0)
		r = watch(f, EPOLL_CTL_ADD, fd, c, true);
	if (r < 0)
		hang_up(c);
	return r == -ENOMEM ? r : 0;
}

/* Accept no connections until then; they wait in the queue. */
static int back_off_until(struct feed *f, uint64_t ns)
{
	f->listen_at_ns = ns;
	return watch(f, EPOLL_CTL_MOD, f->o.listen_fd, NULL, false);
}

/* Advance until_ns, the time until which a share is used up, by ns. */
static void spend(uint64_t *until_ns, uint64_t now_ns, uint64_t ns)
{
	*until_ns = (*until_ns < now_ns ? now_ns : *until_ns) + ns;
}

static int accept_each(struct feed *f)
{
	for (unsigned i = 0; i < ACCEPTS_TURN; i++) {
		int fd = accept4(f->o.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 &&
			(errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
			return back_off_until(f, f->now_ns + LISTEN_RETRY_NS);
		if (fd < 0)
			return 0; /* none waits, or it is gone again */
		struct ucred peer;
		socklen_t n = sizeof(peer);
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0) {
			close(fd);
			continue;
		}
		int r = connection_new(f, fd, &peer);
		if (r < 0)
			return r;
	}
	return 0;
}

static int accept_some(struct feed *f)
{
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int r = accept_each(f);
	spend(&f->accepts_until_ns, f->now_ns,
		(clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns) * ACCEPTS_SHARE);
	if (r == 0 && f->accepts_until_ns > f->now_ns + ACCEPTS_AHEAD_NS && !f->listen_at_ns)
		r = back_off_until(f, f->accepts_until_ns - ACCEPTS_AHEAD_NS + ACCEPTS_BACK_OFF_NS);
	return r;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Remove it: with an empty event mask, epoll would report the hang-up again and again. */
static int pause_until(struct connection *c, uint64_t resume_ns)
{
	c->waits = false;
	if (!c->paused || c->resume_ns < resume_ns)
		c->resume_ns = resume_ns;
	if (c->paused)
		return 0;
	c->paused = true;
	return watch(c->feed, EPOLL_CTL_DEL, c->fd, c, false);
}

static int resume(struct connection *c)
{
	c->paused = c->waits = false;
	if (!c->program->greeted)
		c->came_ns = c->feed->now_ns; /* its hello waited for us */
	return watch(c->feed, EPOLL_CTL_ADD, c->fd, c, true);
}

/* Pause until everything is known that has happened by now. */
static int pause_for_look(struct connection *c)
{
	int r = pause_until(c, feed_next_look_ns(c->feed));
	c->waits = true;
	return r;
}

/* Read a thread's counts once its process and its task are known. Earlier messages are answered at
 * once, since a short program would otherwise be gone. */
static int wait_for_thread(struct connection *c)
{
	struct mperf_feed_thread m;
	memcpy(&m, c->feed->packet, sizeof(m));
	if (m.head.type != MPERF_THREAD)
		return 0;
	c->has_threads = true;
	if (feed_seek_process(c) && feed_seek_thread(c, (pid_t)m.tid))
		return 0;
	return pause_for_look(c);
}

/* Read one packet. 0; 1: nothing more for now; FEED_* if the program must be disconnected (negative
 * values are errnos); CLOSED. */
enum { READ_NOTHING = N_FEED_CAUSES, READ_CLOSED };
static ssize_t receive(const struct connection *c)
{
	return descriptors_receive(
		c->fd, c->descriptors_may_come, c->feed->packet, sizeof(c->feed->packet));
}

static int read_packet(struct connection *c)
{
	struct feed *f = c->feed;
	ssize_t n = receive(c);
	/* A program that ended without reading our requests resets the connection. The kernel reports that
	 * once, and before what the program had sent. Source: net/unix/af_unix.c of Linux 6.12,
	 * unix_release_sock; net/core/datagram.c, __skb_try_recv_datagram. */
	if (n == -ECONNRESET)
		n = receive(c);
	if (n == -EMSGSIZE || n == -EBADMSG) {
		enum feed_cause cause = n == -EBADMSG ? FEED_DESCRIPTORS : FEED_LENGTH;
		f->causes[cause]++;
		return cause;
	}
	if (n < 0)
		return n == -EAGAIN || n == -EINTR ? READ_NOTHING : READ_CLOSED;
	if (n == 0)
		return READ_CLOSED;
	uint64_t n_rounds = c->program->n_rounds;
	int r = program_take(c->program, f->packet, (size_t)n);
	if (r == 0)
		feed_send_period(c);
	f->n_rounds += c->program->n_rounds - n_rounds;
	return r ? r : wait_for_thread(c);
}

/* A user over the share of time waits, with all programs; a program over its own share waits
 * alone. */
static int wait_for_share(struct connection *c)
{
	const uint64_t user_ns = c->user->spent_until_ns, own_ns = c->spent_until_ns;
	const uint64_t until_ns = user_ns > own_ns ? user_ns : own_ns;
	if (until_ns <= c->feed->now_ns + FEED_AHEAD_NS)
		return 0;
	return pause_until(c, until_ns - FEED_AHEAD_NS / 2);
}

static void charge_time(struct connection *c, uint64_t spent_ns)
{
	const struct feed *f = c->feed;
	uint64_t n = f->n_spenders > FEED_LOOP_SHARES ? f->n_spenders : FEED_LOOP_SHARES;
	uint64_t user_ns = spent_ns * FEED_LOOP_SHARE * n / FEED_LOOP_SHARES;
	spend(&c->user->spent_until_ns, f->now_ns, user_ns);
	spend(&c->spent_until_ns, f->now_ns, spent_ns * FEED_CONNECTION_SHARE);
}

static int read_turn(struct connection *c)
{
	uint64_t began_ns = feed_charged_ns(c->feed);
	uint64_t spent_ns = 0;
	int r = c->program->greeted ? 0
				    : wait_for_share(c); /* a new one has its user's share, too */
	if (r != 0 || c->paused)
		return r;
	if (c->has_threads && !feed_seek_process(c))
		return pause_for_look(c);
	for (unsigned i = 0; i < FEED_PACKETS_TURN && r == 0 && !c->paused; i++) {
		r = program_is_at_work(c->program) ? program_work(c->program) : read_packet(c);
		spent_ns = feed_charged_ns(c->feed) - began_ns;
		if (spent_ns >= FEED_TURN_NS)
			break;
	}
	charge_time(c, spent_ns);
	if (r == 0 || r == READ_NOTHING)
		return wait_for_share(c);
	if (r < 0)
		return r;
	c->feed->n_hung_up += r != READ_CLOSED;
	hang_up(c);
	return 0;
}

/* --- time ------------------------------------------------------------------------------------- */

uint64_t feed_deadline_ns(const struct feed *f)
{
	uint64_t deadline = f->listen_at_ns ? f->listen_at_ns : UINT64_MAX;
	for (const struct connection *c = f->connections; c; c = c->next) {
		uint64_t own = c->paused                        ? c->resume_ns
			       : program_is_at_work(c->program) ? 0
			       : !c->program->greeted           ? c->came_ns + FEED_HELLO_NS
								: UINT64_MAX;
		deadline = own < deadline ? own : deadline;
	}
	return deadline;
}

static int look_at_clock(struct feed *f)
{
	int r = 0;
	if (f->listen_at_ns && f->now_ns >= f->listen_at_ns) {
		f->listen_at_ns = 0;
		r = watch(f, EPOLL_CTL_MOD, f->o.listen_fd, NULL, true);
	}
	for (struct connection *c = f->connections, *next; c && r == 0; c = next) {
		next = c->next;
		if (c->paused && f->now_ns >= c->resume_ns) {
			r = resume(c);
		} else if (!c->paused && !c->program->greeted &&
			   f->now_ns >= c->came_ns + FEED_HELLO_NS) {
			f->causes[FEED_SILENT]++;
			f->n_hung_up++;
			hang_up(c);
		}
	}
	return r;
}

static bool has_time(uint64_t began_ns)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns < FEED_ROUND_NS;
}

/* Continue programs with a long last message, even if they have sent nothing more. */
static int go_on(struct feed *f, uint64_t began_ns)
{
	int r = 0;
	for (struct connection *c = f->connections, *next; c && r == 0; c = next) {
		next = c->next;
		if (!c->paused && program_is_at_work(c->program) && has_time(began_ns))
			r = read_turn(c);
	}
	return r;
}

int feed_dispatch(struct feed *f, uint64_t now_ns)
{
	struct epoll_event event[FEED_EVENTS_TURN];
	uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), time_before_ns = feed_charged_ns(f);
	f->now_ns = now_ns;
	int n = epoll_wait(f->epoll_fd, event, FEED_EVENTS_TURN, 0);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	int r = 0;
	/* programs that are not read now stay ready for the next dispatch, in which they precede those that
	 * were read */
	for (int i = 0; i < n && r == 0 && has_time(began_ns); i++)
		r = event[i].data.ptr ? read_turn(event[i].data.ptr) : accept_some(f);
	if (r == 0)
		r = go_on(f, began_ns);
	if (r == 0)
		r = look_at_clock(f);
	users_tidy(f);
	/* the time of looks is not charged: it is sampling work, done early */
	f->spent_ns += feed_charged_ns(f) - time_before_ns;
	return r;
}

uint64_t feed_spent_ns(const struct feed *f)
{
	return f->spent_ns;
}

int feed_resume(struct feed *f)
{
	int r = 0;
	for (struct connection *c = f->connections; c && r == 0; c = c->next) {
		c->user->spent_until_ns = c->spent_until_ns = 0;
		if (c->paused)
			r = resume(c);
	}
	return r;
}

/* Look early, for programs that wait for a look. *ret_any: there is such a program. */
static int look_for_waiting(struct feed *f, bool *ret_any)
{
	bool any = false;
	int r = 0;
	for (struct connection *c = f->connections; c && r == 0; c = c->next) {
		if (!c->waits)
			continue;
		if (!any)
			feed_look(f);
		any = true;
		r = resume(c);
	}
	*ret_any = any;
	return r;
}

/* Is a program in the middle of a long message, and may it go on? */
static bool any_at_work(const struct connection *c)
{
	while (c && (c->paused || !program_is_at_work(c->program)))
		c = c->next;
	return c;
}

int feed_settle(struct feed *f, uint64_t now_ns, uint64_t most_ns)
{
	uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	unsigned n_looks = 0;
	int r = 0;
	for (unsigned i = 0; i < FEED_SETTLE_TURNS && r == 0 &&
			     clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns < most_ns;
		i++) {
		struct pollfd p = {.fd = f->epoll_fd, .events = POLLIN};
		bool more = poll(&p, 1, 0) > 0 || any_at_work(f->connections);
		if (more)
			r = feed_dispatch(f, now_ns);
		else if (n_looks++ < FEED_SETTLE_LOOKS)
			r = look_for_waiting(f, &more);
		if (!more)
			break;
	}
	return r;
}

/* --- for the owner ----------------------------------------------------------------------------- */

int feed_new(const struct feed_options *o, struct feed **ret_feed)
{
	struct feed *f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->o = *o;
	f->budget.max = o->limits.bytes_max;
	f->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int r = f->epoll_fd < 0 ? -errno : watch(f, EPOLL_CTL_ADD, o->listen_fd, NULL, true);
	if (r == 0)
		r = aside_new(CLOSERS_MAX, 1, &f->closers);
	if (r < 0) {
		feed_free(f);
		return r;
	}
	*ret_feed = f;
	return 0;
}

int feed_fd(const struct feed *f)
{
	return f->epoll_fd;
}

void feed_set_limits(struct feed *f, const struct feed_limits *limits)
{
	struct feed_user *user, *next;
	f->o.limits = *limits;
	f->budget.max = limits->bytes_max;
	HASH_ITER (hh, f->users, user, next) {
		user->budget.max = limits->bytes_max / 2;
	}
	feed_send_periods(f);
}

uint64_t feed_rounds(const struct feed *f)
{
	return f->n_rounds;
}

void feed_mark(struct feed *f, struct sweep *s)
{
	for (const struct connection *c = f->connections; c; c = c->next) {
		sweep_keep_task(s, c->process.task);
		for (struct program_thread *t = c->program->threads; t; t = t->hh.next)
			sweep_keep_task(s, t->who);
	}
	for (uint32_t i = 0; i < f->o.sites->n_slots; i++)
		for (const struct loop_site *site = f->o.sites->slot[i]; site; site = site->next)
			sweep_keep_frame(s, site->frame);
}

void feed_status(const struct feed *f, struct feed_status *ret_status)
{
	*ret_status = (struct feed_status){
		.n_programs = f->n_connections,
		.n_accepted = f->n_accepted,
		.n_hung_up = f->n_hung_up,
		.n_rounds = f->n_rounds,
		.bytes = f->budget.used,
		.n_sites = f->o.sites->n_sites,
		.causes = f->causes,
	};
}

struct feed *feed_free(struct feed *f)
{
	if (!f)
		return NULL;
	while (f->connections)
		hang_up(f->connections);
	table_cache_clear(&f->cache, f->o.sites);
	struct feed_user *user, *next;
	HASH_ITER (hh, f->users, user, next) {
		HASH_DEL(f->users, user);
		free(user);
	}
	closep(&f->epoll_fd);
	aside_free(f->closers);
	free(f->wants.want);
	free(f);
	return NULL;
}
