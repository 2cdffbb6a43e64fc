/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Descriptors are charged after they were opened, since only then is their number known. Exceeding
 * the limit for a moment is harmless: the daemon keeps a quarter of all descriptors for itself, and
 * opens nothing else in between.
 */
#include "daemon/control/record_private.h"

#include "daemon/conf/conf.h"
#include "daemon/control/peer.h"
#include "daemon/service/service.h"

/* A segment: its file twice, its log, its index. Source: https://www.sqlite.org/walformat.html */
#define RECORDING_FDS 4u
/* A walk beside its events: two epolls, the sockets of two workers, files read and closed. */
#define WALK_FDS 8u

static enum conf_callers callers_wanted(const Mperf__RecordRequest *m)
{
	return m->stack == MPERF__STACK_KIND__STACK_DWARF ? CONF_CALLERS_TABLES
	       : m->stack == MPERF__STACK_KIND__STACK_FP  ? CONF_CALLERS_FP
							  : CONF_CALLERS_NO;
}

struct walk *record_shared_walk(const struct request *q, const Mperf__RecordRequest *m)
{
	const struct control_options *o = q->peer->options;
	bool plain = m->n_event == 0 && !m->user_only && !m->wakers;
	enum conf_callers least = m->stack_at_most ? CONF_CALLERS_FP : callers_wanted(m);
	if (!o->service || !plain || least > o->conf->callers ||
		(m->stack == MPERF__STACK_KIND__STACK_DWARF &&
			m->stack_bytes > SERVICE_STACK_BYTES))
		return NULL;
	return o->service->walk;
}

uint32_t record_rate(const struct request *q, const Mperf__RecordRequest *m)
{
	const struct control_options *o = q->peer->options;
	uint32_t hz = m->hz ? m->hz : SAMPLER_HZ_DEFAULT;
	return o->service && m->hz_at_most && hz > o->conf->rate_max ? o->conf->rate_max : hz;
}

int record_hold_begin(struct record_hold *h, struct request *q, bool shared)
{
	const enum user_hold kind = shared ? USER_RECORDINGS : USER_WALKS;
	int r = request_take(q, kind, 1);
	if (r != 0)
		return r;
	/* its first byte: without room for it the recording would end at once, and be empty */
	r = request_take(q, USER_CACHE, 1);
	if (r != 0) {
		user_give(q->peer->user, kind, 1);
		return r;
	}
	h->user = q->peer->user;
	h->kind = kind;
	h->bytes = 1;
	q->time = shared ? USER_LOOP : USER_WALK;
	return 0;
}

int record_hold_fds(
	struct record_hold *h, struct request *q, size_t n_pids, const struct walk *walk)
{
	uint64_t n = RECORDING_FDS + n_pids;
	if (walk)
		n += WALK_FDS + walk->sampler->streams.n_streams;
	int r = request_take(q, USER_DESCRIPTORS, n);
	if (r == 0)
		h->n_fds = n;
	return r;
}

bool record_hold_bytes(struct record_hold *h, uint64_t bytes)
{
	user_follow(h->user, USER_CACHE, &h->bytes, bytes);
	return user_room(h->user, USER_CACHE) > 0;
}

uint64_t record_hold_spend(void *hold, uint64_t ns)
{
	struct record_hold *h = hold;
	user_spend(h->user, USER_LOOP, ns);
	return user_ready_ns(h->user, USER_LOOP);
}

void record_hold_end(struct record_hold *h)
{
	if (!h->user)
		return;
	user_give(h->user, USER_CACHE, h->bytes);
	user_give(h->user, USER_DESCRIPTORS, h->n_fds);
	user_give(h->user, h->kind, 1);
	*h = (struct record_hold){0};
}
