/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A task's event on a hart writes into the ring of its raise there. The ring is mapped through an event without
 * records of its own, so that it outlives the tasks. The kernel lets a child inherit its parent's event, with
 * the ring and the id. There is no group: counts come with the session's own samples.
 */

#include <errno.h>

#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

/* The ring of that raise on that hart, which is open then. 0, HART_REFUSED, -errno. */
static int ring_make(struct sampler *s, int hart, unsigned raise, uint32_t hz)
{
	if (hart_ring(s, hart, raise))
		return 0;
	struct perf_event_attr attr;
	struct event_error error = {""};
	size_t n = raise_ring_bytes(s, hz);
	attr_ring(s, n / 4, &attr);
	struct stream stream = {
		.role = STREAM_RING, .hart = hart, .event = -1, .raise = (uint8_t)raise};
	int r = stream_open(s, &attr, -1, -1, &stream);
	if (r < 0)
		return r;
	const struct ring ring = {.hart = hart, .fd = stream.fd, .raise = (uint8_t)raise};
	r = hart_map_ring(s, &ring, n, &error);
	if (r == 0)
		return 0;
	stream_close(s, &stream);
	return r;
}

static int raise_on(struct sampler *s, int hart, unsigned raise, uint32_t hz, pid_t task)
{
	const struct event *e = event_enter(s, &s->plan[hart].leader);
	int r = e ? ring_make(s, hart, raise, hz) : HART_REFUSED;
	if (r != 0)
		return r;
	struct perf_event_attr attr;
	attr_raised(s, e, hz, &attr);
	struct stream stream = {
		.role = STREAM_RAISED,
		.rung = s->plan[hart].rung,
		.hart = hart,
		.event = (int)(e - s->events.event),
		.period = event_period(e, hz, 0),
		.weight_ns = event_weight_ns(e, hz, 0),
		.raise = (uint8_t)raise,
		.task = task,
	};
	return stream_open(s, &attr, task, -1, &stream);
}

int sampler_raise_task(struct sampler *s, unsigned raise, uint32_t hz, pid_t task)
{
	uint32_t most = machine_rate_max(&s->machine);
	int r = 0;
	bool any = false;
	for (int hart = 0; hart < s->machine.n_harts && r == 0; hart++) {
		if (s->plan[hart].rung == RUNG_NONE || !hart_ring(s, hart, 0))
			continue;
		r = raise_on(s, hart, raise, hz < most ? hz : most, task);
		any |= r == 0;
		if (r == -ENODEV) /* the hart went offline: nothing runs there */
			r = 0;
	}
	if (r == 0 && any)
		return 0;
	sampler_lower_task(s, raise, task);
	return opening_exhausted(r) ? r : r == -ESRCH || r == 0 ? SAMPLER_GONE : SAMPLER_REFUSED;
}

static bool is_raised(const struct stream *t, const struct closing *c)
{
	return t->raise == c->raise && (c->task == 0 || t->task == c->task);
}

void sampler_lower_task(struct sampler *s, unsigned raise, pid_t task)
{
	/* records of a task are still in the ring */
	const struct closing c = {.raise = raise, .task = task, .keep = task != 0};

	if (task == 0) /* before the events through which they are mapped */
		rings_close(s, -1, raise);
	streams_close(s, is_raised, &c);
}
