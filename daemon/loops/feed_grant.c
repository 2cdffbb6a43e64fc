/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Counters are granted to a thread that was in a region and belongs to the process at the other end
 * of the socket, which runs as the user who connected. We check this again after the events are
 * open: by then the tid may be another thread's, whose counts the program must not read. A
 * descriptor that was sent belongs to the program: the events end with it.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/attribute/proc_reader.h"
#include "daemon/loops/feed_private.h"

/* Is it a thread of that process, and does it wholly belong to the user who connected? */
static bool is_theirs(const struct connection *c, pid_t tid)
{
	struct rights rights;
	return proc_reader_rights(attribute_reader(c->feed->o.attribute), c->pid, tid, &rights) ==
		       0 &&
	       rights.uid == c->user->uid && rights.gid == c->gid;
}

/* 0 or -errno. */
static int send_set(const struct connection *c, uint32_t thread, const struct grant_set *set)
{
	struct mperf_feed_grant grant = {
		.head = {.type = MPERF_GRANT, .bytes = sizeof(grant)},
		.thread = thread,
		.n = set->n,
	};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(set->fd))];
	} control = {.bytes = {0}};
	struct iovec piece = {.iov_base = &grant, .iov_len = sizeof(grant)};
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_SPACE(set->n * sizeof(*set->fd)),
	};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(set->n * sizeof(*set->fd));
	memcpy(CMSG_DATA(rights), set->fd, set->n * sizeof(*set->fd));
	return sendmsg(c->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static bool may_have(struct connection *c, const struct program_thread *t, const struct task *task)
{
	if (!task || task->end_ns || task->tid != t->our_tid || !is_theirs(c, t->our_tid))
		return false;
	if (c->n_grants < FEED_GRANTS_MAX && c->user->n_grants < FEED_GRANTS_PER_USER_MAX)
		return true;
	c->feed->causes[FEED_GRANTS]++;
	return false;
}

void feed_grant(struct connection *c, struct program_thread *t, const struct task *task)
{
	struct grants *g = c->feed->o.grants;
	struct grant_set set;
	if (!g || g->n_events == 0 || t->asked_grants >= FEED_GRANT_TRIES)
		return;
	if (!t->who)
		return; /* we look for it again when it reports again */
	t->asked_grants++;
	if (!may_have(c, t, task)) {
		t->asked_grants = FEED_GRANT_TRIES;
		return;
	}
	grants_open(g, t->our_tid, &set);
	bool sent = set.n > 0 && is_theirs(c, t->our_tid) && send_set(c, t->id, &set) == 0;
	if (sent) {
		memcpy(t->granted, set.event, sizeof(t->granted));
		c->n_grants++;
		c->user->n_grants++;
	}
	if (sent || set.n == 0)
		t->asked_grants = FEED_GRANT_TRIES;
	grants_close(g, &set);
}
