/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Nothing here is waited for and nothing is lost for good: every record of an exec ring comes once
 * more through the hart's own ring. So a record that does not decode, or that found its ring full,
 * is passed over without being counted.
 */

#include "daemon/control/exec_watch.h"

#include "daemon/decode/record.h"

#define SECOND_NS 1000000000u

size_t exec_watch_fds(const struct exec_watch *w, struct pollfd *fds, size_t n)
{
	size_t filled = 0;
	for (size_t i = 0; !w->rests && i < w->sampler->n_exec_rings && filled < n; i++)
		fds[filled++] =
			(struct pollfd){.fd = w->sampler->exec_ring[i].fd, .events = POLLIN};
	return filled;
}

static bool has_news(struct ring *ring)
{
	ring_snapshot(ring);
	return ring->head != ring->tail;
}

uint64_t exec_watch_deadline_ns(const struct exec_watch *w)
{
	for (size_t i = 0; !w->rests && i < w->sampler->n_exec_rings; i++)
		if (has_news(&w->sampler->exec_ring[i]))
			return 0;
	return attribute_exec_due_ns(w->attribute);
}

/* Bounded by the ring, of which a snapshot was taken. */
static void take_ring(struct exec_watch *w, struct ring *ring)
{
	const uint8_t *bytes;
	size_t n;
	while (ring_peek(ring, &bytes, &n) == 0) {
		struct record record;
		if (record_decode(bytes, n, &w->sampler->streams, &record) == 0 &&
			record.kind == RECORD_COMM && record.comm.exec && record.pid <= INT32_MAX)
			attribute_exec(w->attribute, (pid_t)record.pid, record.time_ns);
		ring_advance(ring);
	}
	ring_release(ring);
}

static void count_wake(struct exec_watch *w, uint64_t now_ns)
{
	if (now_ns - w->second_ns >= SECOND_NS) {
		w->second_ns = now_ns;
		w->n_wakes = 0;
	}
	w->rests = ++w->n_wakes > EXEC_WAKES_MAX;
}

void exec_watch_dispatch(struct exec_watch *w, uint64_t now_ns)
{
	bool news = false;
	for (size_t i = 0; !w->rests && i < w->sampler->n_exec_rings; i++)
		if (has_news(&w->sampler->exec_ring[i])) {
			take_ring(w, &w->sampler->exec_ring[i]);
			news = true;
		}
	if (news)
		count_wake(w, now_ns);
	if (attribute_exec_due_ns(w->attribute) <= now_ns)
		attribute_read_execs(w->attribute, now_ns);
}

void exec_watch_resume(struct exec_watch *w)
{
	w->rests = false;
}
