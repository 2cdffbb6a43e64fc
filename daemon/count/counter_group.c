/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each event has a member of a group on each target, whether it is open or not:
 *
 *                  hart 0             hart 1
 *      cycles      group 1, its own   group 2, which another counter opened
 *      L2-misses   group 1            group 3, its own: refused in group 2, and tried alone
 *
 * A group is joined once by a counter, also if it has several of its events.
 */
#include "daemon/count/counter_group.h"

#include <errno.h>
#include <stdlib.h>

static size_t place_of(const struct counter *c, int event, size_t target)
{
	return (size_t)event * c->n_targets + target;
}

static struct hart_member *member_at(const struct counter *c, int event, size_t target)
{
	return c->member[place_of(c, event, target)];
}

/* --- what is asked for ------------------------------------------------------------------------ */

bool counter_may_take_kernel_in(const struct counter_terms *t, const struct perf_event_attr *attr)
{
	return attr->exclude_kernel && !attr->exclude_user && t->may_see_kernel &&
	       attr->type != PERF_TYPE_SOFTWARE && attr->type != PERF_TYPE_TRACEPOINT;
}

void counter_ask(const struct counter_terms *t, const struct event *e,
	const struct counter_target *target, struct perf_event_attr *ret_attr,
	struct event_place *ret_place)
{
	/* If all harts are alike, a thread has one target for all harts. */
	int hart = target->hart < 0 ? cores_kind(t->cores, 0) : target->hart;
	*ret_attr = (struct perf_event_attr){
		.size = sizeof(*ret_attr),
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.inherit = target->pid >= 0,
		.enable_on_exec = t->after_exec && target->pid >= 0,
	};
	*ret_place = (struct event_place){
		.kernel = t->kernel,
		.platform = cores_platform(t->cores, hart),
		.pid = target->pid,
		.hart = target->hart,
		.group_fd = -1,
	};
	event_to_attr(e, ret_attr);
	ret_attr->precise_ip = 0; /* only for samples; some drivers refuse it for counters */
	if (t->user_only)
		ret_attr->exclude_kernel = ret_attr->exclude_hv = 1;
}

struct hart_event counter_asks(const struct counter_terms *t, const struct event *e, int hart)
{
	const struct counter_target target = {.pid = -1, .hart = hart};
	struct hart_event asked;
	struct event_place place;
	counter_ask(t, e, &target, &asked.attr, &place);
	asked.may_take_kernel_in = counter_may_take_kernel_in(t, &asked.attr);
	if (event_place_code(&place, e, &asked.attr) < 0)
		asked.attr.size = 0;
	const struct platform_event *own =
		event_place_own(&place, asked.attr.type, asked.attr.config);
	asked.own_code = own ? own->code : 0;
	asked.own_config1 = own ? own->config1 : 0;
	return asked;
}

/* --- joining ---------------------------------------------------------------------------------- */

/* Has no event before it a member of this group? */
static bool is_first(const struct counter *c, int event, size_t target)
{
	const struct hart_group *g = member_at(c, event, target)->group;
	for (int i = 0; i < event; i++)
		if (member_at(c, i, target)->group == g)
			return false;
	return true;
}

/* Give the event this member; it is open if others have opened it. */
static void take_member(struct counter *c, int event, size_t target, struct hart_member *m)
{
	c->member[place_of(c, event, target)] = m;
	if (is_first(c, event, target))
		hart_group_join(m->group);
	if (m->fd < 0)
		return;
	hart_member_use(m);
	c->fd[place_of(c, event, target)] = m->fd;
	if (m->by_raw)
		hart_set_add(&c->by_raw[event], c->target[target].hart);
	if (m->takes_kernel_in)
		c->unexcluded |= UINT64_C(1) << event;
}

static int take_new(
	struct counter *c, int first, size_t n, size_t target, const struct hart_event *event)
{
	struct hart_group *g = hart_group_new(
		cores_groups(c->terms.cores), c->terms.kernel, c->target[target].hart, event, n);
	if (!g)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		take_member(c, first + (int)i, target, &g->member[i]);
	return 0;
}

/* The n events from `first` on, which are to be counted together, on one target. */
static int join(struct counter *c, int first, size_t n, size_t target)
{
	struct hart_event event[EVENTS_MAX];
	struct hart_member *found[EVENTS_MAX];
	int hart = c->target[target].hart, r = 0;
	for (size_t i = 0; i < n; i++)
		event[i] = counter_asks(&c->terms, &c->events.event[first + (int)i], hart);
	if (!hart_groups_find(cores_groups(c->terms.cores), hart, event, n, found))
		return take_new(c, first, n, target, event);
	for (size_t i = 0; i < n && r == 0; i++) {
		if (found[i]->fd >= 0)
			take_member(c, first + (int)i, target, found[i]);
		else
			r = take_new(c, first + (int)i, 1, target, &event[i]);
	}
	return r;
}

/* The number of events from `first` on that are one group. */
static size_t group_events(const struct event_list *events, int first)
{
	int group = events->event[first].group, end = first + 1;
	while (group >= 0 && end < events->n_events && events->event[end].group == group)
		end++;
	return (size_t)(end - first);
}

int counter_join_groups(struct counter *c)
{
	int r = 0;
	for (size_t target = 0; target < c->n_targets; target++)
		for (int i = 0; i < c->events.n_events && r == 0;
			i += (int)group_events(&c->events, i))
			r = join(c, i, group_events(&c->events, i), target);
	return r;
}

/* --- leaving ---------------------------------------------------------------------------------- */

void counter_close_row(struct counter *c, int event)
{
	for (size_t i = 0; i < c->n_targets; i++) {
		int *fd = &c->fd[place_of(c, event, i)];
		if (*fd >= 0 && c->member)
			hart_member_drop(member_at(c, event, i));
		else if (*fd >= 0)
			c->terms.kernel->event_close(c->terms.kernel->userdata, *fd);
		*fd = -1;
	}
}

void counter_leave_groups(struct counter *c)
{
	/* from the last event, so that a group is left where it was joined */
	for (int i = c->events.n_events; c->member && i-- > 0;)
		for (size_t target = 0; target < c->n_targets; target++)
			if (member_at(c, i, target) && is_first(c, i, target))
				hart_group_leave(member_at(c, i, target)->group);
}

/* --- what is known of them -------------------------------------------------------------------- */

/* Does it use this member? */
static bool uses(const struct counter *c, const struct hart_member *m, size_t target)
{
	for (int i = 0; i < c->events.n_events; i++)
		if (member_at(c, i, target) == m && c->fd[place_of(c, i, target)] >= 0)
			return true;
	return false;
}

size_t counter_n_fds(const struct counter *c)
{
	size_t n = 0, n_places = (size_t)c->events.n_events * c->n_targets;
	for (size_t i = 0; i < n_places; i++)
		n += c->fd[i] >= 0;
	for (int i = 0; c->member && i < c->events.n_events; i++)
		for (size_t target = 0; target < c->n_targets; target++) {
			struct hart_member *leader =
				hart_group_leader(member_at(c, i, target)->group);
			n += leader && is_first(c, i, target) && !uses(c, leader, target);
		}
	return n;
}

size_t counter_n_others(const struct counter *c, int event, size_t *ret_n_harts)
{
	size_t n = 0, n_harts = 0;
	for (size_t i = 0; c->member && i < c->n_targets; i++) {
		const struct hart_group *g = member_at(c, event, i)->group;
		if (c->fd[place_of(c, event, i)] < 0 || g->n_users < 2)
			continue;
		n = g->n_users - 1 > n ? g->n_users - 1 : n;
		n_harts++;
	}
	*ret_n_harts = n_harts;
	return n;
}

double counter_rotation_scale(const struct counter *c, int event)
{
	size_t n = 0, n_own = group_events(&c->events, event);
	for (size_t i = 0; c->member && i < c->n_targets; i++) {
		size_t n_open = hart_group_n_open(member_at(c, event, i)->group);
		n = n_open > n ? n_open : n;
	}
	return n > n_own ? (double)n / (double)n_own : 1;
}
