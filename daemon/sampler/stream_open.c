/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Open an event of a session: enter it in the session's list, open it on a hart, and explain the
 * refusal if the kernel refuses it. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "daemon/pmu/event/event_on_core.h"
#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

void opening_explain(struct event_error *e, const char *format, ...)
{
	if (e->text[0])
		return; /* the first refusal is the relevant one */
	va_list list;
	va_start(list, format);
	vsnprintf(e->text, sizeof(e->text), format, list);
	va_end(list);
}

int opening_refuse(
	const struct opening *o, const struct event *e, int error, struct event_error *to)
{
	struct refusal why = refusal_explain(e, error, true, &o->sampler->machine);
	opening_explain(to, "%s: %s (%s); %s", e->name, why.says, why.layer, why.remedy);
	return HART_REFUSED;
}

struct ring *hart_ring(struct sampler *s, int hart, unsigned raise)
{
	for (size_t i = 0; i < s->n_rings; i++)
		if (s->ring[i].hart == hart && s->ring[i].raise == raise && !s->ring[i].sideband)
			return &s->ring[i];
	return NULL;
}

/* Some events have a ring of their own, or none. */
static struct ring *ring_of(struct sampler *s, const struct stream *t)
{
	bool apart = t->role == STREAM_SIBLING || t->role == STREAM_EXEC ||
		     t->role == STREAM_EXEC_BPF || t->role == STREAM_RING ||
		     (t->role == STREAM_SIDEBAND && s->options.always);
	return apart ? NULL : hart_ring(s, t->hart, t->raise);
}

bool opening_exhausted(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

int stream_open(struct sampler *s, const struct perf_event_attr *attr, pid_t pid, int group_fd,
	struct stream *stream)
{
	const struct kernel *k = s->kernel;
	const struct event *e = stream->event >= 0 ? &s->events.event[stream->event] : NULL;
	struct perf_event_attr copy = *attr;
	const struct event_place place = {
		.kernel = k,
		.platform = cores_platform(s->options.cores, stream->hart),
		.pid = pid,
		.hart = stream->hart,
		.group_fd = group_fd,
	};
	int fd = event_open_at(&place, e, &copy);
	if (fd < 0)
		return fd;
	if (e && event_by_raw(e, &copy))
		hart_set_add(&s->book.by_raw[stream->event], stream->hart);
	stream->fd = fd;
	stream->sample_type = attr->sample_type;
	stream->read_format = attr->read_format;
	stream->regs_user = attr->sample_regs_user;

	const struct ring *ring = ring_of(s, stream);
	int r = k->event_ioctl(k->userdata, fd, PERF_EVENT_IOC_ID, (uintptr_t)&stream->id);
	if (r == 0 && ring)
		r = k->event_ioctl(k->userdata, fd, PERF_EVENT_IOC_SET_OUTPUT, (uintptr_t)ring->fd);
	if (r == 0 && stream->leader == 0)
		stream->leader = stream->id;
	if (r == 0)
		r = stream_table_add(&s->streams, stream);
	if (r < 0)
		k->event_close(k->userdata, fd);
	return r;
}

struct event *event_enter(struct sampler *s, const struct event *e)
{
	struct event_list *l = &s->events;
	for (int i = 0; i < l->n_events; i++)
		if (event_equal(&l->event[i], e))
			return &l->event[i];
	if (l->n_events == EVENTS_MAX || s->book.fixed)
		return NULL;
	l->event[l->n_events] = *e;
	l->event[l->n_events].group = -1;
	return &l->event[l->n_events++];
}

void events_fix(struct sampler *s)
{
	s->book.fixed = true;
}

const struct hart_set *sampler_by_raw(const struct sampler *s)
{
	return s->book.by_raw;
}

/* In one pass: a per-task session has thousands. The order by id stays. */
void streams_close(struct sampler *s, bool (*is)(const struct stream *t, const struct closing *c),
	const struct closing *c)
{
	const struct kernel *k = s->kernel;
	size_t n_kept = 0;

	for (size_t i = 0; i < s->streams.n_streams; i++) {
		const struct stream *t = &s->streams.stream[i];
		if (!is(t, c)) {
			s->streams.stream[n_kept++] = *t;
			continue;
		}
		k->event_close(k->userdata, t->fd);
		if (c->keep) /* without memory, its records are counted as lost */
			(void)stream_table_keep(&s->streams, t);
	}
	s->streams.n_streams = n_kept;
	if (c->keep)
		s->book.closed_ns = k->now_ns(k->userdata);
}

void stream_close(struct sampler *s, const struct stream *stream)
{
	stream_table_remove(&s->streams, stream->id);
	s->kernel->event_close(s->kernel->userdata, stream->fd);
}

void sampler_drained(struct sampler *s, uint64_t before_ns)
{
	if (before_ns > s->book.closed_ns)
		stream_table_forget(&s->streams);
}
