/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A hart: its side band, its rings, and its groups, opened together and closed together
 *
 * Each event that opens is entered into the stream table at once, with its hart. So there is one
 * way to undo: close all streams of the hart and its rings. Group members need no cleanup of their
 * own, and a failed open cannot leak a descriptor.
 */

#include "daemon/sampler/sampler_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/kernel/switch_bpf.h"
#include "daemon/sampler/attr.h"
#include "proto/base/memory.h"

/* --- the hart --------------------------------------------------------------------------------- */

static bool may_lead(void *sampler, const struct event *leader)
{
	return event_enter(sampler, leader) != NULL;
}

static int hart_plan(struct opening *o, int hart)
{
	struct sampler *s = o->sampler;
	struct plan *p = &s->plan[hart];
	const enum sampler_switches asked = sampler_switches_asked(s);
	*p = (struct plan){.rung = RUNG_NONE};
	if (s->options.events) {
		*p = (struct plan){.rung = RUNG_ASKED, .leader = s->events.event[0]};
		p->switches = s->events.n_groups > 0;
		snprintf(p->reason, sizeof(p->reason), "requested by name");
		return 0;
	}
	const struct ladder_options options = {
		.platform = cores_platform(s->options.cores, hart),
		.own_leader = s->options.own_leader,
		.hz = s->hz,
		.user_only = s->options.user_only,
		.no_switches = asked == SAMPLER_SWITCHES_BPF || asked == SAMPLER_SWITCHES_SUMS ||
			       asked == SAMPLER_SWITCHES_NONE,
		.trials = cores_trials(s->options.cores),
		.may_lead = may_lead,
		.userdata = s,
	};
	int r = ladder_probe(s->kernel, &s->machine, hart, &options, p);
	if (r < 0)
		return r;
	s->found[hart] = *p;
	share_take_back(s, hart);
	effort_reduce(s, hart, p);
	plan_pin(s, hart, p);
	if (p->rung != RUNG_NONE)
		return 0;
	/* The last rung is cpu-clock, which fails with ENODEV only if the hart is gone. */
	if (p->n_tries > 0 && p->tries[p->n_tries - 1].error == ENODEV)
		return HART_GONE;
	opening_explain(&o->error, "no event can sample on hart %d: %s", hart, p->reason);
	return HART_REFUSED;
}

static int hart_open_planned(struct opening *o, int hart)
{
	struct sampler *s = o->sampler;
	size_t n_opened = 0;
	for (size_t i = 0; i < o->n_tasks; i++) {
		if (o->tasks[i] == 0)
			continue;
		int r = sideband_open(o, hart, o->tasks[i]);
		const struct event *blamed = NULL; /* the side band */
		if (r == 0) {
			blamed = s->options.events ? &s->events.event[0] : &s->plan[hart].leader;
			r = s->options.events ? asked_open(o, hart, o->tasks[i], n_opened == 0)
					      : plan_open(o, hart, o->tasks[i], n_opened == 0);
		}
		if (r == -ESRCH) { /* this thread ended; its streams are closed with the hart */
			o->tasks[i] = 0;
			continue;
		}
		/* ENODEV means offline, also for an event that the ladder has just opened; but a
		 * requested PMU may refuse with it. */
		if (r == -ENODEV && (!blamed || !s->options.events))
			return HART_GONE;
		if (opening_exhausted(r) || r > 0)
			return r;
		if (r < 0)
			return blamed ? opening_refuse(o, blamed, -r, &o->error)
				      : sideband_refuse(o, -r);
		n_opened++;
	}
	return n_opened ? 0 : HART_GONE;
}

/* A plan describes what samples; a failed one must not look as if it did. */
static void plan_fail(const struct opening *o, int hart, int outcome)
{
	struct plan *p = &o->sampler->plan[hart];
	p->cut = 0;
	if (p->rung == RUNG_NONE && p->reason[0])
		return; /* the ladder has set the reason */
	p->rung = RUNG_NONE;
	snprintf(p->reason, sizeof(p->reason), "%.*s", (int)sizeof(p->reason) - 1,
		outcome == HART_REFUSED ? o->error.text
		: outcome == HART_GONE  ? "the hart went offline, or the processes to record ended"
					: strerror(-outcome));
}

int hart_open(struct opening *o, int hart)
{
	struct sampler *s = o->sampler;
	const uint64_t missing = s->lost[hart][LOSS_SIBLING];
	share_begin(s, hart);
	presence_begin(s, hart);
	hart_begin_losses(s, hart);
	for (bool again = true;; again = false) {
		int r = hart_plan(o, hart);
		if (r == 0)
			r = hart_open_planned(o, hart);
		if (r == 0) {
			exec_open(s, hart);
			return 0;
		}
		hart_close(s, hart);
		s->lost[hart][LOSS_SIBLING] = missing;
		if (r != -EMFILE || !again || !raise_descriptor_limit()) {
			plan_fail(o, hart, r);
			return r;
		}
	}
}

static bool is_of_hart(const struct stream *t, const struct closing *c)
{
	return t->hart == c->hart;
}

static bool is_sampling(const struct stream *t, const struct closing *c)
{
	bool side_band = t->role == STREAM_SIDEBAND || t->role == STREAM_EXEC ||
			 t->role == STREAM_EXEC_BPF || t->role == STREAM_RING ||
			 t->role == STREAM_RAISED || t->role == STREAM_WAITS;

	return t->hart == c->hart && !side_band;
}

/* Close its sampling streams. Their records of the time since the last drain are still in the ring, which stays, so
 * they can still be found. */
static void sampling_close(struct sampler *s, int hart)
{
	streams_close(s, is_sampling, &(struct closing){.hart = hart, .keep = true});
}

static int hart_plan_again(struct opening *o, int hart)
{
	struct sampler *s = o->sampler;
	if (s->found[hart].rung == RUNG_NONE)
		return hart_plan(o, hart);
	s->plan[hart] = s->found[hart];
	effort_reduce(s, hart, &s->plan[hart]);
	plan_pin(s, hart, &s->plan[hart]);
	return 0;
}

/* Close the sampling events of that hart, plan it, and open the new ones. */
static int open_again(struct opening *o, int hart, int (*plan)(struct opening *o, int hart))
{
	struct sampler *s = o->sampler;
	hart_count_losses(s, hart);
	switch_bpf_close(s, hart);
	sampling_close(s, hart);
	hart_forget_losses(s, hart);
	share_begin_again(s, hart);
	int r = plan(o, hart);
	if (r == 0)
		r = plan_open(o, hart, o->tasks[0], false);
	if (r < 0 && !opening_exhausted(r))
		r = opening_refuse(o, &s->plan[hart].leader, -r, &o->error);
	if (r == 0)
		return 0;
	sampling_close(s, hart);
	plan_fail(o, hart, r);
	return r;
}

int hart_replan(struct opening *o, int hart)
{
	return open_again(o, hart, hart_plan);
}

int hart_refit(struct opening *o, int hart)
{
	return open_again(o, hart, hart_plan_again);
}

void hart_close(struct sampler *s, int hart)
{
	if (s->options.always)
		cores_hold(s->options.cores, hart, 0);
	switch_bpf_close(s, hart);
	exec_close(s, hart);
	rings_close(s, hart, RINGS_OF_ALL);
	streams_close(s, is_of_hart, &(struct closing){.hart = hart});
}

/* The pass in which a stream is enabled. */
static enum stream_role pass_of(const struct stream *t)
{
	return t->role == STREAM_WAITS         ? STREAM_SAMPLER
	       : t->role == STREAM_SWITCH_SUMS ? STREAM_SWITCH_BPF
	       : t->role == STREAM_EXEC_BPF    ? STREAM_EXEC
					       : t->role;
}

int hart_enable(struct sampler *s, int hart, bool enable)
{
	const struct kernel *k = s->kernel;
	/* The side band is enabled first, so that no sample precedes its mapping, and disabled
	 * last. Switch events come before what they cut, so that no count begins unseen. */
	const enum stream_role order[4] = {
		enable ? STREAM_SIDEBAND : STREAM_SAMPLER,
		enable ? STREAM_EXEC : STREAM_SWITCH_BPF,
		enable ? STREAM_SWITCH_BPF : STREAM_EXEC,
		enable ? STREAM_SAMPLER : STREAM_SIDEBAND,
	};
	for (int pass = 0; pass < 4; pass++) {
		for (size_t i = 0; i < s->streams.n_streams; i++) {
			const struct stream *t = &s->streams.stream[i];
			if (pass_of(t) != order[pass] || (hart >= 0 && t->hart != hart))
				continue;
			int r = k->event_ioctl(k->userdata, t->fd,
				enable ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
			if (r < 0 && pass_of(t) != STREAM_EXEC)
				return r;
			presence_note(s, t->hart);
		}
	}
	return 0;
}
