/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The groups of a hart: the ladder's plan, or the user's events. The leader must open, and is
 * changed as far as the kernel requires. Siblings may be missing; missing ones are counted, so that
 * a figure that was not measured is not mistaken for zero.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/sampler/attr.h"
#include "daemon/sampler/effort.h"
#include "daemon/sampler/sampler_private.h"

/* A group to open: member[0] fires, the others are read with it. */
struct group {
	enum rung rung;
	struct event *member[EVENT_GROUP_MAX]; /* in the session's event list */
	int n_members;
	bool switches;
};

/* --- groups ----------------------------------------------------------------------------------- */

static int event_index(const struct sampler *s, const struct event *e)
{
	return (int)(e - s->events.event);
}

static int leader_open_once(struct sampler *s, const struct group *g, int hart, pid_t pid,
	bool grouped, struct stream *ret_leader)
{
	struct perf_event_attr attr;
	attr_sampler(s, g->member[0], grouped, &attr);
	attr.pinned = s->plan[hart].pinned;
	struct stream stream = {
		.role = STREAM_SAMPLER,
		.rung = g->rung,
		.hart = hart,
		.event = event_index(s, g->member[0]),
		.period = event_period(g->member[0], s->hz, s->options.period),
		.weight_ns = event_weight_ns(g->member[0], s->hz, s->options.period),
		.software = attr.type == PERF_TYPE_SOFTWARE && !event_is_clock(g->member[0]),
	};
	if (event_is_clock(g->member[0]) && !s->options.period && hart >= 0)
		attr.sample_period = stream.period = stream.weight_ns =
			attr_hart_period(stream.period, hart);
	int r = stream_open(s, &attr, pid, -1, &stream);
	if (r == 0)
		*ret_leader = stream;
	return r;
}

/* PMUs that cannot count modes separately refuse to exclude one (EINVAL). Then the kernel is
 * counted too if we may count it, and the answers note this. */
static bool may_take_kernel_in(const struct sampler *s, const struct event *e)
{
	return e->exclude_kernel && !e->exclude_user && s->machine.may_see_kernel &&
	       !s->options.never_kernel && e->type != PERF_TYPE_SOFTWARE &&
	       e->type != PERF_TYPE_TRACEPOINT;
}

static void took_kernel_in(struct sampler *s, struct event *e, bool taken)
{
	if (taken)
		s->limits.unexcluded |= UINT64_C(1) << event_index(s, e);
	else
		event_exclude_kernel(e, true);
}

/* Open the leader, and change it as the kernel requires: exclude or include the kernel, lower the
 * rate, give up the group. Each happens at most once, so this ends. */
static int leader_open(
	struct sampler *s, struct group *g, int hart, pid_t pid, struct stream *ret_leader)
{
	bool grouped = g->n_members > 1;
	int r = leader_open_once(s, g, hart, pid, grouped, ret_leader);
	if ((r == -EACCES || r == -EPERM) && !g->member[0]->exclude_kernel &&
		!g->member[0]->exclude_user && !event_is_kernel_only(g->member[0])) {
		/* Only for requested events: the ladder's are already in a form that opens. */
		event_exclude_kernel(g->member[0], true);
		int second = leader_open_once(s, g, hart, pid, grouped, ret_leader);
		if (second == -EACCES || second == -EPERM)
			event_exclude_kernel(g->member[0], false);
		r = second;
	}
	if (r == -EINVAL && rate_follow(s) > 0)
		r = leader_open_once(s, g, hart, pid, grouped, ret_leader);
	if (r == -EINVAL && may_take_kernel_in(s, g->member[0])) {
		event_exclude_kernel(g->member[0], false);
		r = leader_open_once(s, g, hart, pid, grouped, ret_leader);
		took_kernel_in(s, g->member[0], r == 0);
	}
	if (r == -EINVAL && grouped && s->options.per_task && !s->limits.no_inherited_reads) {
		r = leader_open_once(s, g, hart, pid, false, ret_leader);
		if (r == 0) {
			s->limits.no_inherited_reads = true;
			g->n_members = 1;
			g->switches = false;
		}
	}
	return r;
}

static int sibling_open_once(
	struct sampler *s, const struct event *e, pid_t pid, const struct stream *leader)
{
	struct perf_event_attr attr;
	struct stream stream = {
		.leader = leader->id,
		.role = STREAM_SIBLING,
		.rung = leader->rung,
		.hart = leader->hart,
		.event = event_index(s, e),
	};
	attr_sibling(s, e, &attr);
	return stream_open(s, &attr, pid, leader->fd, &stream);
}

static int sibling_open(struct sampler *s, struct event *e, pid_t pid, const struct stream *leader)
{
	bool unexcluded = s->limits.unexcluded >> event_index(s, e) & 1;
	if (s->events.event[leader->event].exclude_kernel && !e->exclude_user && !unexcluded)
		event_exclude_kernel(e, true);
	int r = sibling_open_once(s, e, pid, leader);
	if (r == -EINVAL && may_take_kernel_in(s, e)) {
		event_exclude_kernel(e, false);
		r = sibling_open_once(s, e, pid, leader);
		took_kernel_in(s, e, r == 0);
	}
	return r;
}

static int switch_open(struct sampler *s, pid_t pid, const struct stream *leader)
{
	struct perf_event_attr attr;
	struct stream stream = {
		.leader = leader->id,
		.role = STREAM_SWITCH,
		.rung = leader->rung,
		.hart = leader->hart,
		.event = -1,
		.period = 1,
	};
	attr_switch(s, &attr);
	return stream_open(s, &attr, pid, leader->fd, &stream);
}

static int switch_count_open(struct sampler *s, pid_t pid, const struct stream *leader)
{
	struct perf_event_attr attr;
	struct stream stream = {
		.leader = leader->id,
		.role = STREAM_SWITCH_COUNT,
		.rung = leader->rung,
		.hart = leader->hart,
		.event = -1,
	};
	attr_switch_count(s, &attr);
	return stream_open(s, &attr, pid, leader->fd, &stream);
}

/* Count the switches of a group whose counts are not cut, so that stretches without a switch are known. 0
 * or -errno of an exhausted resource. */
static int count_open(struct sampler *s, pid_t pid, const struct stream *leader, unsigned *ret_cut)
{
	int r = switch_count_open(s, pid, leader);
	if (opening_exhausted(r))
		return r;
	stream_table_set_uncut(&s->streams, leader->id);
	*ret_cut = r == 0 ? CUT_COUNT : CUT_NONE;
	return 0;
}

/* Let BPF cut the counts. 0 with CUT_BPF in *cut, or without it: BPF is not available. -errno of an exhausted
 * resource. */
static int bpf_open(
	struct sampler *s, const struct stream *leader, enum switch_way way, unsigned *cut)
{
	int r = switch_bpf_open(s, leader, way);
	if (r != 0)
		return r < 0 ? r : 0;
	*cut |= CUT_BPF;
	s->plan[leader->hart].summed = way == SWITCH_SUMS;
	return 0;
}

/* Sum up the counts by BPF, if this hart prefers that to the sibling. Results as of bpf_open. */
static int preferred_open(struct sampler *s, const struct stream *leader, unsigned *cut)
{
	bool choice = s->options.switches == SAMPLER_SWITCHES_CHEAPEST && sampler_may_sum(s);
	if (!choice || !sampler_prefers_sums(s, leader->hart))
		return 0;
	return bpf_open(s, leader, SWITCH_SUMS, cut);
}

/* Cut the group's counts at switches, which also measures how long tasks ran. This is not valid for
 * a clock that excludes the kernel: its ticks represent only user mode. A session per task needs
 * cuts only for the last counts of a task: its counters stop while others run. 0 or -errno of an
 * exhausted resource. */
static int cut_open(
	struct sampler *s, const struct group *g, pid_t pid, const struct stream *leader)
{
	const enum sampler_switches wish = s->options.switches;
	bool best = wish == SAMPLER_SWITCHES_BEST || wish == SAMPLER_SWITCHES_CHEAPEST;
	unsigned cut = 0;
	int r = preferred_open(s, leader, &cut);
	if (r == 0 && g->switches && !cut)
		r = switch_open(s, pid, leader);
	else if (r == 0)
		r = -ENOENT;
	if (opening_exhausted(r))
		return r;
	if (r == 0)
		cut |= CUT_SIBLING;
	if (s->options.per_task)
		return 0;
	if (wish == SAMPLER_SWITCHES_BPF || wish == SAMPLER_SWITCHES_SUMS ||
		wish == SAMPLER_SWITCHES_BOTH || (best && !cut)) {
		bool sums = wish == SAMPLER_SWITCHES_SUMS && !s->options.some_tasks;
		r = bpf_open(s, leader, sums ? SWITCH_SUMS : SWITCH_RECORDS, &cut);
		if (r < 0)
			return r;
	}
	if (!cut) {
		r = count_open(s, pid, leader, &cut);
		s->plan[leader->hart].cut |= cut;
		return r;
	}
	s->plan[leader->hart].cut |= cut;
	if (!(event_is_clock(g->member[0]) && g->member[0]->exclude_kernel))
		stream_table_set_timed(&s->streams, leader->id);
	return 0;
}

/* Open a group for one target. Siblings that do not open are missing, not fatal; *ret_missing is
 * their number. 0 or -errno of the leader, or of an exhausted resource. */
static int group_open(struct sampler *s, struct group *g, int hart, pid_t pid, int *ret_missing)
{
	int wanted = g->n_members - 1, opened = 0;
	struct group open = *g;
	struct stream leader;
	if (s->limits.no_inherited_reads)
		open.n_members = 1;
	int r = leader_open(s, &open, hart, pid, &leader);
	if (r < 0)
		return r;
	for (int i = 1; i < open.n_members; i++) {
		r = sibling_open(s, open.member[i], pid, &leader);
		if (opening_exhausted(r))
			return r;
		opened += r == 0;
	}
	if (opened > 0) {
		r = cut_open(s, &open, pid, &leader);
		if (r < 0)
			return r;
	}
	*ret_missing = wanted - opened;
	return 0;
}

/* --- a hart's groups: the plan's, or the asked ones ------------------------------------------- */

static bool plan_group(struct sampler *s, const struct plan *p, struct group *ret_group)
{
	struct group g = {.rung = p->rung, .switches = p->switches};
	g.member[g.n_members++] = event_enter(s, &p->leader);
	for (int i = 0; i < p->n_siblings; i++) {
		struct event *e = event_enter(s, &p->sibling[i]);
		if (e)
			g.member[g.n_members++] = e; /* else it is missing, and counted as such */
	}
	*ret_group = g;
	return g.member[0] != NULL;
}

/* The group that begins with the session's event at `first`; false if no group begins there. */
static bool asked_group(struct sampler *s, int first, struct group *ret_group)
{
	struct event *e = s->events.event;
	struct group g = {.rung = RUNG_ASKED};
	if (!event_leads(&s->events, first))
		return false;
	g.member[g.n_members++] = &e[first];
	for (int i = first + 1; e[first].group >= 0 && i < s->events.n_events; i++)
		if (e[i].group == e[first].group && g.n_members < EVENT_GROUP_MAX)
			g.member[g.n_members++] = &e[i];
	g.switches = g.n_members > 1 && s->machine.may_see_kernel && sampler_wants_sibling(s);
	*ret_group = g;
	return true;
}

/* Number of siblings of the rung if all of them count. */
static int siblings_wanted(enum rung rung)
{
	return rung == RUNG_CYCLES ? 1 : rung == RUNG_LEADER || rung == RUNG_CLOCK_LEADER ? 2 : 0;
}

/* Without group reads cpu-clock leads nothing, and the rung must show it. */
static void plan_forget_siblings(struct plan *p)
{
	if (p->rung == RUNG_CLOCK_LEADER)
		p->rung = RUNG_CLOCK;
	p->n_siblings = 0;
	p->switches = false;
	snprintf(p->reason, sizeof(p->reason),
		"%s fires; Linux before 6.13 has no group reads of inherited events, so counts per "
		"task are missing (driver)",
		p->leader.name);
}

int plan_open(struct opening *o, int hart, pid_t pid, bool first)
{
	struct sampler *s = o->sampler;
	struct plan *p = &s->plan[hart];
	struct group g;
	int missing = 0;
	int wanted = effort_in_force(s)->no_counters ? 0 : siblings_wanted(p->rung);
	if (!plan_group(s, p, &g)) {
		opening_explain(&o->error,
			"hart %d samples by %s, which no hart used when this session began; "
			"restart the session",
			hart, p->leader.name);
		return HART_REFUSED;
	}
	bool reads = !s->limits.no_inherited_reads;
	if (!reads && p->n_siblings > 0) {
		plan_forget_siblings(p);
		g.rung = p->rung;
	}
	int r = group_open(s, &g, hart, pid, &missing);
	if (reads && s->limits.no_inherited_reads) {
		plan_forget_siblings(p);
		for (size_t i = 0; i < s->streams.n_streams; i++)
			if (s->streams.stream[i].hart == hart)
				s->streams.stream[i].rung = p->rung;
	}
	if (r == 0 && first)
		s->lost[hart][LOSS_SIBLING] += (uint64_t)(wanted - (g.n_members - 1) + missing);
	return r;
}

/* Would it open but never fire? */
static bool asked_in_vain(const struct opening *o, const struct event *e, struct event_error *to)
{
	if (e->exclude_kernel && event_is_kernel_only(e))
		opening_explain(to,
			"%s: it happens only in the kernel, so it never fires without the kernel; "
			"record it without the modifier u, with the right to see the kernel",
			e->name);
	else if (e->exclude_user && !o->sampler->machine.may_see_kernel)
		opening_refuse(o, e, EACCES, to);
	else if (e->exclude_user && o->sampler->options.user_only)
		opening_explain(to,
			"%s: it excludes user mode, and the kernel is excluded too; record it "
			"without the modifier k",
			e->name);
	else
		return false;
	return true;
}

/* In a group without the right to see the kernel, check each member: it would reveal the kernel's
 * counts. */
static bool any_in_vain(
	const struct opening *o, const struct group *g, struct event_error *ret_error)
{
	int n = o->sampler->options.never_kernel ? g->n_members : 1;
	for (int i = 0; i < n; i++)
		if (asked_in_vain(o, g->member[i], ret_error))
			return true;
	return false;
}

/* Open every requested group. A group that is refused here may open on another hart: sampler_new
 * decides. */
int asked_open(struct opening *o, int hart, pid_t pid, bool first)
{
	struct sampler *s = o->sampler;
	int refused = -ENOENT, n_opened = 0;
	for (int i = 0; i < s->events.n_events; i++) {
		struct group g;
		int missing = 0;
		if (!asked_group(s, i, &g))
			continue;
		if (any_in_vain(o, &g, &o->asked_error[i])) {
			refused = -EACCES;
			continue;
		}
		int r = group_open(s, &g, hart, pid, &missing);
		if (r == -ESRCH || opening_exhausted(r))
			return r;
		if (r < 0) {
			opening_refuse(o, g.member[0], -r, &o->asked_error[i]);
			refused = r;
			continue;
		}
		n_opened++;
		o->asked_opened |= UINT64_C(1) << i;
		if (first)
			s->lost[hart][LOSS_SIBLING] += (uint64_t)missing;
	}
	return n_opened ? 0 : refused;
}

uint64_t sampler_unexcluded(const struct sampler *s)
{
	return s->limits.unexcluded;
}
