/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What changes under a running session: harts go and come, the kernel lowers its rate limit when
 * interrupts took too long, and others take counters away (sampler_share.c). All are looked up once
 * a second; an event of an offline hart is dead for good, so it is closed, and opened anew when the
 * hart returns. A hart that was away between two looks is told by its side-band event: the time for
 * which it was enabled stands still.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/pmu/sampler_attr.h"
#include "daemon/pmu/sampler_open.h"
#include "proto/memory.h"

#define NS_PER_S 1000000000u

/* How far an event's time may stay behind ours: the kernel takes it from sched_clock, which counts
 * ticks of up to 10 ms where it has nothing better. */
#define BEHIND_NS 100000000u

/* Bring one stream to the session's rate. Children that inherited it keep theirs until they end:
 * the kernel has no call for them. */
static int rate_set(struct sampler *s, struct stream *t)
{
	const struct event *e = &s->events.event[t->event];
	uint64_t period = event_period(e, s->hz);
	uint64_t value = period ? period : s->hz;
	t->weight_ns = NS_PER_S / s->hz;
	if (period && period == t->period)
		return 0; /* every occurrence, whatever the rate */
	t->period = period;
	return s->kernel->event_ioctl(
		s->kernel->userdata, t->fd, PERF_EVENT_IOC_PERIOD, (uintptr_t)&value);
}

/* For want of descriptors, which is remembered? */
static bool is_short(struct sampler *s, int r)
{
	bool is = r == -EMFILE || r == -ENFILE;
	if (is)
		s->short_of = -r;
	return is;
}

int rate_follow(struct sampler *s)
{
	int r = machine_refresh(s->kernel, &s->machine);
	/* What cannot be looked at is as it was. */
	if (r < 0 && !is_short(s, r))
		return r;
	uint32_t hz = s->options.hz;
	uint32_t most = s->machine.max_sample_rate;
	if (most > 0 && hz > most)
		hz = most;
	s->rate_lowered = hz < s->options.hz;
	if (!s->rate_lowered)
		s->hz_lowest = 0;
	else if (s->hz_lowest == 0 || hz < s->hz_lowest)
		s->hz_lowest = hz;
	if (hz == s->hz)
		return 0;
	s->hz = hz;
	for (size_t i = 0; i < s->streams.n_streams; i++) {
		struct stream *t = &s->streams.stream[i];
		if (t->role != STREAM_SAMPLER)
			continue;
		r = rate_set(s, t);
		/* The limit fell again in between (EINVAL): the next second sets it right. */
		if (r < 0 && r != -EINVAL)
			return r;
	}
	return 1;
}

int sampler_set_rate(struct sampler *s, uint32_t hz)
{
	if (hz < 1 || hz > SAMPLER_HZ_MAX)
		return -EINVAL;
	s->options.hz = hz;
	int r = rate_follow(s);
	return r < 0 ? r : 0;
}

/* Does the side-band event of a hart show that the hart was away? A live one was enabled for at
 * least the time from the end of the last look to the begin of this one, so we may be stopped at
 * any place in between. */
static bool was_away(struct sampler *s, const struct stream *sideband)
{
	const struct kernel *k = s->kernel;
	struct hart_watch *w = &s->watch[sideband->hart];
	uint64_t begin_ns = k->now_ns(k->userdata);
	struct reading now;
	if (stream_read(s, sideband, &now) < 0)
		return false; /* nothing is known */
	bool away = now.enabled_ns - w->enabled_ns + BEHIND_NS < begin_ns - w->looked_ns;
	w->enabled_ns = now.enabled_ns;
	w->looked_ns = k->now_ns(k->userdata);
	return away;
}

/* A task's event is enabled while the task runs, and outlives the hart's absence. */
static struct hart_set harts_away(struct sampler *s)
{
	struct hart_set away = {0};
	for (size_t i = 0; s->started && !s->options.per_task && i < s->streams.n_streams; i++)
		if (s->streams.stream[i].role == STREAM_SIDEBAND &&
			was_away(s, &s->streams.stream[i]))
			hart_set_add(&away, s->streams.stream[i].hart);
	return away;
}

static void hart_went(struct sampler *s, int hart)
{
	hart_count_losses(s, hart);
	hart_close(s, hart);
	s->plan[hart] = (struct plan){.rung = RUNG_NONE};
	snprintf(s->plan[hart].reason, sizeof s->plan[hart].reason, "hart %d went offline", hart);
}

static int hart_came(struct sampler *s, int hart)
{
	_cleanup_(freep) pid_t *tasks = NULL;
	_cleanup_(freep) struct opening *o = calloc(1, sizeof *o);
	if (!o)
		return -ENOMEM;
	o->sampler = s;
	int r = targets_read(s, &tasks, &o->n_tasks);
	if (r == 0)
		r = cores_read(s->options.cores, s->kernel, &s->machine);
	if (is_short(s, r))
		hart_set_add(&s->untried, hart);
	if (r != 0)
		return r < 0 && !is_short(s, r) ? r : 0;
	o->tasks = tasks;
	r = hart_open(o, hart);
	if (is_short(s, r))
		hart_set_add(&s->untried, hart);
	/* Gone again meanwhile: it may be back before we look, and shall be new then. */
	if (r == HART_GONE && !s->options.per_task)
		hart_set_remove(&s->seen, hart);
	if (r == 0 && s->started)
		r = hart_enable(s, hart, true);
	/* Out of descriptors or refused: the other harts go on, and doctor shows the plan. */
	return r == -ENOMEM ? r : 0;
}

/* Plan it anew, since somebody else has, or had, its counters. */
static int hart_again(struct sampler *s, int hart)
{
	const pid_t everybody = -1;
	_cleanup_(freep) struct opening *o = calloc(1, sizeof *o);
	if (!o)
		return -ENOMEM;
	o->sampler = s;
	o->tasks = &everybody;
	o->n_tasks = 1;
	int r = hart_replan(o, hart);
	if (r == 0)
		r = hart_enable(s, hart, true);
	(void)is_short(s, r);
	/* Refused: its side band goes on, and doctor shows the plan. */
	return r == -ENOMEM ? r : 0;
}

int sampler_reopen(struct sampler *s, int hart)
{
	hart_went(s, hart);
	return hart_came(s, hart);
}

/* Does it fire by time? */
static bool fires_by_time(const struct event *e)
{
	bool cycles = e->type == PERF_TYPE_HARDWARE && e->config == PERF_COUNT_HW_CPU_CYCLES;
	return !e->exclude_user && (cycles || event_is_clock(e));
}

bool sampler_is_steady(const struct sampler *s, int hart, bool *ret_user)
{
	bool steady = false, user = true;
	for (size_t i = 0; s->started && !s->options.per_task && i < s->streams.n_streams; i++) {
		const struct stream *t = &s->streams.stream[i];
		if (t->hart != hart || t->role != STREAM_SAMPLER)
			continue;
		const struct event *e = &s->events.event[t->event];
		/* what the ladder takes fires by time; an event that was asked for may not */
		if (s->options.events && !fires_by_time(e))
			continue;
		steady = true;
		/* a core's own event may count what only programs do */
		user &= s->plan[hart].rung == RUNG_LEADER || e->exclude_kernel ||
			s->options.user_only;
	}
	if (steady)
		*ret_user = user;
	return steady;
}

int sampler_tick(struct sampler *s)
{
	s->short_of = 0;
	int r = rate_follow(s);
	if (r < 0)
		return r;
	if (s->started && !s->options.per_task)
		sampler_count_losses(s);
	/* Copied, since opening may look again. */
	const struct hart_set before = s->seen, now = s->machine.online, away = harts_away(s);
	const struct hart_set untried = s->untried;
	s->seen = now;
	s->untried = (struct hart_set){0};
	for (int hart = 0; hart < s->machine.n_harts; hart++) {
		bool was = hart_set_has(&before, hart), is = hart_set_has(&now, hart);
		bool again = was && is && hart_set_has(&untried, hart); /* counted when it came */
		if (again && (r = hart_came(s, hart)) < 0)
			return r;
		if (again || (was == is && !(is && hart_set_has(&away, hart))))
			continue;
		s->lost[hart][LOSS_HOTPLUG] += (uint64_t)was + is;
		if (was)
			hart_went(s, hart);
		if (is && (r = hart_came(s, hart)) < 0)
			return r;
	}
	for (int hart = 0; hart < s->machine.n_harts; hart++)
		if (hart_share_look(s, hart) && (r = hart_again(s, hart)) < 0)
			return r;
	return 0;
}
