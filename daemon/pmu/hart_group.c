/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Two groups with the same events would rotate on a hart's counters, and the counts of each would be scaled.
 * In one group, both users have counts of all the time. No event is ever added to a group that is open, since
 * that would disturb its readers: a wish for more events gets a group of its own.
 *
 * A group whose hart went offline opens, reads and enables without an error, and counts no more, even when
 * the hart returns. Only its enabled time shows that: it no longer grows. Source:
 * perf_event_exit_cpu_context in kernel/events/core.c of Linux 6.12.
 *
 * A group that has had no counters since its last reading is not joined: a smaller group may fit where
 * it does not.
 */
#include "daemon/pmu/hart_group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Groups of a hart that are compared with a wish. With more groups than this, each has counters once in
 * a second at most. */
#define GROUPS_COMPARED_MAX 256
/* Limit of groups with the wished events that are read, since reading interrupts the hart. */
#define GROUPS_LOOK_MAX 8
/* Readings in which the enabled time of a group must move: at 0.3 µs each or more they take longer than the
 * kernel's clock needs for a step on any core that we know. On another one nothing is shared. */
#define MOVES_TRIES_MAX 1000
/* Time between two readings of a group: some 25 rotations of the kernel. */
#define SEEN_NS 100000000u
/* A group that ran for a smaller share of the time than this gets no counters any more: 64 groups that
 * share the counters have 0.016 each. */
#define PART_MIN 0.001
/* A group that has counters for less of the time is not joined for some of its events: for these alone there may be
 * counters more often. */
#define PART_OF_MORE_MIN 0.5

struct hart_groups {
	struct hart_group *first[HARTS_MAX]; /* started, newest first */
};

int group_count_read(const struct kernel *k, int fd, struct group_count *ret_count)
{
	ssize_t n = k->event_read(k->userdata, fd, ret_count, sizeof(*ret_count));
	return n == (ssize_t)sizeof(*ret_count) ? 0 : n < 0 ? (int)n : -EIO;
}

struct hart_groups *hart_groups_new(void)
{
	return calloc(1, sizeof(struct hart_groups));
}

struct hart_groups *hart_groups_free(struct hart_groups *groups)
{
	free(groups);
	return NULL;
}

/* --- which group has the events --------------------------------------------------------------- */

static bool equal(const struct hart_event *a, const struct hart_event *b)
{
	return a->may_take_kernel_in == b->may_take_kernel_in && a->own_code == b->own_code &&
	       a->own_config1 == b->own_config1 && memcmp(&a->attr, &b->attr, sizeof(a->attr)) == 0;
}

static struct hart_member *find_member(struct hart_group *g, const struct hart_event *event)
{
	for (size_t i = 0; i < g->n_members; i++)
		if (!g->member[i].is_closed && equal(&g->member[i].event, event))
			return &g->member[i];
	return NULL;
}

static size_t n_left(const struct hart_group *g)
{
	size_t n = 0;
	for (size_t i = 0; i < g->n_members; i++)
		n += !g->member[i].is_closed;
	return n;
}

/* Source: is_software_event in include/linux/perf_event.h of Linux 6.12, for the types that we know. */
static bool needs_counter(const struct hart_event *event)
{
	return event->attr.type != PERF_TYPE_SOFTWARE && event->attr.type != PERF_TYPE_TRACEPOINT;
}

/* Is the member counted only while the group has counters? */
static bool has_turns(const struct hart_member *m)
{
	const struct hart_group *g = m->group;
	bool has = needs_counter(&m->event);
	for (size_t i = 0; i < g->n_members && !m->is_alone; i++)
		has |= g->member[i].fd >= 0 && !g->member[i].is_alone &&
		       needs_counter(&g->member[i].event);
	return has;
}

/* The number of the events that are open in the group; ret_member may be NULL. 0: some are missing, or they are
 * better off in a group of their own: here they are not counted together, or they rotate without need. */
static size_t match(struct hart_group *g, const struct hart_event *event, size_t n,
	struct hart_member **ret_member)
{
	size_t n_open = 0, n_alone = 0;
	bool need_counters = false, have_turns = false;
	for (size_t i = 0; i < n; i++) {
		struct hart_member *m = find_member(g, &event[i]);
		if (!m)
			return 0;
		n_open += m->fd >= 0;
		n_alone += m->is_alone;
		need_counters |= needs_counter(&event[i]);
		have_turns |= m->fd >= 0 && has_turns(m);
		if (ret_member)
			ret_member[i] = m;
	}
	bool together = n_alone == 0 || n == 1 || n == n_left(g);
	return together && (need_counters || !have_turns) ? n_open : 0;
}

static bool moves(const struct hart_group *g, int fd, struct group_count *ret_now)
{
	struct group_count first;
	if (group_count_read(g->kernel, fd, &first) < 0)
		return false;
	for (int i = 0; i < MOVES_TRIES_MAX; i++) {
		if (group_count_read(g->kernel, fd, ret_now) < 0)
			return false;
		if (ret_now->enabled_ns != first.enabled_ns)
			return true;
	}
	return false;
}

/* Does the group count, and has it had counters since the last reading? */
static bool look(struct hart_group *g)
{
	struct hart_member *leader = hart_group_leader(g);
	struct group_count now;
	if (!moves(g, leader->fd, &now)) {
		g->has_ended = true;
		return false;
	}
	hart_member_saw(leader, &now);
	return g->part >= PART_MIN;
}

bool hart_groups_find(struct hart_groups *groups, int hart, const struct hart_event *event,
	size_t n, struct hart_member **ret_member)
{
	struct hart_group *best = NULL;
	int n_compared = 0, n_looks = 0;
	for (struct hart_group *g = groups->first[hart];
		g && n_compared < GROUPS_COMPARED_MAX && n_looks < GROUPS_LOOK_MAX;
		g = g->next, n_compared++) {
		if (g->has_ended || match(g, event, n, NULL) == 0)
			continue;
		n_looks++;
		if (look(g) && (!best || g->part > best->part))
			best = g;
	}
	if (!best || (best->part < PART_OF_MORE_MIN && n < n_left(best)))
		return false;
	return match(best, event, n, ret_member) > 0;
}

bool hart_groups_have(
	const struct hart_groups *groups, int hart, const struct hart_event *event, size_t n)
{
	int n_compared = 0;
	for (struct hart_group *g = groups->first[hart]; g && n_compared < GROUPS_COMPARED_MAX;
		g = g->next, n_compared++)
		if (!g->has_ended && g->part >= PART_MIN && match(g, event, n, NULL) == n)
			return true;
	return false;
}

/* --- the life of one -------------------------------------------------------------------------- */

struct hart_group *hart_group_new(struct hart_groups *groups, const struct kernel *k, int hart,
	const struct hart_event *event, size_t n)
{
	struct hart_group *g = calloc(1, sizeof(*g) + n * sizeof(g->member[0]));
	if (!g)
		return NULL;
	g->groups = groups;
	g->kernel = k;
	g->hart = hart;
	g->part = 1;
	g->n_members = n;
	for (size_t i = 0; i < n; i++)
		g->member[i] = (struct hart_member){.group = g, .event = event[i], .fd = -1};
	return g;
}

void hart_group_join(struct hart_group *g)
{
	g->n_users++;
}

void hart_group_leave(struct hart_group *g)
{
	if (--g->n_users > 0)
		return;
	if (g->is_started) {
		*g->place = g->next;
		if (g->next)
			g->next->place = g->place;
	}
	free(g);
}

void hart_group_start(struct hart_group *g)
{
	if (g->is_started)
		return;
	g->is_started = true;
	g->place = &g->groups->first[g->hart];
	g->next = *g->place;
	if (g->next)
		g->next->place = &g->next;
	*g->place = g;
}

struct hart_member *hart_group_leader(struct hart_group *g)
{
	struct hart_member *alone = NULL;
	for (size_t i = 0; i < g->n_members; i++) {
		if (g->member[i].fd >= 0 && !g->member[i].is_alone)
			return &g->member[i];
		if (g->member[i].fd >= 0 && !alone)
			alone = &g->member[i];
	}
	return alone;
}

size_t hart_group_n_open(const struct hart_group *g)
{
	size_t n = 0;
	for (size_t i = 0; i < g->n_members; i++)
		n += g->member[i].fd >= 0;
	return n;
}

void hart_member_open(struct hart_member *m, int fd, bool alone, bool by_raw, bool takes_kernel_in)
{
	m->fd = fd;
	m->is_alone = alone;
	m->by_raw = by_raw;
	m->takes_kernel_in = takes_kernel_in;
	m->n_users = 1;
}

void hart_member_use(struct hart_member *m)
{
	m->n_users++;
}

/* Is another member counted with this one? */
static bool leads(const struct hart_member *m)
{
	struct hart_group *g = m->group;
	for (size_t i = 0; i < g->n_members; i++)
		if (&g->member[i] != m && g->member[i].fd >= 0 && !g->member[i].is_alone)
			return hart_group_leader(g) == m;
	return false;
}

void hart_member_drop(struct hart_member *m)
{
	struct hart_group *g = m->group;
	m->n_users--;
	/* From the last one: the leader is the first, and may be closed when the others are. */
	for (size_t i = g->n_members; i-- > 0;) {
		struct hart_member *at = &g->member[i];
		if (at->fd < 0 || at->n_users > 0 || leads(at))
			continue;
		g->kernel->event_close(g->kernel->userdata, at->fd);
		at->fd = -1;
		at->is_closed = g->is_started; /* an earlier one was refused on another hart */
	}
}

void hart_member_saw(struct hart_member *m, const struct group_count *count)
{
	struct hart_group *g = m->group;
	if (m->is_alone || count->enabled_ns < g->seen.enabled_ns + SEEN_NS)
		return;
	/* the reading may show another member, which was put on the counters a moment before this
	 * one */
	uint64_t ran_ns =
		count->running_ns > g->seen.running_ns ? count->running_ns - g->seen.running_ns : 0;
	g->part = (double)ran_ns / (double)(count->enabled_ns - g->seen.enabled_ns);
	g->seen = *count;
}
