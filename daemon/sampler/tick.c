/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Changes during a session: harts go offline and come online, the kernel lowers its rate limit when
 * interrupts take too long, and others take counters away (hart_share.c). All are checked once a second.
 * An event of an offline hart is dead for good, so it is closed, and opened again when the hart
 * returns. A hart that was offline between two checks is detected by its side-band event, whose enabled
 * time stops.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"
#include "proto/base/memory.h"

static void hart_went(struct sampler *s, int hart)
{
	hart_count_losses(s, hart);
	hart_close(s, hart);
	s->plan[hart] = (struct plan){.rung = RUNG_NONE};
	snprintf(s->plan[hart].reason, sizeof(s->plan[hart].reason), "hart %d went offline", hart);
}

static int hart_came(struct sampler *s, int hart)
{
	_cleanup_(freep) pid_t *tasks = NULL;
	_cleanup_(freep) struct opening *o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->sampler = s;
	int r = tasks_read(s, &tasks, &o->n_tasks);
	if (r == 0)
		r = cores_read(s->options.cores, s->kernel, &s->machine);
	if (sampler_is_short(s, r))
		hart_set_add(&s->hotplug.untried, hart);
	if (r != 0)
		return r < 0 && !sampler_is_short(s, r) ? r : 0;
	o->tasks = tasks;
	r = hart_open(o, hart);
	if (sampler_is_short(s, r))
		hart_set_add(&s->hotplug.untried, hart);
	/* Gone again meanwhile: it may be back before the next check, and must count as new
	 * then. */
	if (r == HART_GONE && !s->options.per_task)
		hart_set_remove(&s->seen, hart);
	if (r == 0 && s->started)
		r = hart_enable(s, hart, true);
	/* Out of descriptors or refused: the other harts continue, and doctor shows the plan. */
	return r == -ENOMEM ? r : 0;
}

/* Plan it again, since another user has, or had, its counters. */
static int hart_again(struct sampler *s, int hart)
{
	pid_t everybody = -1;
	_cleanup_(freep) struct opening *o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->sampler = s;
	o->tasks = &everybody;
	o->n_tasks = 1;
	int r = hart_replan(o, hart);
	if (r == 0)
		r = hart_enable(s, hart, true);
	(void)sampler_is_short(s, r);
	/* Refused: its side band continues, and doctor shows the plan. */
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
		/* the ladder's events fire by time; a requested event may not */
		if (s->options.events && !fires_by_time(e))
			continue;
		steady = true;
		/* a core's own event may count only user mode */
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
	/* Copy it, since opening may read it again. */
	const struct hart_set before = s->seen, now = s->machine.online, away = harts_away(s);
	const struct hart_set untried = s->hotplug.untried;
	s->seen = now;
	s->hotplug.untried = (struct hart_set){0};
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
	for (int hart = 0; hart < s->machine.n_harts; hart++) {
		enum share share = hart_share_look(s, hart);
		r = share == SHARE_CLIMB   ? hart_again(s, hart)
		    : share == SHARE_REFIT ? sampler_refit(s, hart)
					   : 0;
		if (r < 0)
			return r;
	}
	return effort_follow(s);
}
