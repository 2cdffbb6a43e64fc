/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A job whose child answers. Frames are passed on as they are: they bear the request's id already,
 * so all that is looked at is whether the answer has ended. As much as the peer has room for is
 * taken from the pipe, and a full pipe makes the child wait: a client that does not read holds one
 * process that sleeps. A child belongs to the queue until it is reaped, also when its job is long
 * gone, so that no sequence of questions and cancellations makes more of them than are allowed.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/offload_child.h"
#include "daemon/control/peer.h"
#include "proto/memory.h"

#define PASS_BYTES (64u << 10)      /* one read: what a pipe holds. Source: man 7 pipe */
#define PASS_READS_MAX 4            /* before others have their turn */
#define WAITING_TOLD_NS 1000000000u /* who waits longer is told for what */
#define REAP_NS 10000000u           /* a killed process is gone in less, mostly */

struct offload_child {
	struct offload *process;
	uid_t uid;
	bool detached; /* its job is gone */
	struct offload_child *next;
};

struct offload_job {
	struct job job;
	const struct offload_answer *answer;
	void *userdata;
	struct offload_queue *queue;
	struct request *request;     /* ours; it frees us */
	struct offload_child *child; /* NULL: it waits */
	struct offload_job *next;    /* that waits */
	int trouble;                 /* why no child could be made */
	int fd;                      /* what the child says; -1 once it has closed it */
	struct frame_buffer in;
	uint64_t since_ns;
	bool told; /* what it waits for */
};

/* --- the child ----------------------------------------------------------------------------------
 */

/* Write all, waiting for room. */
static int write_out(struct peer *p)
{
	while (frame_buffer_filled(&p->out) > 0) {
		ssize_t n = write(p->fd, p->out.bytes + p->out.start, frame_buffer_filled(&p->out));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		frame_buffer_consume(&p->out, (size_t)n);
	}
	return 0;
}

static int answer_in_child(void *userdata, int fd)
{
	struct offload_job *j = userdata;
	struct peer p = *j->request->peer;
	p.fd = fd;
	p.in = p.out = (struct frame_buffer){0};
	p.sent = write_out;
	struct request q = {.peer = &p, .id = j->request->id};
	int r = j->answer->run(&q, j->userdata);
	if (r < 0)
		r = request_fail(&q, MPERF__FAILURE_KIND__FAILURE_INTERNAL,
			r == -ENOMEM ? "Ask for a shorter time, or for less by a filter." : "",
			"mperfd cannot answer this: %s", strerror(-r));
	return r == 0 ? 0 : 1;
}

int offload_note(struct request *q, const char *text)
{
	char note[OFFLOAD_NOTE_BYTES_MAX];
	struct request nobody = {.peer = q->peer}; /* no request has id 0 */
	if (!q->peer->sent)
		return 0;
	snprintf(note, sizeof note, "%s", text);
	return request_progress(&nobody, note, 0, 0);
}

/* --- whose turn it is ----------------------------------------------------------------------------
 */

static uint32_t n_children_of(const struct offload_queue *u, uid_t uid)
{
	uint32_t n = 0;
	for (const struct offload_child *c = u->children; c; c = c->next)
		n += c->uid == uid;
	return n;
}

static uint32_t n_waiting_of(const struct offload_queue *u, uid_t uid)
{
	uint32_t n = 0;
	for (const struct offload_job *j = u->waiting; j; j = j->next)
		n += j->request->peer->uid == uid;
	return n;
}

static void waiting_add(struct offload_queue *u, struct offload_job *j)
{
	struct offload_job **end = &u->waiting;
	while (*end)
		end = &(*end)->next;
	*end = j;
	u->n_waiting++;
}

static void waiting_remove(struct offload_queue *u, struct offload_job *j)
{
	for (struct offload_job **at = &u->waiting; *at; at = &(*at)->next)
		if (*at == j) {
			*at = j->next;
			j->next = NULL;
			u->n_waiting--;
			return;
		}
}

static struct offload_job *who_is_next(const struct offload_queue *u)
{
	struct offload_job *next = NULL;
	uint32_t fewest = UINT32_MAX;
	for (struct offload_job *j = u->waiting; j; j = j->next) {
		uint32_t n = n_children_of(u, j->request->peer->uid);
		if (n < fewest) {
			fewest = n;
			next = j;
		}
	}
	return next;
}

/* 0 or -errno. */
static int job_fork(struct offload_job *j)
{
	int pair[2];
	struct offload_child *child = calloc(1, sizeof *child);
	if (!child)
		return -ENOMEM;
	if (pipe2(pair, O_CLOEXEC) < 0) {
		int r = -errno;
		free(child);
		return r;
	}
	_cleanup_(closep) int ours = pair[0], theirs = pair[1];
	struct child_options o = {
		.run = answer_in_child,
		.userdata = j,
		.name = "mperfd-query",
		.keeps_capabilities = j->answer->keeps_capabilities,
	};
	int r = fcntl(ours, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0)
		r = child_fork(&o, theirs, &child->process);
	if (r < 0) {
		free(child);
		return r;
	}
	child->uid = j->request->peer->uid;
	child->next = j->queue->children;
	j->queue->children = child;
	j->queue->n_children++;
	j->child = child;
	j->fd = TAKE_FD(ours);
	return 0;
}

static void reap_detached(struct offload_queue *u)
{
	struct offload_child **at = &u->children;
	struct offload_end end;
	while (*at) {
		struct offload_child *c = *at;
		if (!c->detached || offload_poll(c->process, &end) == OFFLOAD_RUNNING) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		u->n_children--;
		offload_free(c->process);
		free(c);
	}
}

int offload_queue_tend(struct offload_queue *u, uint32_t n_max)
{
	reap_detached(u);
	while (u->n_children < n_max && u->waiting) {
		struct offload_job *j = who_is_next(u);
		waiting_remove(u, j);
		j->trouble = job_fork(j); /* its dispatch tells the peer */
	}
	return 0;
}

uint64_t offload_queue_deadline_ns(const struct offload_queue *u, uint64_t now_ns)
{
	for (const struct offload_child *c = u->children; c; c = c->next)
		if (c->detached)
			return now_ns + REAP_NS;
	return UINT64_MAX;
}

void offload_queue_clear(struct offload_queue *u)
{
	while (u->children) {
		struct offload_child *c = u->children;
		u->children = c->next;
		offload_free(c->process);
		free(c);
	}
	u->n_children = 0;
}

/* --- the job -------------------------------------------------------------------------------------
 */

static void job_free(struct job *job)
{
	struct offload_job *j = (struct offload_job *)job;
	waiting_remove(j->queue, j);
	if (j->child) {
		offload_kill(j->child->process);
		j->child->detached = true;
	}
	if (j->fd >= 0)
		close(j->fd);
	frame_buffer_clear(&j->in);
	if (j->answer->release)
		j->answer->release(j->userdata);
	free(j);
}

static size_t job_fds(struct job *job, struct pollfd *fds, size_t n)
{
	struct offload_job *j = (struct offload_job *)job;
	if (n == 0 || !j->child || (j->fd >= 0 && !request_has_room(j->request)))
		return 0;
	int fd = j->fd >= 0 ? j->fd : offload_fd(j->child->process);
	fds[0] = (struct pollfd){.fd = fd, .events = POLLIN};
	return 1;
}

enum kind { KIND_PIECE, KIND_END, KIND_NOTE, KIND_STRANGE };

static bool take_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret_value)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64 && *p < end; shift += 7) {
		uint8_t byte = *(*p)++;
		value |= (uint64_t)(byte & 127) << shift;
		if (byte < 128) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

/* What a packed Message is, by its first tags: field 3 is the Answer, whose field 1 is the id (left
 * out where it is 0), whose next is what it bears. Source: mperf.proto;
 * https://protobuf.dev/programming-guides/encoding. */
static enum kind kind_of(const uint8_t *p, size_t n, uint32_t id)
{
	const uint8_t *end = p + n;
	uint64_t tag, length, said = 0;
	if (!take_varint(&p, end, &tag) || tag != (MPERF__MESSAGE__BODY_ANSWER << 3 | 2) ||
		!take_varint(&p, end, &length) || !take_varint(&p, end, &tag))
		return KIND_STRANGE;
	if (tag == (1 << 3 | 0) && (!take_varint(&p, end, &said) || !take_varint(&p, end, &tag)))
		return KIND_STRANGE;
	uint64_t body = tag >> 3;
	if (said == 0)
		return body == MPERF__ANSWER__BODY_PROGRESS ? KIND_NOTE : KIND_STRANGE;
	if (said != id)
		return KIND_STRANGE;
	return body == MPERF__ANSWER__BODY_DONE || body == MPERF__ANSWER__BODY_FAILURE ? KIND_END
										       : KIND_PIECE;
}

/* Bytes of the frame that `in` begins with, header included, as far as is known; 0: nothing is. */
static size_t begun_frame(const struct frame_buffer *in)
{
	uint32_t length;
	if (frame_buffer_filled(in) < FRAME_HEADER_BYTES)
		return 0;
	memcpy(&length, in->bytes + in->start, sizeof length);
	return FRAME_HEADER_BYTES + (size_t)le32toh(length);
}

/* The same; 0 also where it is not whole yet. */
static size_t whole_frame(const struct frame_buffer *in)
{
	size_t n = begun_frame(in);
	return frame_buffer_filled(in) >= n ? n : 0;
}

static uint64_t job_deadline_ns(struct job *job, const struct request *q)
{
	struct offload_job *j = (struct offload_job *)job;
	if (j->trouble)
		return 0;
	if (!j->child)
		return j->told ? UINT64_MAX : j->since_ns + WAITING_TOLD_NS;
	/* What did not fit goes on as soon as there is room. */
	return whole_frame(&j->in) > 0 && request_has_room(q) ? 0 : UINT64_MAX;
}

static int fail(struct request *q, const char *remedy, const char *what)
{
	int r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_INTERNAL, remedy, "%s", what);
	return r < 0 ? r : JOB_DONE;
}

static void take_note(struct offload_job *j, const uint8_t *frame, size_t n)
{
	Mperf__Message *m =
		mperf__message__unpack(NULL, n - FRAME_HEADER_BYTES, frame + FRAME_HEADER_BYTES);
	if (m && m->body_case == MPERF__MESSAGE__BODY_ANSWER &&
		m->answer->body_case == MPERF__ANSWER__BODY_PROGRESS && j->answer->note)
		j->answer->note(j->request, j->userdata, m->answer->progress->what);
	if (m)
		mperf__message__free_unpacked(m, NULL);
}

/* Pass on what is whole, while there is room. 0; JOB_DONE; -errno. */
static int pass_frames(struct offload_job *j, struct request *q)
{
	size_t n;
	while (request_has_room(q) && (n = whole_frame(&j->in)) > 0) {
		const uint8_t *frame = j->in.bytes + j->in.start;
		enum kind kind = kind_of(frame + FRAME_HEADER_BYTES, n - FRAME_HEADER_BYTES, q->id);
		int r = 0;
		if (kind == KIND_STRANGE)
			return fail(q, "", "the process that answered said what is no answer");
		if (kind == KIND_NOTE)
			take_note(j, frame, n);
		else
			r = frame_buffer_append(&q->peer->out, frame, n);
		frame_buffer_consume(&j->in, n);
		if (r < 0 || kind == KIND_END)
			return r < 0 ? r : JOB_DONE;
	}
	if (begun_frame(&j->in) > FRAME_HEADER_BYTES + FRAME_BYTES_MAX)
		return fail(q, "", "the process that answered said what is no answer");
	return 0;
}

/* One read. 1: there may be more; 0: nothing now; -errno. */
static int take_bytes(struct offload_job *j)
{
	uint8_t bytes[PASS_BYTES];
	ssize_t n = read(j->fd, bytes, sizeof bytes);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		close(TAKE_FD(j->fd));
	int r = frame_buffer_append(&j->in, bytes, (size_t)n);
	return r < 0 ? r : n > 0;
}

/* The child has said its last, and that was no end. 0 while it is not gone; JOB_DONE; -errno. */
static int tell_end(struct offload_job *j, struct request *q)
{
	struct offload_end end;
	char what[160];
	if (offload_poll(j->child->process, &end) == OFFLOAD_RUNNING)
		return 0;
	if (end.signal == SIGXCPU) {
		snprintf(what, sizeof what, "the answer took more than the %d s that one may take",
			OFFLOAD_SECONDS_MAX);
		return fail(q, "Ask for a shorter time (--since), or for less by a filter.", what);
	}
	if (end.signal)
		snprintf(what, sizeof what, "the process that answered was ended by signal %d (%s)",
			end.signal, strsignal(end.signal));
	else
		snprintf(what, sizeof what,
			"the process that answered ended with status %d before it had answered",
			end.status);
	return fail(q, "Try again; if it happens anew, ask for a shorter time (--since).", what);
}

static int tell_waiting(struct offload_job *j, struct request *q, uint64_t now_ns)
{
	if (j->trouble) {
		char what[160];
		snprintf(what, sizeof what, "no process could be started to answer this: %s",
			strerror(-j->trouble));
		return fail(q, "Try again when the machine has more to spare.", what);
	}
	if (!j->told && now_ns >= j->since_ns + WAITING_TOLD_NS) {
		j->told = true;
		int r = request_progress(q, "waiting for other queries", 0, 0);
		return r < 0 ? r : 0;
	}
	return 0;
}

static int job_dispatch(struct job *job, struct request *q, uint64_t now_ns)
{
	struct offload_job *j = (struct offload_job *)job;
	if (!j->child)
		return tell_waiting(j, q, now_ns);
	for (unsigned i = 0; i < PASS_READS_MAX; i++) {
		int r = pass_frames(j, q);
		if (r != 0)
			return r;
		if (!request_has_room(q))
			return 0;
		if (j->fd < 0)
			return tell_end(j, q);
		r = take_bytes(j);
		if (r <= 0 && j->fd >= 0)
			return r;
	}
	return 0;
}

static const struct job_kind offload_kind = {
	.fds = job_fds,
	.deadline_ns = job_deadline_ns,
	.dispatch = job_dispatch,
	.free = job_free,
};

static void release(const struct offload_answer *a, void *userdata)
{
	if (a->release)
		a->release(userdata);
}

int offload_start(struct request *q, const struct offload_answer *a, void *userdata)
{
	struct offload_queue *u = q->peer->options->queue;
	if (!u) {
		int r = a->run(q, userdata);
		release(a, userdata);
		return r;
	}
	if (u->n_waiting >= OFFLOAD_WAITING_MAX ||
		n_waiting_of(u, q->peer->uid) >= OFFLOAD_WAITING_USER_MAX) {
		release(a, userdata);
		int r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT,
			"Wait until some of them have been answered.",
			"%u queries wait for their turn already", u->n_waiting);
		return r < 0 ? r : 0;
	}
	struct offload_job *j = calloc(1, sizeof *j);
	if (!j) {
		release(a, userdata);
		return -ENOMEM;
	}
	*j = (struct offload_job){
		.job.kind = &offload_kind,
		.answer = a,
		.userdata = userdata,
		.queue = u,
		.request = q,
		.fd = -1,
		.since_ns = q->peer->now_ns,
	};
	waiting_add(u, j);
	q->job = &j->job;
	return 0;
}
