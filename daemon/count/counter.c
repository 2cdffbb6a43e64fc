/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A counter is a table of descriptors, one row per event and one column per target: an online hart,
 * or a thread with all that it will start (inherit). Columns never change while it lives.
 *
 *                  hart 0   hart 1   hart 2
 *      cycles        3        4        5        each reads {value, enabled, running}
 *      L2-misses     6        -        7        - this hart's core has no such event
 *
 * A sum with a hole in it is a wrong number. So a target that inherently cannot count the event (a
 * core of another kind, a hart just gone offline, a thread that just ended) is left out, but one
 * that was refused (rights, descriptors, a counter in use) turns the whole row into an error.
 *
 * System-wide groups are shared (hart_group.h): an event that another counter has open is read there, less
 * its count when we started.
 *
 * Groups: the first member that opens on a target leads, the others join it, so that the kernel
 * counts them in the same spans of time. A member that the kernel refuses in the group (PMUs that
 * do not mix, more members than counters) is opened outside it and scaled by its own times: a worse
 * ratio, but a true count. Each descriptor is read separately, so that values do not depend on
 * which others opened.
 *
 * Where cores differ, a thread is a column for each hart, since an event that knows no hart is one
 * kind of core's.
 *
 * An event that opens by the core's own code and never gets a counter would harm other events: the kernel
 * then rotates all of them, cycles too. If nobody asked for its name, we find such an event by trying it,
 * and leave it out.
 *
 * Threads that start between our scan of /proc and the open of their parent are not counted; a
 * command that waits to be started has none.
 */
#include "daemon/count/counter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/count/counter_group.h"
#include "daemon/pmu/event/event_on_core.h"
#include "daemon/sampler/ladder.h"
#include "proto/base/array.h"
#include "proto/base/memory.h"

#define TASKS_MAX 4096 /* a descriptor per event and thread: beyond it, count the whole system */

/* The events that perf stat counts by default. Source: man perf-stat. */
#define DEFAULT_REST                                                                               \
	",context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses"

struct targets {
	struct counter_target *target;
	size_t n_targets, size;
	int error;
	int n_harts; /* positive: each thread is a separate target on each hart */
	struct hart_set harts;
};

static void targets_clear(struct targets *t)
{
	free(t->target);
	*t = (struct targets){0};
}

static int target_add(struct targets *t, struct counter_target target)
{
	int r = array_grow_long(&t->target, &t->size, t->n_targets + 1, sizeof(*t->target));
	if (r < 0)
		return r;
	t->target[t->n_targets++] = target;
	return 0;
}

static int thread_add_each(struct targets *t, pid_t tid)
{
	int r = t->n_harts ? 0 : target_add(t, (struct counter_target){.pid = tid, .hart = -1});
	for (int i = 0; i < t->n_harts && r == 0; i++)
		if (hart_set_has(&t->harts, i))
			r = target_add(t, (struct counter_target){.pid = tid, .hart = i});
	return r;
}

/* Add the thread of a name in /proc/PID/task. */
static void thread_add(void *userdata, const char *name)
{
	struct targets *t = userdata;
	char *end;
	long tid = strtol(name, &end, 10);
	if (*end || tid <= 0 || t->error)
		return;
	/* Count a process that is named twice only once. */
	for (size_t i = 0; i < t->n_targets; i++)
		if (t->target[i].pid == (pid_t)tid)
			return;
	if (t->n_targets >= TASKS_MAX)
		t->error = -E2BIG;
	else
		t->error = thread_add_each(t, (pid_t)tid);
}

static int add_threads(const struct kernel *k, const struct counter_options *o, struct targets *t)
{
	for (size_t i = 0; i < o->n_pids; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/task", (int)o->pids[i]);
		int r = k->list(k->userdata, path, thread_add, t);
		/* -ESRCH: it ended while we read its folder. */
		if (r < 0 && r != -ENOENT && r != -ESRCH)
			return r;
		if (t->error)
			return t->error;
	}
	return 0;
}

static int add_harts(const struct machine *m, const struct counter_options *o, struct targets *t)
{
	for (int hart = 0; hart < m->n_harts; hart++) {
		if (!hart_set_has(&m->online, hart) || (o->harts && !hart_set_has(o->harts, hart)))
			continue;
		int r = target_add(t, (struct counter_target){.pid = -1, .hart = hart});
		if (r < 0)
			return r;
	}
	return 0;
}

/* Some PMUs belong to a package and are counted from one of its harts; opened on each hart, each
 * would give the package's count. Source: Documentation/ABI/testing/sysfs-bus-event_source-devices,
 * cpumask. */
static bool pmu_harts(const struct kernel *k, const struct event *e, struct hart_set *ret_harts)
{
	char path[sizeof(e->pmu) + 64], text[4096];
	if (e->type < PERF_TYPE_MAX)
		return false;
	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/cpumask", e->pmu);
	return k->read_text(k->userdata, path, text, sizeof(text)) >= 0 &&
	       hart_set_parse(text, ret_harts) == 0 && hart_set_count(ret_harts) > 0;
}

static int *fd_at(struct counter *c, int event, size_t target)
{
	return &c->fd[(size_t)event * c->n_targets + target];
}

/* The descriptor that leads the event's group on this target, or -1. A group that others have opened gets
 * no further member. */
static int leader_of(struct counter *c, int event, size_t target)
{
	const size_t n = c->n_targets;
	if (c->events.event[event].group < 0)
		return -1;
	for (int i = 0; i < event; i++)
		if (c->events.event[i].group == c->events.event[event].group &&
			*fd_at(c, i, target) >= 0 &&
			(!c->member || c->member[(size_t)i * n + target]->group ==
					       c->member[(size_t)event * n + target]->group))
			return *fd_at(c, i, target);
	return -1;
}

/* Open the event on its target: as requested; outside its group; including the kernel; both. */
static int open_one(struct counter *c, int event, size_t at, int leader)
{
	const struct event *e = &c->events.event[event];
	const struct counter_target *target = &c->target[at];
	struct hart_member *m = c->member ? c->member[(size_t)event * c->n_targets + at] : NULL;
	struct perf_event_attr attr;
	struct event_place place;
	counter_ask(&c->terms, e, target, &attr, &place);
	int hart = target->hart < 0 ? cores_kind(c->terms.cores, 0) : target->hart;

	int fd = -EINVAL;
	for (unsigned way = 0; way < 4 && fd == -EINVAL; way++) {
		bool alone = way & 1, all_modes = way & 2;
		struct perf_event_attr opened = attr;
		if ((alone && leader < 0) ||
			(all_modes && !counter_may_take_kernel_in(&c->terms, &attr)))
			continue;
		place.group_fd = alone ? -1 : leader;
		/* Members follow their leader; only single events are enabled and disabled
		 * themselves. */
		opened.disabled = place.group_fd < 0;
		if (all_modes)
			opened.exclude_kernel = opened.exclude_hv = 0;
		fd = event_open_at(&place, e, &opened);
		if (fd < 0)
			continue;
		bool by_raw = event_by_raw(e, &opened);
		if (by_raw && hart >= 0)
			hart_set_add(&c->by_raw[event], hart);
		if (all_modes)
			c->unexcluded |= UINT64_C(1) << event;
		if (m)
			hart_member_open(m, fd, alone, by_raw, all_modes);
	}
	return fd;
}

/* True if the error means that the target has nothing to count, rather than that we miss
 * something. */
static bool may_lack(const struct counter_target *target, int error)
{
	if (target->pid >= 0 && (target->hart < 0 || error == -ESRCH))
		return error == -ESRCH;
	return error == -ENODEV || error == -ENOENT || error == -EOPNOTSUPP || error == -EINVAL;
}

/* A row begins. 0, or the -errno why it is not measured. */
static int row_begin(struct counter *c)
{
	struct counter_opening *at = &c->opening;
	const struct event *e = &c->events.event[at->event];
	at->error = -ENODEV;
	at->row_opened = false;
	at->some_harts = c->target[0].pid < 0 && pmu_harts(c->terms.kernel, e, &at->harts);
	/* Without the kernel these would open and stay 0, which is not a measurement. */
	return c->terms.user_only && (e->exclude_user || event_is_kernel_only(e)) ? -EACCES : 0;
}

/* Open the row's event on its next target. 0, or the -errno why the whole row is not measured. */
static int open_next(struct counter *c)
{
	struct counter_opening *at = &c->opening;
	const size_t i = at->target++;
	const int event = at->event;
	const struct counter_target *target = &c->target[i];
	if (at->some_harts && !hart_set_has(&at->harts, target->hart))
		return 0;
	if (target->gone) {
		at->error = -ESRCH;
		return 0;
	}
	int fd = *fd_at(c, event, i); /* open already: others count it too */
	if (fd < 0)
		fd = open_one(c, event, i, leader_of(c, event, i));
	c->target[i].gone = target->pid >= 0 && fd == -ESRCH;
	if (fd < 0 && !may_lack(target, fd))
		return fd;
	if (fd < 0)
		at->error = fd;
	else
		at->row_opened = true;
	*fd_at(c, event, i) = fd < 0 ? -1 : fd;
	return 0;
}

static void row_end(struct counter *c, int r)
{
	struct counter_opening *at = &c->opening;
	if (r == 0 && !at->row_opened)
		r = at->error;
	c->value[at->event].error = -r;
	at->any_opened |= r == 0;
	if (r != 0)
		counter_close_row(c, at->event);
	at->event++;
	at->target = 0;
}

/* Does the event open and count nothing here? We try it on each core once in a while, not for each client. */
static bool is_dead(const struct counter *c, const struct machine *m, const struct event *e)
{
	const struct trial_key key = {TRIAL_COUNTS, -1, e->type, e->config, e->exclude_kernel};
	struct trials *trials = cores_trials(c->terms.cores);
	uint64_t now_ns = c->terms.kernel->now_ns(c->terms.kernel->userdata);
	bool works;
	if (!trials_find(trials, &key, now_ns, &works)) {
		works = event_probe_for(c->terms.kernel, m, c->terms.cores, e) != PROBE_ZERO;
		trials_keep(trials, &key, now_ns, works);
	}
	return !works;
}

/* Leave out events that were opened by the core's own code and count nothing here. */
static void drop_dead(struct counter *c, const struct machine *m)
{
	for (int i = 0; i < c->events.n_events; i++) {
		bool by_raw = hart_set_count(&c->by_raw[i]) > 0;
		if (c->value[i].error || !by_raw || !is_dead(c, m, &c->events.event[i]))
			continue;
		counter_close_row(c, i);
		c->value[i].error = ENODATA;
	}
}

/* The event with the most relevant error: missing rights before other errors, since with rights the
 * rest may work. */
static int telling_event(const struct counter *c)
{
	for (int i = 0; i < c->events.n_events; i++)
		if (c->value[i].error == EACCES || c->value[i].error == EPERM)
			return i;
	return 0;
}

/* Explain why nothing opened. COUNTER_GONE if all targets are gone. */
static int refuse(const struct counter *c, const struct machine *m, struct event_error *ret_error)
{
	for (int i = 0; i < c->events.n_events; i++) {
		if (c->value[i].error != ESRCH)
			continue;
		snprintf(ret_error->text, sizeof(ret_error->text), "no target lives any more");
		return COUNTER_GONE;
	}

	int i = telling_event(c);
	const struct event *e = &c->events.event[i];
	struct refusal refusal = refusal_explain(e, c->value[i].error, false, m);
	snprintf(ret_error->text, sizeof(ret_error->text), "cannot count %.40s: %s; %s", e->name,
		refusal.says, refusal.remedy);
	return COUNTER_REFUSED;
}

/* If cores differ, an event of a thread counts on one kind of core only: on other kinds a generic
 * event or name has another code, and a raw code another PMU. So the thread is counted hart by hart. */
static bool counts_by_hart(const struct counter_options *o, const struct event_list *events)
{
	bool some = false;
	for (int i = 0; i < events->n_events; i++) {
		const struct event *e = &events->event[i];
		some |= e->by_platform || e->type == PERF_TYPE_HARDWARE ||
			e->type == PERF_TYPE_HW_CACHE || e->type == PERF_TYPE_RAW;
	}
	return some && o->pids && cores_differ(o->cores);
}

static int find_targets(const struct kernel *k, const struct machine *m,
	const struct counter_options *o, struct targets *t, struct event_error *ret_error)
{
	int r = o->pids ? add_threads(k, o, t) : add_harts(m, o, t);
	if (r == -E2BIG) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			"more than %d threads; count the whole system instead (-a)", TASKS_MAX);
		return COUNTER_REFUSED;
	}
	if (r < 0)
		return r;
	if (t->n_targets > 0)
		return 0;
	snprintf(ret_error->text, sizeof(ret_error->text), "no target lives any more");
	return COUNTER_GONE;
}

static int set_events(
	struct counter *c, const struct counter_options *o, struct event_error *ret_error)
{
	if (o->events) {
		c->events = *o->events;
		return c->events.n_events > 0 ? 0 : -EINVAL;
	}
	/* A hart has no task-clock. */
	const char *text = o->pids ? "task-clock" DEFAULT_REST : "cpu-clock" DEFAULT_REST;
	return event_parse(c->terms.kernel, text, &c->events, ret_error) == 0 ? 0 : -EINVAL;
}

/* Let the counter read open groups of its harts, and others read its own groups. */
static int share(struct counter *c)
{
	size_t n = (size_t)c->events.n_events * c->n_targets;
	c->base = calloc(n, sizeof(*c->base));
	c->member = calloc(n, sizeof(struct hart_member *));
	return c->base && c->member ? counter_join_groups(c) : -ENOMEM;
}

struct counter_terms counter_terms_of(
	const struct kernel *k, const struct machine *m, const struct counter_options *o)
{
	bool may_see_kernel = m->may_see_kernel && !o->never_kernel;
	return (struct counter_terms){.kernel = k,
		.cores = o->cores,
		.user_only = o->user_only || !may_see_kernel,
		.may_see_kernel = may_see_kernel,
		.after_exec = o->after_exec};
}

DEFINE_CLEANUP(struct counter *, counter_free)

int counter_plan(const struct kernel *k, const struct machine *m, const struct counter_options *o,
	struct counter **ret_counter, struct event_error *ret_error)
{
	_cleanup_(targets_clear) struct targets t = {0};
	_cleanup_(counter_freep) struct counter *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->terms = counter_terms_of(k, m, o);
	int r = set_events(c, o, ret_error);
	if (r)
		return r;
	if (o->harts || counts_by_hart(o, &c->events)) {
		t.n_harts = m->n_harts;
		t.harts = o->harts ? *o->harts : m->online;
	}
	r = find_targets(k, m, o, &t, ret_error);
	if (r)
		return r;

	size_t n_events = (size_t)c->events.n_events;
	if (o->fds_max && n_events * t.n_targets > o->fds_max) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			"%zu events on %zu targets need more descriptors than are left", n_events,
			t.n_targets);
		return COUNTER_FULL;
	}
	c->value = calloc(n_events, sizeof(*c->value));
	c->fd = reallocarray(NULL, n_events * t.n_targets, sizeof(*c->fd));
	if (!c->value || !c->fd)
		return -ENOMEM;
	c->n_targets = t.n_targets;
	c->target = TAKE_PTR(t.target);
	for (size_t i = 0; i < n_events * t.n_targets; i++)
		c->fd[i] = -1;
	r = o->pids || !o->cores || o->is_alone ? 0 : share(c);
	if (r < 0)
		return r;

	c->drops_dead = !o->events;
	*ret_counter = TAKE_PTR(c);
	return 0;
}

int counter_open(struct counter *c, const struct machine *m, struct event_error *ret_error)
{
	struct counter_opening *at = &c->opening;
	int r = at->target == 0 ? row_begin(c) : 0;
	if (r == 0)
		r = open_next(c);
	if (r != 0 || at->target == c->n_targets)
		row_end(c, r);
	if (at->event < c->events.n_events)
		return COUNTER_MORE;
	if (!at->any_opened)
		return refuse(c, m, ret_error);
	if (c->drops_dead)
		drop_dead(c, m);
	return 0;
}

int counter_new(const struct kernel *k, const struct machine *m, const struct counter_options *o,
	struct counter **ret_counter, struct event_error *ret_error)
{
	_cleanup_(counter_freep) struct counter *c = NULL;
	int r = counter_plan(k, m, o, &c, ret_error);
	if (r != 0)
		return r;
	while ((r = counter_open(c, m, ret_error)) == COUNTER_MORE)
		continue;
	if (r == 0)
		*ret_counter = TAKE_PTR(c);
	return r;
}

int counter_start(struct counter *c)
{
	const size_t n = (size_t)c->events.n_events * c->n_targets;
	int error = 0;
	for (size_t i = 0; i < n; i++) {
		if (c->fd[i] < 0 || (c->terms.after_exec && !c->member))
			continue;
		int r = c->member && c->member[i]->group->is_started
				? group_count_read(c->terms.kernel, c->fd[i], &c->base[i])
				: c->terms.kernel->event_ioctl(c->terms.kernel->userdata, c->fd[i],
					  PERF_EVENT_IOC_ENABLE, 0);
		if (r < 0 && error == 0)
			error = r;
	}
	for (size_t i = 0; c->member && i < n; i++)
		if (c->fd[i] >= 0)
			hart_group_start(c->member[i]->group);
	return error;
}

/* Read the count of the descriptor since we started. */
static int read_count(const struct counter *c, size_t at, struct group_count *ret_count)
{
	struct group_count count;
	int r = group_count_read(c->terms.kernel, c->fd[at], &count);
	if (r < 0)
		return r;
	if (c->member) {
		hart_member_saw(c->member[at], &count);
		count.value -= c->base[at].value;
		count.enabled_ns -= c->base[at].enabled_ns;
		count.running_ns -= c->base[at].running_ns;
	}
	*ret_count = count;
	return 0;
}

/* Add one descriptor's count, scaled by its own times: harts multiplex apart. */
static int add_count(struct counter *c, size_t at, struct counter_value *v)
{
	struct group_count count;
	int r = read_count(c, at, &count);
	if (r < 0)
		return r;
	v->value += count.value;
	v->enabled_ns += count.enabled_ns;
	v->running_ns += count.running_ns;
	if (count.running_ns == count.enabled_ns)
		v->scaled += (double)count.value;
	else if (count.running_ns > 0)
		v->scaled +=
			(double)count.value * ((double)count.enabled_ns / (double)count.running_ns);
	return 0;
}

int counter_read(struct counter *c)
{
	for (int i = 0; i < c->events.n_events; i++) {
		if (c->value[i].error)
			continue;
		struct counter_value v = {0};
		for (size_t j = 0; j < c->n_targets && !v.error; j++) {
			if (*fd_at(c, i, j) >= 0)
				v.error = -add_count(c, (size_t)i * c->n_targets + j, &v);
		}
		if (v.error)
			v = (struct counter_value){.error = v.error};
		c->value[i] = v;
	}
	return 0;
}

int counter_read_each(const struct counter *c,
	int (*take)(void *userdata, const struct counter_reading *r), void *userdata)
{
	int r = 0, first_error = 0;
	for (size_t at = 0; at < (size_t)c->events.n_events * c->n_targets && r == 0; at++) {
		struct group_count count;
		int event = (int)(at / c->n_targets);
		if (c->fd[at] < 0 || c->value[event].error)
			continue;
		const int error = read_count(c, at, &count);
		if (first_error == 0)
			first_error = error;
		const struct counter_reading reading = {event, &c->target[at % c->n_targets],
			count.value, count.enabled_ns, count.running_ns};
		if (error == 0)
			r = take(userdata, &reading);
	}
	return r ? r : first_error;
}

int counter_scarcest(const struct counter *c, double *ret_part)
{
	double least = 1;
	int scarcest = -1;
	for (int e = 0; e < c->events.n_events; e++) {
		const struct counter_value *v = &c->value[e];
		if (v->error || v->running_ns == 0)
			continue;
		double part = (double)v->running_ns / (double)v->enabled_ns;
		if (scarcest >= 0 && part >= least)
			continue;
		scarcest = e;
		least = part;
	}
	if (scarcest >= 0)
		*ret_part = least;
	return scarcest;
}

struct counter *counter_free(struct counter *c)
{
	if (!c)
		return NULL;
	/* Members before leaders, so that a former member never becomes a leader. */
	for (int i = c->fd ? c->events.n_events - 1 : -1; i >= 0; i--)
		counter_close_row(c, i);
	counter_leave_groups(c);
	free(c->member);
	free(c->base);
	free(c->fd);
	free(c->target);
	free(c->value);
	free(c);
	return NULL;
}
