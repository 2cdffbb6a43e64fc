/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A job whose child answers. The child's frames have the request's id already, so they are passed
 * on unchanged, and read only to find the end of the answer. The frames are in an unlinked file: a
 * client that does not read holds bytes of the cache folder, which are charged to its user, but no
 * process. A child belongs to the queue until it is reaped, even if its job ended long before. So
 * no sequence of questions and cancellations makes more children than are allowed.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/child/offload_child.h"
#include "daemon/control/offload_job.h"
#include "daemon/control/peer.h"
#include "daemon/service/service.h"
#include "proto/base/memory.h"

#define PASS_BYTES_MAX (256u << 10) /* bytes sent in one round of the loop: two chunks */
#define WAITING_TOLD_NS 1000000000u /* after this wait, send the peer the reason of the wait */
#define REAP_NS 10000000u           /* a killed process is usually gone sooner */
/* The interval at which the file of a running child is read: it may hold notes of progress. */
#define LOOK_NS 100000000u
/* A job holds its file and the descriptor of its child. */
#define JOB_DESCRIPTORS 2
/* Part of its user's room in the cache folder that one answer may take: a quarter of what is
 * left. */
#define FILE_ROOM_PART 4

struct offload_child {
	struct offload *process;
	struct user *user;
	struct offload_job *job; /* NULL: it is gone */
	struct offload_child *next;
};

struct offload_job {
	struct job job;
	const struct offload_answer *answer;
	void *userdata;
	struct offload_queue *queue;
	struct request *request;     /* ours; it frees us */
	struct offload_child *child; /* NULL: it waits, or the child has ended */
	struct offload_job *next;    /* next job that waits */
	bool waits, ended;
	struct offload_end end; /* of the child, once it has ended */
	int trouble;            /* why no child could be made */
	bool limited;           /* refused because the user is at this limit */
	enum user_hold want;
	int fd;               /* the file; -1: none yet */
	uint64_t file_bytes;  /* bytes of the file charged to the user */
	uint64_t descriptors; /* descriptors charged to the user */
	uint64_t offset;      /* bytes of the file that were passed on */
	uint64_t since_ns, look_ns;
	bool told; /* the peer was sent the reason of the wait */
};

/* --- the child -------------------------------------------------------------------------------- */

/* Write all into the file. */
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
	if (r < 0 && r != -ENOSPC && r != -EDQUOT)
		r = request_fail(&q, MPERF__FAILURE_KIND__FAILURE_INTERNAL,
			r == -ENOMEM ? "Ask for a shorter time, or use a filter." : "",
			"mperfd cannot answer this: %s", strerror(-r));
	return r == 0 ? 0 : r == -ENOSPC || r == -EDQUOT ? CHILD_UNWRITTEN : 1;
}

int offload_note(struct request *q, const char *text)
{
	char note[OFFLOAD_NOTE_BYTES_MAX];
	struct request nobody = {.peer = q->peer}; /* no request has id 0 */
	if (!q->peer->sent)
		return 0;
	snprintf(note, sizeof(note), "%s", text);
	return request_progress(&nobody, note, 0, 0);
}

/* --- whose turn it is ------------------------------------------------------------------------- */

static void waiting_add(struct offload_queue *u, struct offload_job *j)
{
	struct offload_job **end = &u->waiting;
	while (*end)
		end = &(*end)->next;
	*end = j;
	j->waits = true;
	u->n_waiting++;
}

static struct user *user_of(const struct offload_job *j)
{
	return j->request->peer->user;
}

/* Take the job out of the waiting ones. */
static void waiting_remove(struct offload_queue *u, struct offload_job *j)
{
	struct offload_job **at = &u->waiting;
	if (!j->waits)
		return;
	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	j->next = NULL;
	j->waits = false;
	u->n_waiting--;
	user_give(user_of(j), USER_WAITING, 1);
}

/* Does a take precedence over b, which arrived earlier? */
static bool comes_first(const struct user *a, const struct user *b)
{
	if (!a || !b || a->held[USER_QUERIES] == b->held[USER_QUERIES])
		return a && b && a->served < b->served;
	return a->held[USER_QUERIES] < b->held[USER_QUERIES];
}

/* The waiting job that gets the next child. NULL: no waiting job's user may have another child. */
static struct offload_job *who_is_next(const struct offload_queue *u)
{
	struct offload_job *next = NULL;
	for (struct offload_job *j = u->waiting; j; j = j->next)
		if (user_room(user_of(j), USER_QUERIES) > 0 &&
			(!next || comes_first(user_of(j), user_of(next))))
			next = j;
	return next;
}

static bool job_take(struct offload_job *j, enum user_hold what, uint64_t n)
{
	j->limited = !user_take(user_of(j), what, n);
	j->want = what;
	return !j->limited;
}

/* A file for the answer, which nobody else can open. 0, -errno. */
static int make_file(struct offload_job *j)
{
	const char *folder = getenv("TMPDIR");
	char path[PATH_MAX];
	if (!job_take(j, USER_DESCRIPTORS, JOB_DESCRIPTORS))
		return -EMFILE;
	j->descriptors = JOB_DESCRIPTORS;
	int n = snprintf(
		path, sizeof(path), "%s/mperf-answer-XXXXXX", folder && *folder ? folder : "/tmp");
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	j->fd = mkostemp(path, O_CLOEXEC | O_APPEND);
	if (j->fd < 0)
		return -errno;
	unlink(path);
	uint64_t bytes = user_room(user_of(j), USER_CACHE) / FILE_ROOM_PART;
	bytes = bytes < OFFLOAD_FILE_BYTES_MIN   ? OFFLOAD_FILE_BYTES_MIN
		: bytes > OFFLOAD_FILE_BYTES_MAX ? OFFLOAD_FILE_BYTES_MAX
						 : bytes;
	if (!job_take(j, USER_CACHE, bytes))
		return -EDQUOT;
	j->file_bytes = bytes;
	return 0;
}

static int child_start(struct offload_job *j, struct offload_child *child)
{
	struct child_options o = {
		.run = answer_in_child,
		.userdata = j,
		.name = "mperfd-query",
		.keeps_capabilities = j->answer->keeps_capabilities,
	};
	int r = make_file(j);
	o.file_bytes = j->file_bytes;
	return r == 0 ? child_fork(&o, j->fd, &child->process) : r;
}

/* 0 or -errno. */
static int job_fork(struct offload_job *j)
{
	struct offload_child *child = calloc(1, sizeof(*child));
	int r = child ? child_start(j, child) : -ENOMEM;
	if (r < 0) {
		free(child);
		return r;
	}
	struct user *user = user_of(j);
	if (user) {
		(void)user_take(user, USER_QUERIES, 1); /* there is room: who_is_next */
		user->served = ++user->users->n_served;
	}
	child->user = user;
	child->job = j;
	child->next = j->queue->children;
	j->queue->children = child;
	j->queue->n_children++;
	j->child = child;
	return 0;
}

/* Charge the user for the bytes that the child wrote, and no longer for those that it might have
 * written: it has ended. */
static void job_ended(struct offload_job *j, const struct offload_end *end)
{
	struct stat st;
	j->child = NULL;
	j->ended = true;
	j->end = *end;
	if (fstat(j->fd, &st) == 0)
		user_follow(user_of(j), USER_CACHE, &j->file_bytes, (uint64_t)st.st_size);
}

static void child_free(struct offload_child *c)
{
	user_give(c->user, USER_QUERIES, 1);
	offload_free(c->process);
	free(c);
}

static void reap(struct offload_queue *u)
{
	struct offload_child **at = &u->children;
	struct offload_end end;
	while (*at) {
		struct offload_child *c = *at;
		if (offload_poll(c->process, &end) == OFFLOAD_RUNNING) {
			at = &c->next;
			continue;
		}
		if (c->job)
			job_ended(c->job, &end);
		*at = c->next;
		u->n_children--;
		child_free(c);
	}
}

int offload_queue_tend(struct offload_queue *u, uint32_t n_max)
{
	struct offload_job *j;
	reap(u);
	while (u->n_children < n_max && (j = who_is_next(u))) {
		waiting_remove(u, j);
		j->trouble = job_fork(j); /* its dispatch informs the peer */
	}
	return 0;
}

uint64_t offload_queue_deadline_ns(const struct offload_queue *u, uint64_t now_ns)
{
	for (const struct offload_child *c = u->children; c; c = c->next)
		if (!c->job)
			return now_ns + REAP_NS;
	/* do not check the child either while its user has spent everything */
	return u->children && u->waiting ? now_ns + LOOK_NS : UINT64_MAX;
}

void offload_queue_clear(struct offload_queue *u)
{
	while (u->children) {
		struct offload_child *c = u->children;
		u->children = c->next;
		child_free(c);
	}
	u->n_children = 0;
}

/* --- the job ---------------------------------------------------------------------------------- */

static void job_free(struct job *job)
{
	struct offload_job *j = (struct offload_job *)job;
	waiting_remove(j->queue, j);
	if (j->child) {
		offload_kill(j->child->process);
		j->child->job = NULL;
	}
	if (j->fd >= 0)
		close(j->fd);
	user_give(user_of(j), USER_CACHE, j->file_bytes);
	user_give(user_of(j), USER_DESCRIPTORS, j->descriptors);
	if (j->answer->release)
		j->answer->release(j->userdata);
	free(j);
}

static size_t job_fds(struct job *job, struct pollfd *fds, size_t n)
{
	struct offload_job *j = (struct offload_job *)job;
	if (n == 0 || !j->child)
		return 0;
	fds[0] = (struct pollfd){.fd = offload_fd(j->child->process), .events = POLLIN};
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

/* The kind of a packed Message, by its first tags: field 3 is the Answer, whose field 1 is the id
 * (left out if it is 0); the next field is its content. Source: mperf.proto;
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

static uint64_t job_deadline_ns(struct job *job, const struct request *q)
{
	struct offload_job *j = (struct offload_job *)job;
	if (j->trouble)
		return 0;
	if (j->waits)
		return j->told ? UINT64_MAX : j->since_ns + WAITING_TOLD_NS;
	if (!request_has_room(q))
		return UINT64_MAX;
	return j->ended ? 0 : j->look_ns;
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

/* Is there a whole frame at the offset? Its bytes, header included, with *ret_frame to be freed; 0:
 * not yet; -EBADMSG: it is none; -errno. */
static ssize_t read_frame(const struct offload_job *j, uint8_t **ret_frame)
{
	uint32_t length;
	ssize_t n = pread(j->fd, &length, sizeof(length), (off_t)j->offset);
	if (n != (ssize_t)sizeof(length))
		return n < 0 ? -errno : 0;
	length = le32toh(length);
	if (length > FRAME_BYTES_MAX)
		return -EBADMSG;
	size_t bytes = FRAME_HEADER_BYTES + length;
	_cleanup_(freep) uint8_t *frame = malloc(bytes);
	if (!frame)
		return -ENOMEM;
	n = pread(j->fd, frame, bytes, (off_t)j->offset);
	if (n != (ssize_t)bytes)
		return n < 0 ? -errno : 0;
	*ret_frame = TAKE_PTR(frame);
	return n;
}

/* Pass on one frame. 1: there may be more; 0: nothing now; JOB_ENDED; -errno. */
enum { JOB_ENDED = 2 };
static int pass_frame(struct offload_job *j, struct request *q)
{
	_cleanup_(freep) uint8_t *frame = NULL;
	ssize_t n = read_frame(j, &frame);
	if (n <= 0)
		return (int)n;
	enum kind kind = kind_of(frame + FRAME_HEADER_BYTES, (size_t)n - FRAME_HEADER_BYTES, q->id);
	int r = 0;
	if (kind == KIND_STRANGE)
		return -EBADMSG;
	if (kind == KIND_NOTE)
		take_note(j, frame, (size_t)n);
	else
		r = frame_buffer_append(&q->peer->out, frame, (size_t)n);
	j->offset += (uint64_t)n;
	return r < 0 ? r : kind == KIND_END ? JOB_ENDED : 1;
}

/* The child ended without completing its answer: report why. JOB_DONE; -errno. */
static int tell_end(struct offload_job *j, struct request *q)
{
	const struct offload_end end = j->end;
	char what[160];
	if (end.signal == SIGXCPU) {
		snprintf(what, sizeof(what), "the answer took longer than the limit of %d s",
			OFFLOAD_SECONDS_MAX);
		return fail(q, "Ask for a shorter time (--since), or use a filter.", what);
	}
	if (end.signal == SIGXFSZ) {
		snprintf(what, sizeof(what),
			"the answer is larger than the %llu MB that you may use now",
			(unsigned long long)(j->file_bytes >> 20));
		return fail(q, "Ask for less: use a filter or --limit.", what);
	}
	if (end.signal)
		snprintf(what, sizeof(what), "the query's process was killed by signal %d (%s)",
			end.signal, strsignal(end.signal));
	else if (end.status == CHILD_UNWRITTEN)
		snprintf(what, sizeof(what), "there is no space for the answer in mperfd's TMPDIR");
	else
		snprintf(what, sizeof(what),
			"the query's process exited with status %d before it had answered",
			end.status);
	return fail(q, "Try again; if it happens again, ask for a shorter time (--since).", what);
}

/* Report that no child could be made. */
static int tell_trouble(struct offload_job *j, struct request *q)
{
	char what[160];
	if (j->limited) {
		int r = request_refuse_limit(q, j->want);
		return r < 0 ? r : JOB_DONE;
	}
	struct service *service = q->peer->options->service;
	if (service && (j->trouble == -EMFILE || j->trouble == -ENFILE))
		service_ran_short(service, -j->trouble, q->peer->now_ns);
	snprintf(what, sizeof(what), "no process could be started to answer this: %s",
		strerror(-j->trouble));
	return fail(q, "Try again when the machine is less loaded.", what);
}

static int tell_waiting(struct offload_job *j, struct request *q, uint64_t now_ns)
{
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
	if (j->trouble)
		return tell_trouble(j, q);
	if (j->waits)
		return tell_waiting(j, q, now_ns);
	bool ended = j->ended; /* check this before the file: then the file grows no more */
	uint64_t until = j->offset + PASS_BYTES_MAX;
	int r = 1;
	j->look_ns = now_ns + LOOK_NS;
	while (r == 1 && j->offset < until && request_has_room(q))
		r = pass_frame(j, q);
	if (r == -EBADMSG)
		return fail(q, "", "the query's process sent a malformed answer");
	if (r == 0 && ended)
		return tell_end(j, q);
	if (r == 1 && request_has_room(q))
		j->look_ns = now_ns;
	return r < 0 ? r : r == JOB_ENDED ? JOB_DONE : 0;
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
	int r = request_take(q, USER_WAITING, 1);
	if (r != 0) {
		release(a, userdata);
		return r < 0 ? r : 0;
	}
	struct offload_job *j = calloc(1, sizeof(*j));
	if (!j) {
		user_give(q->peer->user, USER_WAITING, 1);
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
