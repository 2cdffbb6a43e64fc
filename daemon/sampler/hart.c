/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A hart: its side band, its rings, and the groups of group.c
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

/* Explain a refusal of the side band. The user did not name it, so the message names no event. */
static int refuse_all(struct opening *o, int error)
{
	struct event dummy = event_dummy();
	struct refusal why = refusal_explain(&dummy, error, true, &o->sampler->machine);
	opening_explain(&o->error, "%s; %s", why.says, why.remedy);
	return HART_REFUSED;
}

/* --- side band and ring ----------------------------------------------------------------------- */

/* Newer features are given up first, and as few as possible. */
static const uint8_t sideband_order[] = {
	SIDEBAND_KSYMBOL | SIDEBAND_CGROUP | SIDEBAND_LOST,
	SIDEBAND_KSYMBOL | SIDEBAND_LOST, /* no CONFIG_CGROUP_PERF */
	SIDEBAND_KSYMBOL | SIDEBAND_CGROUP,
	SIDEBAND_KSYMBOL,
	SIDEBAND_CGROUP | SIDEBAND_LOST,
	SIDEBAND_LOST,
	SIDEBAND_CGROUP,
	0,
};

static int sideband_try(struct opening *o, int hart)
{
	struct sampler *s = o->sampler;
	const struct kernel *k = s->kernel;
	bool kernel_symbols = !s->options.user_only && s->machine.may_see_kernel;
	int fd = -EINVAL;
	for (size_t i = 0; i < sizeof(sideband_order) && (fd == -EINVAL || fd == -E2BIG); i++) {
		unsigned features = sideband_order[i];
		if ((features & SIDEBAND_KSYMBOL) && !kernel_symbols)
			continue;
		/* A task may end at any time: the first live one is tried for all. */
		for (size_t task = 0; task < o->n_tasks; task++) {
			struct perf_event_attr attr;
			fd = -ESRCH;
			if (o->tasks[task] == 0)
				continue;
			attr_sideband(s, features, 0, &attr);
			fd = k->event_open(
				k->userdata, &attr, o->tasks[task], hart, -1, PERF_FLAG_FD_CLOEXEC);
			if (fd != -ESRCH)
				break;
			o->tasks[task] = 0;
		}
		if (fd >= 0)
			s->sideband = features;
	}
	if (fd == -ESRCH || fd == -ENODEV)
		return HART_GONE;
	if (opening_exhausted(fd))
		return fd;
	if (fd < 0)
		return refuse_all(o, -fd);
	k->event_close(k->userdata, fd);
	s->cgroups = s->sideband & SIDEBAND_CGROUP;
	return 0;
}

/* The soft limit is small because of select(2), which is not used here: raise it to the hard limit.
 * This is the process's own limit, not the machine's, so struct kernel is not used. */
static bool raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int sideband_learn(struct opening *o, int hart)
{
	int r = sideband_try(o, hart);
	if (r == -EMFILE && raise_descriptor_limit())
		r = sideband_try(o, hart);
	return r;
}

/* An unprivileged user's budget of locked memory may be partly used by other processes: halve the size
 * until it fits. */
int hart_map_ring(struct sampler *s, const struct ring *of, size_t n, struct event_error *to)
{
	const struct kernel *k = s->kernel;
	int error = 0;
	void *map = NULL;
	for (; n >= (size_t)getpagesize(); n /= 2) {
		map = k->ring_map(k->userdata, of->fd, n, &error);
		if (map || (error != -EPERM && error != EPERM))
			break;
	}
	if (map) {
		size_t at = s->n_rings++;
		for (; !of->raise && at > 0 && s->ring[at - 1].raise; at--)
			s->ring[at] = s->ring[at - 1];
		s->ring[at] = *of;
		s->ring[at].map = map;
		s->ring[at].data_bytes = n;
		return 0;
	}
	error = error < 0 ? -error : error;
	if (error != EPERM)
		return -error;
	opening_explain(to,
		"no locked memory is left for the ring of hart %d; raise "
		"kernel.perf_event_mlock_kb (%u) or end this user's other profilers",
		of->hart, s->machine.mlock_kb);
	return HART_REFUSED;
}

/* Map the ring of samples, through an event without records of its own. */
static int sample_ring_open(struct opening *o, int hart)
{
	struct sampler *s = o->sampler;
	struct perf_event_attr attr;
	size_t n = ring_bytes_for(s, hart);
	attr_ring(s, n, &attr);
	struct stream stream = {.role = STREAM_RING, .hart = hart, .event = -1};
	int r = stream_open(s, &attr, -1, -1, &stream);
	if (r < 0)
		return r;
	return hart_map_ring(s, &(struct ring){.hart = hart, .fd = stream.fd}, n, &o->error);
}

static int sideband_open(struct opening *o, int hart, pid_t pid)
{
	struct sampler *s = o->sampler;
	struct perf_event_attr attr;
	const bool apart = s->options.always;
	size_t n = apart ? sideband_ring_bytes(s) : ring_bytes_for(s, hart);
	attr_sideband(s, s->sideband, n, &attr);
	struct stream stream = {
		.role = STREAM_SIDEBAND,
		.rung = s->plan[hart].rung,
		.hart = hart,
		.event = -1,
	};
	int r = stream_open(s, &attr, pid, -1, &stream);
	if (r == 0 && (apart || !hart_ring(s, hart, 0)))
		r = hart_map_ring(s,
			&(struct ring){.hart = hart, .fd = stream.fd, .sideband = apart}, n,
			&o->error);
	return r == 0 && apart ? sample_ring_open(o, hart) : r;
}

/* --- news of execs ---------------------------------------------------------------------------- */

static int exec_try(struct sampler *s, int hart, const struct event *e)
{
	const struct kernel *k = s->kernel;
	struct perf_event_attr attr;
	attr_exec(s, e, &attr);
	struct stream stream = {
		.role = STREAM_EXEC,
		.rung = s->plan[hart].rung,
		.hart = hart,
		.event = -1,
	};
	int r = stream_open(s, &attr, -1, -1, &stream);
	if (r < 0)
		return r;
	size_t n = exec_ring_bytes(s, e); /* a page holds 60 COMM records, and is read at each */
	void *map = k->ring_map(k->userdata, stream.fd, n, &r);
	if (!map) {
		stream_table_remove(&s->streams, stream.id);
		k->event_close(k->userdata, stream.fd);
		return r < 0 ? r : -r;
	}
	s->exec_ring[s->n_exec_rings++] =
		(struct ring){.map = map, .data_bytes = n, .hart = hart, .fd = stream.fd};
	return 0;
}

/* Without it, only arguments of short-lived processes are missing, which is counted. */
static void exec_open(struct sampler *s, int hart)
{
	if (s->options.per_task)
		return;
	struct event dummy = event_dummy();
	int r = exec_try(s, hart, &s->exec);
	if (r == -EMFILE && raise_descriptor_limit())
		r = exec_try(s, hart, &s->exec);
	if (r < 0 && s->exec.type == PERF_TYPE_TRACEPOINT)
		(void)exec_try(s, hart, &dummy);
}

/* --- the hart --------------------------------------------------------------------------------- */

static bool may_lead(void *sampler, const struct event *leader)
{
	return event_enter(sampler, leader) != NULL;
}

static int hart_plan(struct opening *o, int hart)
{
	struct sampler *s = o->sampler;
	struct plan *p = &s->plan[hart];
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
		.no_switches = s->full_switches == SAMPLER_SWITCHES_BPF ||
			       s->full_switches == SAMPLER_SWITCHES_SUMS ||
			       s->full_switches == SAMPLER_SWITCHES_NONE,
		.trials = cores_trials(s->options.cores),
		.may_lead = may_lead,
		.userdata = s,
	};
	int r = ladder_probe(s->kernel, &s->machine, hart, &options, p);
	if (r < 0)
		return r;
	s->found[hart] = *p;
	s->watch[hart].yields = false;
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
				      : refuse_all(o, -r);
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

/* Reset the state of open events, but keep the total times of the counters and the best rung. */
static void watch_begin(struct hart_watch *w, uint64_t lost_before)
{
	*w = (struct hart_watch){
		.lost_before = lost_before,
		.wanted_ns = w->wanted_ns,
		.ran_ns = w->ran_ns,
		.best = w->best,
		.climb_ns = w->climb_ns,
	};
}

int hart_open(struct opening *o, int hart)
{
	struct sampler *s = o->sampler;
	const uint64_t missing = s->lost[hart][LOSS_SIBLING];
	watch_begin(&s->watch[hart], s->lost[hart][LOSS_RING]);
	s->lost_ahead[hart] = 0; /* its ring is closed */
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

/* Close the streams of a hart, or only its sampling ones: their records of the time since the last
 * drain are still in the ring, which stays, so they can still be found. In one pass: a per-task
 * session has thousands. The order by id stays. */
static void streams_close(struct sampler *s, int hart, bool side_band_too)
{
	const struct kernel *k = s->kernel;
	size_t n_kept = 0;
	for (size_t i = 0; i < s->streams.n_streams; i++) {
		const struct stream *t = &s->streams.stream[i];
		bool side_band = t->role == STREAM_SIDEBAND || t->role == STREAM_EXEC ||
				 t->role == STREAM_RING || t->role == STREAM_RAISED;
		if (t->hart != hart || (side_band && !side_band_too)) {
			s->streams.stream[n_kept++] = *t;
			continue;
		}
		k->event_close(k->userdata, t->fd);
		if (!side_band_too) /* without memory, its records are counted as lost */
			(void)stream_table_keep(&s->streams, t);
	}
	s->streams.n_streams = n_kept;
	if (!side_band_too)
		s->closed_ns = k->now_ns(k->userdata);
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
	struct hart_watch *w = &s->watch[hart];
	hart_count_losses(s, hart);
	switch_bpf_close(s, hart);
	streams_close(s, hart, false);
	hart_forget_losses(s, hart);
	w->before_wanted_ns = w->before_ran_ns = 0;
	w->n_starved = w->n_short = 0;
	int r = plan(o, hart);
	if (r == 0)
		r = plan_open(o, hart, o->tasks[0], false);
	if (r < 0 && !opening_exhausted(r))
		r = opening_refuse(o, &s->plan[hart].leader, -r, &o->error);
	if (r == 0)
		return 0;
	streams_close(s, hart, false);
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

#define ALL_USES (RAISES_MAX + 1)

/* Unmap that hart's rings of that use and remove them from the n rings. */
static void close_some(
	const struct kernel *k, struct ring *ring, size_t *n, int hart, unsigned raise)
{
	size_t n_kept = 0;
	for (size_t i = 0; i < *n; i++) {
		bool is = raise == ALL_USES || (ring[i].raise == raise && !ring[i].sideband);
		if (!is || (hart >= 0 && ring[i].hart != hart)) {
			ring[n_kept++] = ring[i];
			continue;
		}
		k->ring_unmap(k->userdata, ring[i].map, ring[i].data_bytes);
		ring_clear(&ring[i]);
	}
	*n = n_kept;
}

void rings_close(struct sampler *s, int hart, unsigned raise)
{
	close_some(s->kernel, s->ring, &s->n_rings, hart, raise);
}

void hart_close(struct sampler *s, int hart)
{
	const struct kernel *k = s->kernel;
	if (s->options.always)
		cores_hold(s->options.cores, hart, 0);
	switch_bpf_close(s, hart);
	rings_close(s, hart, ALL_USES);
	close_some(k, s->exec_ring, &s->n_exec_rings, hart, ALL_USES);
	streams_close(s, hart, true);
}

/* The pass in which a stream is enabled: the same one for both kinds of BPF output. */
static enum stream_role pass_of(const struct stream *t)
{
	return t->role == STREAM_SWITCH_SUMS ? STREAM_SWITCH_BPF : t->role;
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
			if (r < 0 && t->role != STREAM_EXEC)
				return r;
			s->watch[t->hart].looked_ns = k->now_ns(k->userdata);
		}
	}
	return 0;
}
