/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Any user who sets MPERF_FEED may own the socket, so we check each length. Unknown messages are ignored
 * and their descriptors closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/ask.h"
#include "runtime/grant.h"
#include "runtime/object.h"
#include "runtime/state.h"

#define ASK_BYTES_MAX                                                                              \
	4096u /* of a message; SELECT has the longest, and more globs than fit are too             \
	       * many */

int mperf_ask_parse(const void *message, size_t bytes, struct ask *ret_ask)
{
	struct mperf_feed_head head;
	if (bytes < sizeof(head))
		return -EBADMSG;
	memcpy(&head, message, sizeof(head));
	if (head.bytes != bytes || head.reserved != 0)
		return -EBADMSG;

	struct ask ask = {.type = head.type};
	if (head.type == MPERF_ASK && bytes == sizeof(struct mperf_feed_ask)) {
		struct mperf_feed_ask m;
		memcpy(&m, message, sizeof(m));
		if (m.now > 1 || (m.period_ms != 0 && (m.period_ms < MPERF_PERIOD_MS_MIN ||
							      m.period_ms > MPERF_PERIOD_MS_MAX)))
			return -EBADMSG;
		ask.period_ms = m.period_ms;
		ask.now = m.now;
	} else if (head.type == MPERF_GRANT && bytes == sizeof(struct mperf_feed_grant)) {
		struct mperf_feed_grant m;
		memcpy(&m, message, sizeof(m));
		if (m.n > MPERF_GRANTS_MAX)
			return -EBADMSG;
		ask.thread = m.thread;
		ask.n = m.n;
	} else if (head.type == MPERF_SELECT && bytes >= sizeof(struct mperf_feed_select)) {
		struct mperf_feed_select m;
		memcpy(&m, message, sizeof(m));
		if (m.globs_bytes != bytes - sizeof(m))
			return -EBADMSG;
		ask.one_in = m.one_in;
		ask.globs_bytes = m.globs_bytes;
		ask.globs = (const char *)message + sizeof(m);
	} else if (head.type == MPERF_WANT && bytes == sizeof(struct mperf_feed_want)) {
		struct mperf_feed_want m;
		memcpy(&m, message, sizeof(m));
		if (m.wanted > 1)
			return -EBADMSG;
		ask.object = m.object;
		ask.wanted = m.wanted;
	} else {
		return -EBADMSG;
	}
	*ret_ask = ask;
	return 0;
}

struct received {
	_Alignas(8) char bytes[ASK_BYTES_MAX];
	ssize_t n;
	int fds[MPERF_GRANTS_MAX];
	uint32_t n_fds;
};

/* The kernel closes descriptors that do not fit. Source: unix(7). */
static void receive(int fd, struct received *r)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * MPERF_GRANTS_MAX)];
	} control;
	struct iovec vector = {.iov_base = r->bytes, .iov_len = sizeof(r->bytes)};
	struct msghdr m = {.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	r->n_fds = 0;
	r->n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (r->n <= 0)
		return;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n && r->n_fds < MPERF_GRANTS_MAX; i++)
			memcpy(&r->fds[r->n_fds++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
	}
}

static struct thread *thread_of(struct state *s, uint32_t id)
{
	struct thread *t = __atomic_load_n(&s->threads, __ATOMIC_ACQUIRE);
	while (t && !(t->id == id &&
			    __atomic_load_n(&t->state, __ATOMIC_ACQUIRE) == MPERF_THREAD_LIVES))
		t = t->next;
	return t;
}

/* Handle the daemon's answer for an object. True: counts waited for it. Later answers change
 * nothing, since tables may already be sent. */
static bool answer(struct state *s, const struct ask *ask)
{
	struct object *i = s->objects;
	while (i && !(i->open && i->id == ask->object && i->serial == s->sink.serial))
		i = i->next;
	if (!i || i->answered)
		return false;
	i->answered = true;
	if (!ask->wanted)
		i->n_tables = i->n_modules;
	return s->late;
}

/* Granted descriptors move up, like the sink's (sink.h). */
static void give(struct state *s, struct thread *t, struct received *r)
{
	for (uint32_t i = 0; i < r->n_fds; i++) {
		int high = fcntl(r->fds[i], F_DUPFD_CLOEXEC, MPERF_FD_FLOOR);
		if (high < 0)
			continue;
		close(r->fds[i]);
		r->fds[i] = high;
	}
	mperf_grant_give(s, t, r->fds, r->n_fds);
	r->n_fds = 0;
}

bool mperf_ask_read(struct state *s)
{
	bool now = false;
	for (unsigned i = 0; i < MPERF_ASKS_MAX; i++) {
		struct received r = {.n = 0};
		if (s->sink.is_file || !mperf_sink_ours(&s->sink))
			break;
		receive(s->sink.fd, &r);
		if (r.n < 0 && errno != ECONNRESET)
			break;
		if (r.n <= 0) {
			/* At the program's end, our own half of the socket is shut down to wake the
			 * sender. */
			if (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE))
				mperf_sink_close(&s->sink);
			break;
		}
		struct ask ask = {0};
		struct thread *t = NULL;
		if (mperf_ask_parse(r.bytes, (size_t)r.n, &ask) == 0) {
			if (ask.period_ms)
				s->period_ms = ask.period_ms;
			now = now || ask.now;
			if (ask.type == MPERF_WANT)
				now = answer(s, &ask) || now;
			if (ask.type == MPERF_GRANT && ask.n == r.n_fds)
				t = thread_of(s, ask.thread);
			if (ask.type == MPERF_SELECT && mperf_select_set(&s->selection, ask.one_in,
								ask.globs, ask.globs_bytes) == 0)
				mperf_select_apply(s);
		}
		if (t)
			give(s, t, &r);
		for (uint32_t k = 0; k < r.n_fds; k++)
			close(r.fds[k]);
	}
	return now;
}
