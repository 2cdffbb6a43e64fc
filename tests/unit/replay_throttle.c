/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* How kernels throttle: an event that has fired too often in a tick stops until the next one, or its
 * whole group does. The times enabled and running go on. An event of period 1 (a switch, a fault) is
 * never throttled.
 * Source: __perf_event_account_interrupt, perf_event_throttle_group, perf_adjust_freq_unthr_context
 * and perf_swevent_event in kernel/events/core.c of Linux 6.2, 6.12 and 6.18.
 */

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/replay_part.h"

#define NS_PER_S UINT64_C(1000000000)

static enum replay_throttling throttling(const struct replay *r)
{
	const char *release = replay_text(r, "/proc/sys/kernel/osrelease");
	int major = 0, minor = 0;
	if (r->throttling != REPLAY_THROTTLING_BY_RELEASE)
		return r->throttling;
	if (release && sscanf(release, "%d.%d", &major, &minor) == 2 &&
		(major > 6 || (major == 6 && minor >= 16)))
		return REPLAY_THROTTLING_GROUPS;
	return REPLAY_THROTTLING_EVENTS;
}

static uint64_t tick_now(const struct replay *r)
{
	return r->now_ns * r->tick_hz / NS_PER_S;
}

bool replay_throttle(struct replay *r, struct replay_event *e, pid_t pid)
{
	const char *limit = replay_text(r, "/proc/sys/kernel/perf_event_max_sample_rate");
	if (!limit || (!e->attr.freq && e->attr.sample_period == 1))
		return false;
	uint64_t most = (strtoull(limit, NULL, 10) + r->tick_hz - 1) / r->tick_hz;
	if (e->tick != tick_now(r))
		e->in_tick = 0;
	e->tick = tick_now(r);
	e->in_tick++;
	if (throttling(r) == REPLAY_THROTTLING_BEYOND)
		most++;
	else if (throttling(r) == REPLAY_THROTTLING_NOT_FIRST && most < 2)
		most = 2;
	if (e->in_tick < most)
		return false;
	e->throttled = true;
	replay_tell_throttled(r, e, pid, true);
	return true;
}

bool replay_is_stopped(const struct replay *r, const struct replay_event *e)
{
	return e->throttled || (replay_event(r, e->leader_fd)->throttled &&
				       throttling(r) == REPLAY_THROTTLING_GROUPS);
}

void replay_unthrottle(struct replay *r, int hart, pid_t pid)
{
	for (unsigned i = 0; i < r->n_live; i++) {
		struct replay_event *e = &r->event[r->live[i]];
		if (!e->throttled || e->tick == tick_now(r))
			continue;
		e->throttled = false;
		if (e->open)
			replay_tell_throttled(r, e, e->hart == hart ? pid : 0, false);
	}
}

void replay_set_tick(struct replay *r, uint32_t hz)
{
	r->tick_hz = hz;
}

void replay_set_throttling(struct replay *r, enum replay_throttling how)
{
	r->throttling = how;
}

uint64_t replay_locked_bytes(void *u)
{
	const struct replay *r = u;
	return r->limits_locked ? r->memlock_bytes : UINT64_MAX;
}

void replay_limit_locked(struct replay *r, uint64_t bytes)
{
	r->limits_locked = true;
	r->memlock_bytes = bytes;
}
