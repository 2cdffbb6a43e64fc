/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Where chosen tasks leave their hart: an event for each task and hart, which its children inherit
 *
 * The tracepoint sched:sched_switch and the software event context-switches both fire in the task that leaves, with its
 * user registers. The tracepoint comes first: the kernel gives all listeners of one software event on a hart the id of
 * the first (decode/sample_stream.c), and a sibling that cuts counts at switches may listen there. SWITCH records of
 * the same event say when the task leaves and when it is back, and whether it was preempted.
 */

#include <errno.h>

#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

/* Events with others' ids would be taken for those of the sibling. */
static bool has_siblings(const struct sampler *s)
{
	for (size_t i = 0; i < s->streams.n_streams; i++)
		if (s->streams.stream[i].role == STREAM_SWITCH)
			return true;
	return false;
}

/* False: there is none. */
static bool find_event(const struct sampler *s, struct event *ret_event)
{
	struct event_list found = {0};
	struct event_error error;

	*ret_event = event_switches();
	if (!s->options.per_task &&
		event_parse(s->kernel, "sched:sched_switch", &found, &error) == 0 &&
		found.n_events == 1)
		*ret_event = found.event[0];
	return ret_event->type == PERF_TYPE_TRACEPOINT || !has_siblings(s);
}

/* The ring of these events on that hart, open then. An ordinary user's session may not map one that is of no task: its
 * events write into the hart's only ring. */
static int ring_make(struct sampler *s, int hart)
{
	if (s->options.per_task || hart_ring(s, hart, RAISE_OF_WAITS))
		return 0;
	struct perf_event_attr attr;
	struct event_error error = {""};
	const size_t n = waits_ring_bytes(s);
	attr_ring(s, n / 4, &attr);
	struct stream stream = {
		.role = STREAM_RING, .hart = hart, .event = -1, .raise = RAISE_OF_WAITS};
	int r = stream_open(s, &attr, -1, -1, &stream);
	if (r < 0)
		return r;
	const struct ring ring = {.hart = hart, .fd = stream.fd, .raise = RAISE_OF_WAITS};
	r = hart_map_ring(s, &ring, n, &error);
	if (r != 0)
		stream_close(s, &stream);
	return r;
}

static int watch_on(struct sampler *s, const struct event *e, int hart, pid_t task)
{
	int r = ring_make(s, hart);
	if (r != 0)
		return r;
	struct perf_event_attr attr;
	attr_waits(s, e, &attr);
	struct stream stream = {
		.role = STREAM_WAITS,
		.rung = RUNG_CLOCK,
		.hart = hart,
		.event = -1,
		.period = 1,
		.software = true,
		.raise = s->options.per_task ? 0 : RAISE_OF_WAITS,
		.task = task,
	};
	return stream_open(s, &attr, task, -1, &stream);
}

static bool is_of_waits(const struct stream *t, const struct closing *c)
{
	const bool is = t->role == STREAM_WAITS || t->raise == RAISE_OF_WAITS;
	return is && (c->task == 0 || t->task == c->task);
}

static unsigned count_watched(const struct sampler *s, pid_t task)
{
	unsigned n = 0;
	for (size_t i = 0; i < s->streams.n_streams; i++)
		n += s->streams.stream[i].role == STREAM_WAITS &&
		     (task == 0 || s->streams.stream[i].task == task);
	return n;
}

int sampler_watch_waits(struct sampler *s, pid_t task)
{
	const unsigned most = s->options.always ? WAITS_EVENTS_MAX : WAITS_EVENTS_OWN_MAX;
	struct event event;
	bool any = false;
	int r = 0;

	if (count_watched(s, task) > 0)
		return 0;
	if (count_watched(s, 0) + (unsigned)s->machine.n_harts > most)
		return SAMPLER_FULL;
	if (!find_event(s, &event))
		return SAMPLER_REFUSED;
	for (int hart = 0; hart < s->machine.n_harts && r == 0; hart++) {
		if (!hart_ring(s, hart, 0))
			continue;
		r = watch_on(s, &event, hart, task);
		any |= r == 0;
		if (r == -ENODEV) /* the hart went offline: nothing runs there */
			r = 0;
	}
	if (r == 0 && any)
		return 0;
	streams_close(s, is_of_waits, &(struct closing){.task = task, .keep = true});
	return r == -ENOMEM            ? r
	       : opening_exhausted(r)  ? SAMPLER_FULL
	       : r == -ESRCH || r == 0 ? SAMPLER_GONE
				       : SAMPLER_REFUSED;
}

void sampler_unwatch_waits(struct sampler *s)
{
	/* before the events through which they are mapped */
	rings_close(s, -1, RAISE_OF_WAITS);
	streams_close(s, is_of_waits, &(struct closing){.keep = s->options.per_task});
}
