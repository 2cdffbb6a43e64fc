/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A peer is two buffers and a few requests. Reading stops while too much is waiting to be read by
 * the other side, so a client that asks and never listens costs a bounded amount of memory. In a
 * service reading also stops while a client exceeds its rate of requests: they wait in the socket.
 * A client that is only too fast gets no failure.
 */
#include "daemon/control/peer.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/aside/descriptors.h"
#include "daemon/conf/conf.h"
#include "daemon/control/limits.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

/* Groups of one process. Source: man 2 getgroups, NGROUPS_MAX. */
#define PEER_GROUPS_MAX 65536
/* An empty buffer larger than this is given back: it has held a large answer, or a long request. */
#define PEER_BUFFER_KEEP_BYTES (2 * FRAME_CHUNK_BYTES)

static const struct command {
	Mperf__Request__BodyCase body;
	int (*control)(struct request *q, const Mperf__Request *m);
} commands[] = {
#define COMMAND(ID, name, summary) {MPERF__REQUEST__BODY_##ID, control_##name},
#include "proto/command.inc"
#undef COMMAND
};

static struct request *request_free(struct request *q)
{
	if (q && q->job)
		q->job->kind->free(q->job);
	free(q);
	return NULL;
}

static int greet(struct peer *p)
{
	Mperf__Hello hello = MPERF__HELLO__INIT;
	hello.major = PROTOCOL_MAJOR;
	hello.minor = PROTOCOL_MINOR;
	hello.software = (char *)"mperfd " MPERF_VERSION;
	hello.frame_bytes_max = FRAME_BYTES_MAX;
	Mperf__Message m = MPERF__MESSAGE__INIT;
	m.body_case = MPERF__MESSAGE__BODY_HELLO;
	m.hello = &hello;
	return frame_put(&p->out, &m);
}

/* Is the process at the other end a member of the group, by its primary or another group of its?
 * Source: man 7 unix; net/core/sock.c of Linux 6.12, SO_PEERGROUPS, which asks for more room by
 * ERANGE. */
static bool in_group(const struct peer *p, gid_t group)
{
	if (p->gid == group)
		return true;
	socklen_t bytes = 0;
	if (getsockopt(p->fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) == 0 || errno != ERANGE ||
		bytes > PEER_GROUPS_MAX * sizeof(gid_t))
		return false; /* it has none */
	_cleanup_(freep) gid_t *groups = malloc(bytes);
	if (!groups || getsockopt(p->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) < 0)
		return false;
	for (size_t i = 0; i < bytes / sizeof(*groups); i++)
		if (groups[i] == group)
			return true;
	return false;
}

void peer_look_up_rights(struct peer *p)
{
	const struct control_options *o = p->options;
	p->sees_all = o->private || p->uid == 0 || p->uid == geteuid() ||
		      (o->group_known && in_group(p, o->group));
}

int peer_new(const struct control_options *o, int fd, struct peer **ret_peer)
{
	struct peer *p = calloc(1, sizeof(*p));
	if (!p) {
		close(fd);
		return -ENOMEM;
	}
	p->options = o;
	p->fd = fd;
	p->uid = (uid_t)-1;
	p->descriptors_may_come = !o->private && descriptors_may_come(fd);

	struct ucred credentials;
	socklen_t n = sizeof(credentials);
	int r = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &n) < 0 ? -errno : greet(p);
	if (r < 0) {
		peer_free(p);
		return r;
	}
	p->uid = credentials.uid;
	p->gid = credentials.gid;
	p->pid = credentials.pid;
	if (o->users && !(p->user = users_join(o->users, p->uid))) {
		peer_free(p);
		return -ENOMEM;
	}
	peer_look_up_rights(p);
	*ret_peer = p;
	return 0;
}

struct peer *peer_free(struct peer *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; i < PEER_REQUESTS_MAX; i++)
		request_free(p->request[i]);
	frame_buffer_clear(&p->in);
	frame_buffer_clear(&p->out);
	user_give(p->user, USER_UNREAD, p->unread);
	if (descriptors_close(p->options->closers, p->fd, p->descriptors_may_come, p->uid))
		user_closes(p->user);
	user_leave(p->user);
	free(p);
	return NULL;
}

int peer_hang_up(struct peer *p, Mperf__FailureKind kind, const char *remedy, const char *why)
{
	struct request q = {.peer = p};
	if (p->closing)
		return 0;
	int r = request_fail(&q, kind, remedy, "%s", why);
	p->closing = true;
	p->closing_ns = p->now_ns;
	return r < 0 ? r : 0;
}

/* Disconnect the peer because of its message. */
static int hang_up(struct peer *p, Mperf__FailureKind kind, const char *remedy, const char *why)
{
	p->misbehaved = true;
	return peer_hang_up(p, kind, remedy, why);
}

/* Handle a request that fails through an error of ours. A private daemon ends, and sends the client
 * the reason if it reads; a service continues without the request. 0; -errno fatal. */
static int request_break(struct peer *p, struct request *q, int error)
{
	if (p->options->private) {
		(void)request_fail(q, MPERF__FAILURE_KIND__FAILURE_INTERNAL, "",
			"mperfd cannot go on: %s", strerror(-error));
		(void)frame_buffer_write(&p->out, p->fd);
		return error;
	}
	int r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_INTERNAL,
		error == -ENOMEM ? "Try again when the machine has more memory to spare." : "",
		"mperfd cannot answer this: %s", strerror(-error));
	if (r < 0)
		p->closing = true; /* not even that works: disconnect */
	return 0;
}

static struct request **request_slot(struct peer *p, uint32_t id)
{
	for (size_t i = 0; i < PEER_REQUESTS_MAX; i++)
		if (p->request[i] && p->request[i]->id == id)
			return &p->request[i];
	return NULL;
}

static int request_finish(struct peer *p, uint32_t id)
{
	struct request **slot = request_slot(p, id);
	if (!slot || !(*slot)->job || !(*slot)->job->kind->finish)
		return 0; /* it may have finished meanwhile */
	int r = (*slot)->job->kind->finish((*slot)->job, *slot);
	if (r < 0)
		r = request_break(p, *slot, r) ?: JOB_DONE;
	if (r == JOB_DONE)
		*slot = request_free(*slot);
	return r < 0 ? r : 0;
}

static int request_cancel(struct peer *p, uint32_t id)
{
	struct request **slot = request_slot(p, id);
	if (!slot)
		return 0;
	int r = request_fail(*slot, MPERF__FAILURE_KIND__FAILURE_CANCELLED, "", "cancelled");
	*slot = request_free(*slot);
	return r < 0 ? r : 0;
}

/* Start what m asks for; its job, if any, stays in a free slot. */
static int request_start(struct peer *p, Mperf__Request *m)
{
	struct request refused = {.peer = p, .id = m->id};
	if (m->id == 0 || request_slot(p, m->id))
		return hang_up(
			p, MPERF__FAILURE_KIND__FAILURE_USAGE, "", "request id is 0 or in use");

	const struct command *command = NULL;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (commands[i].body == m->body_case)
			command = &commands[i];
	if (!command)
		return request_fail(&refused, MPERF__FAILURE_KIND__FAILURE_VERSION,
			"Update mperfd so that it matches mperfctl.",
			"mperfd " MPERF_VERSION " does not know this command");

	size_t n = 0;
	const struct field_limit *limit = limits_exceeded(&m->base, &n);
	if (limit)
		return request_fail(&refused, MPERF__FAILURE_KIND__FAILURE_LIMIT, limit->remedy,
			"%zu %s are more than the %zu that one request may name (%s)", n,
			limit->what, limit->most, limit->field);

	struct request **slot = NULL;
	for (size_t i = 0; i < PEER_REQUESTS_MAX && !slot; i++)
		if (!p->request[i])
			slot = &p->request[i];
	if (!slot)
		return request_fail(&refused, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Wait for one of them to end.", "more than %d requests at once",
			PEER_REQUESTS_MAX);

	struct request *q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	*q = refused;
	*slot = q;
	int r = command->control(q, m);
	bool over = r < 0 || !q->job;
	if (r < 0 && !p->options->private)
		r = request_break(p, q, r);
	if (over)
		*slot = request_free(q);
	return r < 0 ? r : 0;
}

static int take_hello(struct peer *p, const Mperf__Message *m)
{
	if (m->body_case != MPERF__MESSAGE__BODY_HELLO)
		return hang_up(p, MPERF__FAILURE_KIND__FAILURE_USAGE, "", "hello must come first");
	if (m->hello->major != PROTOCOL_MAJOR)
		return hang_up(p, MPERF__FAILURE_KIND__FAILURE_VERSION,
			"Install mperfctl and mperfd of the same version.",
			"mperfd speaks another major version of the protocol");
	p->greeted = true;
	return 0;
}

static int take_message(struct peer *p, const Mperf__Message *m)
{
	if (!p->greeted)
		return take_hello(p, m);
	if (m->body_case != MPERF__MESSAGE__BODY_REQUEST)
		return hang_up(
			p, MPERF__FAILURE_KIND__FAILURE_USAGE, "", "only requests are accepted");

	Mperf__Request *request = m->request;
	switch (request->body_case) {
	case MPERF__REQUEST__BODY_FINISH:
		return request_finish(p, request->finish->request);
	case MPERF__REQUEST__BODY_CANCEL:
		return request_cancel(p, request->cancel->request);
	default:
		return request_start(p, request);
	}
}

/* Is there a frame in `in` that frame_take would take, or refuse? */
static bool frame_waits(const struct frame_buffer *in)
{
	uint32_t length;
	if (frame_buffer_filled(in) < FRAME_HEADER_BYTES)
		return false;
	memcpy(&length, in->bytes + in->start, sizeof(length));
	length = le32toh(length);
	return length > FRAME_BYTES_MAX || frame_buffer_filled(in) - FRAME_HEADER_BYTES >= length;
}

/* Is there room for more input from it? */
static bool has_in_room(const struct peer *p)
{
	return frame_buffer_filled(&p->in) < PEER_BYTES_MIN || user_room(p->user, USER_UNREAD) > 0;
}

/* Charge the user for what is in the buffers of this peer now. */
static void count_unread(struct peer *p)
{
	user_follow(p->user, USER_UNREAD, &p->unread,
		frame_buffer_filled(&p->in) + frame_buffer_filled(&p->out));
}

/* May we take one more message, the nth in this round, from this peer of a service? If so, counts
 * it. */
static bool may_take(struct peer *p, unsigned n)
{
	return n < PEER_MESSAGES_ROUND_MAX && peer_has_out_room(p) && user_may_ask(p->user, n);
}

/* Note since when a frame has been incomplete. */
static void time_half_frame(struct peer *p, bool took_one)
{
	if (frame_buffer_filled(&p->in) == 0 || p->backlog)
		p->half_ns = 0;
	else if (took_one || p->half_ns == 0)
		p->half_ns = p->now_ns;
}

/* Clock of the time for which we ran, which stops while other processes run. */
static uint64_t own_time_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int take_frame(struct peer *p)
{
	Mperf__Message *m = NULL;
	if (frame_check(&p->in) == FRAME_TOO_MUCH)
		return hang_up(p, MPERF__FAILURE_KIND__FAILURE_LIMIT, "",
			"a request repeats its fields more often than mperfd accepts");
	int r = frame_take(&p->in, &m);
	if (r == FRAME_TOO_LARGE)
		return hang_up(p, MPERF__FAILURE_KIND__FAILURE_LIMIT, "",
			"a frame exceeds the size that mperfd accepts");
	if (r == FRAME_MALFORMED)
		return hang_up(p, MPERF__FAILURE_KIND__FAILURE_USAGE, "",
			"a frame is not a message of the protocol");
	if (r != 0)
		return r;
	r = take_message(p, m);
	mperf__message__free_unpacked(m, NULL);
	p->n_turns++;
	return r;
}

static int take_frames(struct peer *p)
{
	unsigned n = 0;
	int r = 0;
	p->backlog = false;
	while (r >= 0 && !p->closing && frame_waits(&p->in)) {
		if (p->options->conf && !may_take(p, n)) {
			p->backlog = true;
			break;
		}
		/* Long work is charged to the user who requested it: all users share the loop. */
		uint64_t began_ns = own_time_ns();
		r = take_frame(p);
		user_spend(p->user, USER_LOOP, own_time_ns() - began_ns);
		n++;
	}
	time_half_frame(p, n > 0);
	return r < 0 ? r : 0;
}

/* Free the memory that a long request or answer needed. */
static void trim_buffer(struct frame_buffer *b)
{
	if (frame_buffer_filled(b) == 0 && b->size > PEER_BUFFER_KEEP_BYTES)
		frame_buffer_clear(b);
}

/* Send what the socket takes. 0 or PEER_GONE. */
static int send_out(struct peer *p)
{
	if (frame_buffer_filled(&p->out) > 0) {
		uint64_t began_ns = own_time_ns();
		int64_t left = frame_buffer_write(&p->out, p->fd);
		user_spend(p->user, USER_LOOP, own_time_ns() - began_ns);
		if (left < 0)
			return PEER_GONE;
	}
	return p->closing && frame_buffer_filled(&p->out) == 0 ? PEER_GONE : 0;
}

/* Bytes; 0 at the end; -EBADMSG: it sent descriptors; -errno. */
static ssize_t receive(struct peer *p)
{
	void *room = frame_buffer_room(&p->in);
	if (!room)
		return -ENOMEM;
	ssize_t n = descriptors_receive(p->fd, p->descriptors_may_come, room, FRAME_CHUNK_BYTES);
	if (n > 0)
		frame_buffer_grow(&p->in, (size_t)n);
	return n;
}

int peer_dispatch(struct peer *p, short revents)
{
	int r = 0;
	if ((revents & POLLIN) && !p->backlog && !p->closing) {
		ssize_t n = receive(p);
		if (n == -EBADMSG)
			r = hang_up(p, MPERF__FAILURE_KIND__FAILURE_USAGE,
				"Send none: mperfd takes no descriptors from clients.",
				"sent descriptors");
		else if (n == 0 || (n < 0 && n != -EAGAIN))
			return n == -ENOMEM ? -ENOMEM : PEER_GONE;
		else if (n > 0)
			r = take_frames(p);
	} else if (revents & (POLLHUP | POLLERR)) {
		return PEER_GONE;
	} else if (p->backlog) {
		r = take_frames(p);
	}
	if (r < 0)
		return r;

	r = send_out(p);
	if (r != 0)
		return r;
	trim_buffer(&p->in);
	trim_buffer(&p->out);
	count_unread(p);
	return 0;
}

/* Let the job in slot i run. 0, -errno. */
static int run_job(struct peer *p, size_t i, uint64_t now_ns)
{
	struct request *q = p->request[i];
	uint64_t began_ns = own_time_ns();
	enum user_time time = q->time;
	int r = q->job->kind->dispatch(q->job, q, now_ns);
	user_spend(p->user, time, own_time_ns() - began_ns);
	p->n_turns++;
	if (r < 0)
		r = request_break(p, q, r) ?: JOB_DONE;
	if (r == JOB_DONE)
		p->request[i] = request_free(q);
	return r < 0 ? r : 0;
}

int peer_run_jobs(struct peer *p, uint64_t now_ns)
{
	for (size_t i = 0; i < PEER_REQUESTS_MAX; i++) {
		struct request *q = p->request[i];
		int r = q && q->job && q->job->kind->dispatch ? run_job(p, i, now_ns) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static bool any_news(const struct pollfd *fds, size_t n)
{
	for (size_t i = 0; fds && i < n; i++)
		if (fds[i].revents)
			return true;
	return false;
}

int peer_run_due_jobs(struct peer *p, const struct pollfd *fds, uint64_t now_ns)
{
	for (size_t i = 0; i < PEER_REQUESTS_MAX; i++) {
		struct request *q = p->request[i];
		if (!q)
			continue;
		bool news = any_news(fds, q->n_fds);
		if (fds)
			fds += q->n_fds;
		const struct job_kind *kind = q->job ? q->job->kind : NULL;
		if (!kind || !kind->dispatch)
			continue;
		bool due = news || (kind->deadline_ns && kind->deadline_ns(q->job, q) <= now_ns);
		int r = due && !user_rests(p->user, q->time) ? run_job(p, i, now_ns) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

short peer_events(const struct peer *p)
{
	short events = frame_buffer_filled(&p->out) > 0 ? POLLOUT : 0;
	if (peer_has_out_room(p) && has_in_room(p) && !p->closing && !p->backlog)
		events |= POLLIN;
	return events;
}

size_t peer_job_fds(struct peer *p, struct pollfd *fds, size_t n)
{
	size_t filled = 0;
	for (size_t i = 0; i < PEER_REQUESTS_MAX; i++) {
		struct request *q = p->request[i];
		if (!q)
			continue;
		/* do not wake up for a user who may not run */
		bool waits = q->job && q->job->kind->fds && user_ready_ns(p->user, q->time) == 0;
		q->n_fds = waits ? q->job->kind->fds(q->job, fds + filled, n - filled) : 0;
		filled += q->n_fds;
	}
	return filled;
}

size_t peer_n_job_fds(const struct peer *p)
{
	size_t n = 0;
	for (size_t i = 0; i < PEER_REQUESTS_MAX; i++)
		n += p->request[i] ? p->request[i]->n_fds : 0;
	return n;
}

size_t peer_fds(const struct peer *p, struct pollfd *fds, size_t n)
{
	if (n == 0)
		return 0;
	fds[0] = (struct pollfd){.fd = p->fd, .events = peer_events(p)};
	return 1 + peer_job_fds((struct peer *)p, fds + 1, n - 1);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The time at which peer_check_times, or taking more of the backlog, has something to do. */
static uint64_t times_deadline_ns(const struct peer *p)
{
	uint64_t deadline = UINT64_MAX;
	if (!p->options->conf)
		return deadline;
	if (p->closing)
		return p->closing_ns + PEER_CLOSING_NS;
	if (!p->greeted)
		deadline = p->came_ns + PEER_HELLO_NS;
	if (p->half_ns)
		deadline = earlier(deadline, p->half_ns + PEER_FRAME_NS);
	if (p->backlog && peer_has_out_room(p))
		deadline = earlier(deadline, user_ready_ns(p->user, USER_LOOP));
	return deadline;
}

/* The time at which a job is due, but not before its user may run. */
static uint64_t job_deadline_ns(const struct peer *p, const struct request *q)
{
	uint64_t ready_ns = user_ready_ns(p->user, q->time);
	if (!q->job || ready_ns > 0)
		return q->job && q->job->kind->dispatch ? ready_ns : UINT64_MAX;
	return q->job->kind->deadline_ns ? q->job->kind->deadline_ns(q->job, q) : UINT64_MAX;
}

uint64_t peer_deadline_ns(const struct peer *p)
{
	uint64_t deadline = times_deadline_ns(p);
	for (size_t i = 0; i < PEER_REQUESTS_MAX; i++) {
		const struct request *q = p->request[i];
		if (q)
			deadline = earlier(deadline, job_deadline_ns(p, q));
	}
	return deadline;
}

int peer_check_times(struct peer *p)
{
	if (!p->options->conf || p->now_ns < times_deadline_ns(p))
		return 0;
	if (p->closing)
		return PEER_GONE;
	if (!p->greeted && p->now_ns >= p->came_ns + PEER_HELLO_NS)
		return hang_up(p, MPERF__FAILURE_KIND__FAILURE_USAGE, "",
			"no hello arrived within 10 seconds");
	if (p->half_ns && p->now_ns >= p->half_ns + PEER_FRAME_NS)
		return hang_up(p, MPERF__FAILURE_KIND__FAILURE_USAGE, "",
			"a frame was incomplete for 30 seconds");
	return 0;
}

bool peer_is_busy(const struct peer *p)
{
	if (!p->greeted || p->backlog || p->half_ns || p->closing)
		return true;
	for (size_t i = 0; i < PEER_REQUESTS_MAX; i++)
		if (p->request[i])
			return true;
	return false;
}
