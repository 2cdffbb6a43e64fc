/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The rate of a session, below the kernel's limit. The kernel lowers this limit when interrupts
 * take too long, and never raises it by itself. The limit is read once a second, and at once after
 * the kernel throttled. */

#include <errno.h>

#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

#define NS_PER_S 1000000000u

/* Does the kernel throttle every sample until the next tick (machine_rate_max)? Then a clock's period
 * begins at a tick each time. */
static bool rate_begins_at_ticks(const struct sampler *s)
{
	const struct machine *m = &s->machine;
	return m->tick_hz > 0 && m->max_sample_rate > 0 && m->max_sample_rate <= m->tick_hz;
}

/* Samples then all fall at the same phase between two ticks. The scheduler also works at ticks, so a task
 * that runs at that phase would get too many samples. So we move the phase by the golden ratio, which
 * spreads any number of samples evenly, but not onto the kernel's own work at ticks. */
static uint64_t period_moved(const struct sampler *s, uint64_t period)
{
	const uint64_t tick_ns = NS_PER_S / s->machine.tick_hz;
	uint64_t millionths = (uint64_t)s->n_moves * 618034 % 1000000;
	return period - period % tick_ns + tick_ns * (100000 + millionths * 8 / 10) / 1000000;
}

/* Set one stream to the session's rate. Children that inherited it keep theirs until they end: the
 * kernel has no call for them. */
static int rate_set(struct sampler *s, struct stream *t)
{
	const struct event *e = &s->events.event[t->event];
	uint64_t period = event_period(e, s->hz, s->options.period);
	if (event_is_clock(e) && !s->options.period)
		period = s->n_moves > 0 ? period_moved(s, period)
			 : t->hart >= 0 ? attr_hart_period(period, t->hart)
					: period;
	t->weight_ns = event_is_clock(e) ? period : event_weight_ns(e, s->hz, s->options.period);
	uint64_t value = period ? period : s->hz;
	if (period && period == t->period)
		return 0; /* by occurrences, regardless of the rate */
	t->period = period;
	return s->kernel->event_ioctl(
		s->kernel->userdata, t->fd, PERF_EVENT_IOC_PERIOD, (uintptr_t)&value);
}

void rate_begin(struct sampler *s)
{
	s->hz = s->options.hz;
	if (s->hz > machine_rate_max(&s->machine)) {
		s->hz = s->hz_lowest = machine_rate_max(&s->machine);
		s->rate_lowered = true;
	}
}

uint32_t sampler_rate(const struct sampler *s)
{
	bool timed = s->options.period == 0;
	for (int i = 0; i < s->events.n_events; i++)
		timed |= event_leads(&s->events, i) && event_is_clock(&s->events.event[i]);
	if (timed && s->options.period)
		return s->options.period < NS_PER_S ? (uint32_t)(NS_PER_S / s->options.period) : 1;
	return timed ? s->hz : 0;
}

bool sampler_is_short(struct sampler *s, int r)
{
	bool is = r == -EMFILE || r == -ENFILE;
	if (is)
		s->short_of = -r;
	return is;
}

/* Do the work of rate_follow. move: change the rate a little, so that samples do not stay in step with
 * work that begins at ticks. */
static int follow(struct sampler *s, bool move)
{
	int r = machine_refresh(s->kernel, &s->machine);
	/* Limits that cannot be read are assumed unchanged. */
	if (r < 0 && !sampler_is_short(s, r))
		return r;
	uint32_t hz = s->options.hz;
	uint32_t most = machine_rate_max(&s->machine);
	if (hz > most)
		hz = most;
	s->rate_lowered = hz < s->options.hz;
	if (!s->rate_lowered)
		s->hz_lowest = 0;
	else if (s->hz_lowest == 0 || hz < s->hz_lowest)
		s->hz_lowest = hz;
	const uint32_t n_moves = rate_begins_at_ticks(s) ? s->n_moves + move : 0;
	if (hz == s->hz && n_moves == s->n_moves)
		return 0;
	s->n_moves = n_moves;
	s->hz = hz;
	for (size_t i = 0; i < s->streams.n_streams; i++) {
		struct stream *t = &s->streams.stream[i];
		if (t->role != STREAM_SAMPLER)
			continue;
		r = rate_set(s, t);
		/* The limit fell again in between (EINVAL): the next tick corrects it. */
		if (r < 0 && r != -EINVAL)
			return r;
	}
	return 1;
}

int rate_follow(struct sampler *s)
{
	return follow(s, false);
}

int sampler_follow_rate(struct sampler *s)
{
	/* thousands of events of tasks would cost more than it is worth */
	int r = follow(s, !s->options.per_task);
	return r < 0 ? r : 0;
}

int sampler_set_rate(struct sampler *s, uint32_t hz)
{
	if (hz < 1 || hz > SAMPLER_HZ_MAX)
		return -EINVAL;
	s->options.hz = hz;
	int r = rate_follow(s);
	return r < 0 ? r : 0;
}
