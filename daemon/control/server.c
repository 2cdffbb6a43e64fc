/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * All sockets are in an epoll of our own, which the daemon sees as one descriptor: a thousand idle
 * clients cost nothing. We serve a client in a round if its socket is ready, or if the client is
 * busy: it has a request, an incomplete frame, or is being disconnected. The kernel returns ready
 * sockets in turn, and we do a bounded amount of work for each, so a busy client does not starve
 * others. All connections of a user share the user's allowance of a round (user.h); connections
 * that were served in it are put behind the others.
 */
#include "daemon/control/server.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utlist.h>

#include "daemon/aside/aside.h"
#include "daemon/aside/descriptors.h"
#include "daemon/control/offload_job.h"
#include "daemon/service/service.h"
#include "daemon/session/listener.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* Connections accepted in one round. */
#define SERVER_ACCEPTS_MAX 16
/* Accepting gets a tenth of the loop's time in total, with a burst of 200 ms: some thousand
 * connections at once. Beyond that, connections wait in the socket's queue, and we look again 10 ms
 * later. */
#define SERVER_ACCEPTS_PART 10u
#define SERVER_ACCEPTS_AHEAD_NS 200000000u
#define SERVER_ACCEPTS_REST_NS 10000000u
/* Out of descriptors or memory: time until we try to accept connections again. */
#define SERVER_ACCEPT_PAUSE_NS 1000000000u
/* Threads that close sockets with received descriptors, since such a close may block for ever; one
 * per user. */
#define SERVER_CLOSERS_MAX 8u

_Static_assert(
	POLLIN == EPOLLIN && POLLOUT == EPOLLOUT && POLLERR == EPOLLERR && POLLHUP == EPOLLHUP,
	"poll and epoll bits differ");

/* A connected client's place. */
struct seat {
	struct peer *peer;
	uint32_t events;  /* events with which its socket is in the epoll */
	uint32_t n_turns; /* n_turns of the peer when it was last put behind the others */
	bool busy, gone, given;
	struct seat *prev, *next;           /* of all */
	struct seat *busy_prev, *busy_next; /* of the busy ones */
};

struct server {
	struct control_options options; /* a copy of the daemon's, with our own members filled in */
	struct listener listener;
	int epoll_fd;
	struct seat *seats, *busy;
	struct offload_queue queue;
	struct users users;
	struct server_status status;
	uint64_t now_ns;           /* of the last round */
	uint64_t accept_ns;        /* when to accept again; 0: now */
	uint64_t accepts_until_ns; /* time at which accepting is again within its share */
	uint32_t n_gone;           /* seats to be freed at the end of the round */
};

/* --- time ------------------------------------------------------------------------------------- */

/* Meter of the work for one client. Some work charges the user itself, as it runs. */
struct meter {
	const struct users *users;
	uint64_t began_ns, spent_ns;
};

static struct meter meter_begin(const struct server *s)
{
	return (struct meter){&s->users, clock_ns(CLOCK_THREAD_CPUTIME_ID), s->users.spent_ns};
}

/* Charge the user for work that did not charge itself. */
static void meter_end(const struct meter *m, struct user *u)
{
	uint64_t took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - m->began_ns;
	uint64_t charged_ns = m->users->spent_ns - m->spent_ns;
	user_spend(u, USER_LOOP, took_ns > charged_ns ? took_ns - charged_ns : 0);
}

uint64_t server_spent_ns(const struct server *s)
{
	return s->users.spent_ns;
}

void server_spend(struct server *s, uint64_t ns)
{
	users_spend_rest(&s->users, ns);
}

/* --- seats ------------------------------------------------------------------------------------ */

/* The connection no longer counts as held by its user. */
static void seat_give(struct seat *seat)
{
	if (seat->given)
		return;
	seat->given = true;
	user_give(seat->peer->user, USER_CLIENTS, 1);
	user_give(seat->peer->user, USER_DESCRIPTORS, 1);
}

static void seat_free(struct server *s, struct seat *seat)
{
	if (seat->busy)
		DL_DELETE2(s->busy, seat, busy_prev, busy_next);
	DL_DELETE(s->seats, seat);
	s->status.n_peers--;
	s->status.n_hung_up += seat->peer->misbehaved;
	/* Closing alone has no effect while a child that was just forked has a copy of the
	 * descriptor. */
	(void)epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, seat->peer->fd, NULL);
	seat_give(seat);
	peer_free(seat->peer);
	free(seat);
}

static void seat_leave(struct server *s, struct seat *seat)
{
	s->n_gone += !seat->gone;
	seat->gone = true;
}

/* Handle the outcome of an action by or for the peer, which may end the connection. An error of one
 * peer is no error of the daemon. */
static void seat_outcome(struct server *s, struct seat *seat, int r)
{
	if (r != 0)
		seat_leave(s, seat);
}

/* Update the epoll to the events that the peer waits for now. */
static void seat_settle(struct server *s, struct seat *seat)
{
	if (seat->gone)
		return;
	struct epoll_event event = {.events = (uint32_t)peer_events(seat->peer), .data.ptr = seat};
	if (event.events != seat->events) {
		if (epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, seat->peer->fd, &event) < 0)
			seat_leave(s, seat);
		seat->events = event.events;
	}
	bool busy = peer_is_busy(seat->peer), had_turn = seat->n_turns != seat->peer->n_turns;
	seat->n_turns = seat->peer->n_turns;
	if (seat->busy && (!busy || had_turn))
		DL_DELETE2(s->busy, seat, busy_prev, busy_next);
	if (busy && (!seat->busy || had_turn))
		DL_APPEND2(s->busy, seat, busy_prev, busy_next);
	seat->busy = busy;
}

static void free_gone(struct server *s)
{
	struct seat *seat, *next;
	if (s->n_gone == 0)
		return;
	DL_FOREACH_SAFE(s->seats, seat, next)
	if (seat->gone)
		seat_free(s, seat);
	s->n_gone = 0;
}

/* --- accepting -------------------------------------------------------------------------------- */

/* If no connection is left for a user without one, the user with the most connections loses the
 * newest. */
static void make_place(struct server *s, const struct user *newcomer)
{
	struct seat *seat, *victim = NULL;
	if (newcomer->held[USER_CLIENTS] > 0)
		return;
	DL_FOREACH(s->seats, seat)
	{
		const struct user *u = seat->peer->user;
		if (!seat->gone && !u->first && u->held[USER_CLIENTS] > 1 &&
			(!victim ||
				u->held[USER_CLIENTS] >= victim->peer->user->held[USER_CLIENTS]))
			victim = seat;
	}
	if (!victim)
		return;
	(void)peer_hang_up(victim->peer, MPERF__FAILURE_KIND__FAILURE_LIMIT,
		user_remedy(USER_CLIENTS),
		"mperfd needs this connection for another user, since you have the most "
		"connections (clients-max in mperf.conf)");
	(void)frame_buffer_write(&victim->peer->out, victim->peer->fd);
	seat_give(victim);
	seat_leave(s, victim);
}

/* Take the resources for a client's connection. False: its user has no more of one of them;
 * *ret_why names it. */
static bool place_take(struct server *s, struct user *u, char *ret_why, size_t n)
{
	if (user_room(u, USER_CLIENTS) == 0)
		make_place(s, u);
	if (!user_take(u, USER_CLIENTS, 1)) {
		user_explain(u, USER_CLIENTS, ret_why, n);
		return false;
	}
	if (user_take(u, USER_DESCRIPTORS, 1))
		return true;
	user_explain(u, USER_DESCRIPTORS, ret_why, n);
	user_give(u, USER_CLIENTS, 1);
	return false;
}

/* Send the reason, as far as the socket takes it at once, and close. */
static void turn_away(struct server *s, struct peer *p, const char *why)
{
	char unread[4096];
	(void)peer_hang_up(p, MPERF__FAILURE_KIND__FAILURE_LIMIT,
		"Close some of them, or try again later.", why);
	(void)frame_buffer_write(&p->out, p->fd);
	/* Read all remaining bytes: otherwise the kernel would report a reset to the client, not an
	 * end. */
	(void)descriptors_receive(p->fd, p->descriptors_may_come, unread, sizeof(unread));
	peer_free(p);
	s->status.n_refused++;
}

static int seat_take(struct server *s, struct peer *p)
{
	struct seat *seat = calloc(1, sizeof(*seat));
	if (!seat)
		return -ENOMEM;
	seat->peer = p;
	seat->events = (uint32_t)peer_events(p);
	struct epoll_event event = {.events = seat->events, .data.ptr = seat};
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, p->fd, &event) < 0) {
		int r = -errno;
		free(seat);
		return r;
	}
	DL_APPEND(s->seats, seat);
	s->status.n_peers++;
	s->status.n_accepted++;
	seat_outcome(s, seat, peer_dispatch(p, 0)); /* greet */
	seat_settle(s, seat);
	return 0;
}

/* Welcome a client. Returns its user; NULL: that is not known. */
static struct user *welcome(struct server *s, int fd)
{
	struct peer *p;
	char why[USER_WHY_BYTES];
	if (peer_new(&s->options, fd, &p) < 0)
		return NULL;
	struct user *u = p->user;
	p->now_ns = p->came_ns = s->now_ns;
	if (user_owes(u)) {
		turn_away(s, p, "you connect too often for mperfd");
	} else if (!place_take(s, u, why, sizeof(why))) {
		turn_away(s, p, why);
	} else if (seat_take(s, p) < 0) {
		user_give(u, USER_CLIENTS, 1);
		user_give(u, USER_DESCRIPTORS, 1);
		peer_free(p);
	}
	return u;
}

/* Accept a connection, which costs its user time. False: there is none, or no room. */
static bool accept_one(struct server *s)
{
	struct meter m = meter_begin(s);
	int fd = accept4(s->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return false;
	struct user *u = welcome(s, fd);
	meter_end(&m, u);
	return true;
}

static void listen_for(struct server *s, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = NULL};
	(void)epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->listener.fd, &event);
}

/* Connections that come meanwhile wait. */
static void accept_again_at(struct server *s, uint64_t ns)
{
	s->accept_ns = ns;
	listen_for(s, 0);
}

static void accept_each(struct server *s)
{
	for (unsigned i = 0; i < SERVER_ACCEPTS_MAX; i++) {
		if (accept_one(s)) {
			continue;
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			   errno == ENOBUFS) {
			/* The socket stays ready, so stop polling it for a while, not to spin. */
			if (s->options.service && (errno == EMFILE || errno == ENFILE))
				service_ran_short(s->options.service, errno, s->now_ns);
			accept_again_at(s, s->now_ns + SERVER_ACCEPT_PAUSE_NS);
			return;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			return;
		}
	}
}

static void accept_some(struct server *s)
{
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	accept_each(s);
	uint64_t *until_ns = &s->accepts_until_ns;
	*until_ns = *until_ns > s->now_ns ? *until_ns : s->now_ns;
	*until_ns += (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns) * SERVER_ACCEPTS_PART;
	if (!s->accept_ns && *until_ns > s->now_ns + SERVER_ACCEPTS_AHEAD_NS)
		accept_again_at(s, *until_ns - SERVER_ACCEPTS_AHEAD_NS + SERVER_ACCEPTS_REST_NS);
}

/* --- rounds ----------------------------------------------------------------------------------- */

size_t server_fds(struct server *s, struct pollfd *fds, size_t n)
{
	struct seat *seat;
	size_t filled = 0;
	if (n > SERVER_FDS_MAX)
		n = SERVER_FDS_MAX;
	if (n == 0)
		return 0;
	fds[filled++] = (struct pollfd){.fd = s->epoll_fd, .events = POLLIN};
	DL_FOREACH2(s->busy, seat, busy_next)
	filled += peer_job_fds(seat->peer, fds + filled, n - filled);
	return filled;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t server_deadline_ns(const struct server *s)
{
	uint64_t deadline = offload_queue_deadline_ns(&s->queue, s->now_ns);
	const struct seat *seat;
	if (s->accept_ns)
		deadline = earlier(deadline, s->accept_ns);
	DL_FOREACH2(s->busy, seat, busy_next)
	deadline = earlier(deadline, peer_deadline_ns(seat->peer));
	return deadline;
}

/* Run jobs and backlogs, in the order in which server_fds filled fds. */
static void dispatch_busy(struct server *s, const struct pollfd *fds, size_t n)
{
	struct seat *seat, *next;
	size_t at = 1; /* behind the epoll */
	DL_FOREACH_SAFE2(s->busy, seat, next, busy_next)
	{
		struct peer *p = seat->peer;
		size_t mine = peer_n_job_fds(p);
		p->now_ns = s->now_ns;
		user_looked_at(p->user);
		int r = peer_run_due_jobs(p, at + mine <= n ? fds + at : NULL, s->now_ns);
		at += mine;
		if (r == 0)
			r = peer_dispatch(p, 0);
		seat_outcome(s, seat, r);
	}
}

/* Called after reading the sockets: data that arrived while the loop was busy is not late. */
static void check_times(struct server *s)
{
	struct seat *seat, *next;
	DL_FOREACH_SAFE2(s->busy, seat, next, busy_next)
	{
		if (seat->gone)
			continue;
		seat->peer->now_ns = s->now_ns;
		seat_outcome(s, seat, peer_check_times(seat->peer));
	}
}

/* Serve sockets that are ready. 0 or -errno. */
static int dispatch_sockets(struct server *s)
{
	struct epoll_event event[SERVER_EVENTS_MAX];
	int n = epoll_wait(s->epoll_fd, event, SERVER_EVENTS_MAX, 0);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		struct seat *seat = event[i].data.ptr;
		if (!seat) {
			accept_some(s);
			continue;
		}
		struct meter m = meter_begin(s);
		seat->peer->now_ns = s->now_ns;
		if (!seat->gone)
			seat_outcome(s, seat, peer_dispatch(seat->peer, (short)event[i].events));
		seat_settle(s, seat);
		meter_end(&m, seat->peer->user);
	}
	return 0;
}

int server_dispatch(struct server *s, const struct pollfd *fds, size_t n, uint64_t now_ns)
{
	s->now_ns = now_ns;
	users_turn(&s->users, now_ns);
	if (s->accept_ns && now_ns >= s->accept_ns) {
		s->accept_ns = 0;
		listen_for(s, EPOLLIN);
	}
	dispatch_busy(s, fds, n);
	int r = dispatch_sockets(s);
	check_times(s);
	struct seat *seat, *next;
	DL_FOREACH_SAFE2(s->busy, seat, next, busy_next)
	seat_settle(s, seat);
	free_gone(s);
	/* a child sees what is stored when it begins */
	bool wait = s->options.service && service_is_writing(s->options.service);
	if (r == 0)
		r = offload_queue_tend(&s->queue, wait ? 0 : s->options.conf->queries_max);
	s->status.n_queries = s->queue.n_children;
	return r;
}

/* --- the server ------------------------------------------------------------------------------- */

/* Look up the group; one that does not exist has no members. */
static void look_up_group(struct server *s)
{
	const char *name = s->options.conf->group;
	const struct group *g = *name ? getgrnam(name) : NULL;
	s->options.group_known = g != NULL;
	s->options.group = g ? g->gr_gid : 0;
}

void server_reload(struct server *s)
{
	struct seat *seat;
	look_up_group(s);
	users_set_limits(&s->users, s->options.conf);
	DL_FOREACH(s->seats, seat)
	peer_look_up_rights(seat->peer);
}

int server_new(const struct control_options *o, int listen_fd, struct server **ret_server,
	struct listener_error *ret_error)
{
	struct server *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->options = *o;
	s->options.queue = &s->queue;
	s->options.users = &s->users;
	users_set_limits(&s->users, o->conf);
	s->listener.fd = -1;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int r = s->epoll_fd < 0 ? -errno : aside_new(SERVER_CLOSERS_MAX, 1, &s->options.closers);
	s->users.closers = s->options.closers;
	if (r == 0)
		r = listen_fd >= 0
			    ? listener_adopt(&s->listener, LISTENER_CONTROL, listen_fd, ret_error)
			    : listener_bind(&s->listener, LISTENER_CONTROL, o->conf->socket_path,
				      ret_error);
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	if (r == 0 && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->listener.fd, &event) < 0)
		r = -errno;
	if (r != 0) {
		server_free(s);
		return r;
	}
	look_up_group(s);
	*ret_server = s;
	return 0;
}

void server_status(const struct server *s, struct server_status *ret_status)
{
	*ret_status = s->status;
}

struct server *server_free(struct server *s)
{
	if (!s)
		return NULL;
	listener_clear(&s->listener);
	while (s->seats) {
		struct peer *p = s->seats->peer;
		(void)peer_hang_up(p, MPERF__FAILURE_KIND__FAILURE_CANCELLED,
			"Try again once it has started.", "mperfd is stopping");
		(void)frame_buffer_write(&p->out, p->fd); /* as far as it reads */
		seat_free(s, s->seats);
	}
	offload_queue_clear(&s->queue);
	users_clear(&s->users);
	aside_free(s->options.closers);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	free(s);
	return NULL;
}
