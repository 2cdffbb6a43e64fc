/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* No record is lost for good here: each record of an exec ring comes again through the hart's own
 * ring. So we skip a record that does not decode, or that found its ring full, without counting it. But a full ring of
 * BPF's puts owners in doubt.
 */

#include "daemon/session/exec_watch.h"

#include <errno.h>
#include <sys/epoll.h>

#include "daemon/decode/record.h"

#define SECOND_NS 1000000000u

int rings_follow(int epoll_fd, const struct ring *ring, size_t n_rings)
{
	for (size_t i = 0; i < n_rings; i++) {
		struct epoll_event news = {.events = EPOLLIN, .data.fd = ring[i].fd};
		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ring[i].fd, &news) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* Do records of BPF tell of all execs? */
static bool all_apart(const struct sampler *s)
{
	for (size_t i = 0; i < s->n_exec_rings; i++)
		if (!hart_set_has(&s->exec_records, s->exec_ring[i].hart))
			return false;
	return s->n_exec_rings > 0;
}

int exec_watch_follow(struct exec_watch *w)
{
	attribute_execs_apart(w->attribute, all_apart(w->sampler));
	return rings_follow(w->fd, w->sampler->exec_ring, w->sampler->n_exec_rings);
}

int exec_watch_fd(const struct exec_watch *w)
{
	return w->pauses || w->rests ? -1 : w->fd;
}

static bool has_news(struct ring *ring)
{
	ring_snapshot(ring);
	return ring->head != ring->tail;
}

/* A ring of one page has no room for copies of stacks. */
static bool brings_stacks(const struct ring *ring)
{
	return ring->data_bytes > RECORD_BYTES_MAX;
}

/* Records of BPF have all that is needed: they can wait until a drain, or until the ring fills. */
static bool is_urgent(const struct exec_watch *w, struct ring *ring)
{
	bool waits = hart_set_has(&w->sampler->exec_records, ring->hart);
	return has_news(ring) && (!waits || ring->head - ring->tail >= ring->data_bytes / 4);
}

uint64_t exec_watch_deadline_ns(const struct exec_watch *w)
{
	uint64_t due_ns = attribute_exec_due_ns(w->attribute);
	if (w->rests) /* what is due is read then, too */
		return w->look_ns;
	if (w->pauses)
		return w->look_ns < due_ns ? w->look_ns : due_ns;
	for (size_t i = 0; i < w->sampler->n_exec_rings; i++)
		if (is_urgent(w, &w->sampler->exec_ring[i]))
			return 0;
	return due_ns;
}

/* The tracepoint fires in the program that execs; a dummy event also reports other things than execs. */
static bool is_exec(const struct record *r)
{
	if (r->kind == RECORD_EXEC)
		return r->pid <= INT32_MAX;
	return r->pid <= INT32_MAX && r->stream && r->stream->role == STREAM_EXEC &&
	       (r->kind == RECORD_SAMPLE || (r->kind == RECORD_COMM && r->comm.exec));
}

static void take_exec(struct attribute *a, const struct record *r)
{
	if (r->kind == RECORD_EXEC)
		attribute_exec_record(a, r);
	else if (r->kind == RECORD_SAMPLE && r->sample.stack)
		attribute_exec_stack(a, r);
	else
		attribute_exec(a, (pid_t)r->pid, r->time_ns);
}

/* Bounded by the ring, of which a snapshot was taken. True: there was an exec. */
static bool take_ring(struct exec_watch *w, struct ring *ring)
{
	const uint8_t *bytes;
	size_t n;
	bool execs = false;
	while (ring_peek(ring, &bytes, &n) == 0) {
		struct record record;
		const bool decoded = record_decode(bytes, n, &w->sampler->streams, &record) == 0;
		if (decoded && is_exec(&record)) {
			take_exec(w->attribute, &record);
			execs = true;
		}
		if (decoded && record.kind == RECORD_LOST &&
			hart_set_has(&w->sampler->exec_records, ring->hart))
			attribute_execs_lost(w->attribute, record.time_ns, true);
		ring_advance(ring);
	}
	ring_release(ring);
	return execs;
}

static void count_wake(struct exec_watch *w, bool execs, bool copied, uint64_t now_ns)
{
	unsigned most = w->wakes_max ? w->wakes_max : copied ? EXEC_WAKES_COPIED : EXEC_WAKES_MAX;
	if (now_ns - w->second_ns >= SECOND_NS) {
		w->second_ns = now_ns;
		w->n_wakes = 0;
	}
	w->rests = ++w->n_wakes > most || w->put_off;
	w->pauses = !w->rests && execs && w->wakes_max;
	w->look_ns = w->put_off ? UINT64_MAX : now_ns + (w->rests ? EXEC_REST_NS : EXEC_PAUSE_NS);
}

static void take_rings(struct exec_watch *w, uint64_t now_ns)
{
	bool news = false, execs = false, copied = false;
	for (size_t i = 0; i < w->sampler->n_exec_rings; i++) {
		struct ring *ring = &w->sampler->exec_ring[i];
		if (!has_news(ring))
			continue;
		execs |= take_ring(w, ring);
		news = true;
		copied |= brings_stacks(ring);
	}
	if (news)
		count_wake(w, execs, copied, now_ns);
	else
		exec_watch_resume(w);
}

void exec_watch_dispatch(struct exec_watch *w, uint64_t now_ns)
{
	if (!(w->pauses || w->rests) || now_ns >= w->look_ns)
		take_rings(w, now_ns);
	if (attribute_exec_due_ns(w->attribute) <= now_ns)
		attribute_read_execs(w->attribute, now_ns);
}

void exec_watch_resume(struct exec_watch *w)
{
	w->pauses = w->rests = false;
}
