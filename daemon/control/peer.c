/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A peer is two buffers and a few requests. Reading stops while too much is waiting to be read by
 * the other side, so a client that asks and never listens costs a bounded amount of memory.
 */
#include "daemon/control/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "proto/memory.h"

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

int peer_new(const struct control_options *o, int fd, struct peer **ret_peer)
{
	struct peer *p = calloc(1, sizeof *p);
	if (!p) {
		close(fd);
		return -ENOMEM;
	}
	p->options = o;
	p->fd = fd;

	struct ucred credentials;
	socklen_t n = sizeof credentials;
	int r = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &n) < 0 ? -errno : greet(p);
	if (r < 0) {
		peer_free(p);
		return r;
	}
	p->uid = credentials.uid;
	p->gid = credentials.gid;
	p->pid = credentials.pid;
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
	close(p->fd);
	free(p);
	return NULL;
}

/* Tell the peer why it is hung up on. */
static int hang_up(struct peer *p, Mperf__FailureKind kind, const char *remedy, const char *why)
{
	struct request q = {.peer = p};
	int r = request_fail(&q, kind, remedy, "%s", why);
	p->closing = true;
	return r < 0 ? r : 0;
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
		return 0; /* it may have finished by itself meanwhile */
	int r = (*slot)->job->kind->finish((*slot)->job, *slot);
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
static int request_start(struct peer *p, const Mperf__Request *m)
{
	struct request refused = {.peer = p, .id = m->id};
	if (m->id == 0 || request_slot(p, m->id))
		return hang_up(p, MPERF__FAILURE_KIND__FAILURE_USAGE, "",
			"request id is 0 or in use");

	const struct command *command = NULL;
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (commands[i].body == m->body_case)
			command = &commands[i];
	if (!command)
		return request_fail(&refused, MPERF__FAILURE_KIND__FAILURE_VERSION,
			"Update mperfd so that it matches mperfctl.",
			"mperfd " MPERF_VERSION " does not know this command");

	struct request **slot = NULL;
	for (size_t i = 0; i < PEER_REQUESTS_MAX && !slot; i++)
		if (!p->request[i])
			slot = &p->request[i];
	if (!slot)
		return request_fail(&refused, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Wait for one of them to end.", "more than %d requests at once",
			PEER_REQUESTS_MAX);

	struct request *q = calloc(1, sizeof *q);
	if (!q)
		return -ENOMEM;
	*q = refused;
	*slot = q;
	int r = command->control(q, m);
	if (r < 0 || !q->job)
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
		return hang_up(p, MPERF__FAILURE_KIND__FAILURE_USAGE, "", "only requests are taken");

	const Mperf__Request *request = m->request;
	switch (request->body_case) {
	case MPERF__REQUEST__BODY_FINISH:
		return request_finish(p, request->finish->request);
	case MPERF__REQUEST__BODY_CANCEL:
		return request_cancel(p, request->cancel->request);
	default:
		return request_start(p, request);
	}
}

static int take_frames(struct peer *p)
{
	while (!p->closing) {
		Mperf__Message *m = NULL;
		int r = frame_take(&p->in, &m);
		if (r == FRAME_NONE)
			return 0;
		if (r == FRAME_TOO_LARGE)
			return hang_up(p, MPERF__FAILURE_KIND__FAILURE_LIMIT, "",
				"a frame exceeds the size that mperfd takes");
		if (r == FRAME_MALFORMED)
			return hang_up(p, MPERF__FAILURE_KIND__FAILURE_USAGE, "",
				"a frame is no message of the protocol");
		if (r < 0)
			return r;
		r = take_message(p, m);
		mperf__message__free_unpacked(m, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

int peer_dispatch(struct peer *p, short revents)
{
	if (revents & POLLIN) {
		int64_t n = frame_buffer_read(&p->in, p->fd);
		if (n == 0 || (n < 0 && n != -EAGAIN))
			return n == -ENOMEM ? -ENOMEM : PEER_GONE;
		int r = n > 0 ? take_frames(p) : 0;
		if (r < 0)
			return r;
	} else if (revents & (POLLHUP | POLLERR)) {
		return PEER_GONE;
	}

	int64_t left = frame_buffer_write(&p->out, p->fd);
	if (left < 0 || (left == 0 && p->closing))
		return PEER_GONE;
	return 0;
}

int peer_run_jobs(struct peer *p, uint64_t now_ns)
{
	for (size_t i = 0; i < PEER_REQUESTS_MAX; i++) {
		struct request *q = p->request[i];
		if (!q || !q->job || !q->job->kind->dispatch)
			continue;
		int r = q->job->kind->dispatch(q->job, q, now_ns);
		if (r < 0) {
			/* The daemon ends over it; who waits for it is told why, if he reads. */
			(void)request_fail(q, MPERF__FAILURE_KIND__FAILURE_INTERNAL, "",
				"mperfd cannot go on: %s", strerror(-r));
			(void)frame_buffer_write(&p->out, p->fd);
			return r;
		}
		if (r == JOB_DONE)
			p->request[i] = request_free(q);
	}
	return 0;
}

size_t peer_fds(const struct peer *p, struct pollfd *fds, size_t n)
{
	if (n == 0)
		return 0;
	short events = frame_buffer_filled(&p->out) > 0 ? POLLOUT : 0;
	if (frame_buffer_filled(&p->out) < PEER_OUT_BYTES_MAX && !p->closing)
		events |= POLLIN;
	size_t filled = 0;
	fds[filled++] = (struct pollfd){.fd = p->fd, .events = events};
	for (size_t i = 0; i < PEER_REQUESTS_MAX; i++) {
		struct request *q = p->request[i];
		if (q && q->job && q->job->kind->fds)
			filled += q->job->kind->fds(q->job, fds + filled, n - filled);
	}
	return filled;
}

uint64_t peer_deadline_ns(const struct peer *p)
{
	uint64_t deadline = UINT64_MAX;
	for (size_t i = 0; i < PEER_REQUESTS_MAX; i++) {
		struct request *q = p->request[i];
		if (!q || !q->job || !q->job->kind->deadline_ns)
			continue;
		uint64_t d = q->job->kind->deadline_ns(q->job, q);
		deadline = d < deadline ? d : deadline;
	}
	return deadline;
}
